//! Run agents from Rust.
//!
//! ```
//! use serde_json::json;
//! use whimbrel::{Agent, Frame, Scripted};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), whimbrel::Error> {
//! // A scripted model answers here; leave `script` out to ask a real one.
//! let agent = Agent::new().script(Scripted::replies(json!(["Four."]))?);
//! let mut answer = whimbrel::query("What is two and two?", &agent);
//! while let Some(frame) = answer.next().await {
//!     if let Frame::Result(result) = frame? {
//!         assert_eq!(result.result.as_deref(), Some("Four."));
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! The rooms:
//! - [`Agent`]: everything one can ask for, in one builder; callbacks are async closures
//! - [`Hook`]: a closure that is told what happens and may have a say in it
//! - [`tool`] and [`ToolServer`]: async functions that the model can call
//! - [`query`]: one prompt (or a stream of them) in, a stream of frames out
//! - [`Session`]: a conversation that stays open
//! - [`Controls`] and [`Frames`]: its two halves, so that one task can read while others talk
//! - [`Environment`]: where keys and endpoints come from, if not from this process
//! - [`store`]: where sessions are kept, if not in files; [`Sessions`]: those that are kept
//! - [`Transport`]: the engine in this process (default), or an engine process that is driven over its standard streams
//! - [`wire`]: the language that both sides speak
//!
//! This crate holds no agent logic. Dropping a [`Query`] or [`Session`] stops its work and leaves nothing behind.

mod agent;
mod callback;
mod controls;
mod environment;
mod error;
mod frames;
mod hook;
mod client;
mod prompt;
mod query;
mod session;
mod router;
#[cfg(feature = "in-process")]
pub mod store;
mod tools;
mod transport;
mod frame_size;

pub use agent::Agent;
pub use callback::{PermissionAsked, ToolPermission};
pub use controls::Controls;
pub use environment::Environment;
pub use error::Error;
pub use frames::Frames;
pub use hook::Hook;
pub use prompt::Prompt;
pub use query::{Query, query};
pub use schemars;
pub use session::Session;
#[cfg(feature = "in-process")]
pub use store::Sessions;
pub use tools::{Json, Tool, ToolAnswer, ToolServer, tool};
pub use transport::Transport;
pub use whimbrel_wire as wire;
pub use whimbrel_wire::Frame;
pub use whimbrel_wire::options::Options;
pub use whimbrel_wire::permission::PermissionMode;

/// The engine's shared part: one serves any number of sessions of this process.
#[cfg(feature = "in-process")]
pub use whimbrel_engine::Engine;

/// Scripted models, for tests and demos.
#[cfg(feature = "in-process")]
pub use whimbrel_models::scripted::Scripted;
