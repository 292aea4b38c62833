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
//! Overview:
//! - [`Agent`]: configuration of sessions: options and callbacks (async closures)
//! - [`Hook`]: a closure that receives events and may influence them
//! - [`tool`] and [`ToolServer`]: async functions that the model can call
//! - [`query`]: one prompt (or a stream of them) in, a stream of frames out
//! - [`Session`]: a conversation that stays open
//! - [`Controls`] and [`Frames`]: its two halves, so that one task can read while others send
//! - [`Environment`]: keys and endpoints, if not those of this process
//! - [`store`]: session stores other than files; [`Sessions`]: the stored sessions
//! - [`Transport`]: the engine in this process (default), or an engine process driven over its standard streams
//! - [`wire`]: types of the protocol
//!
//! This crate holds no agent logic. Dropping a [`Query`] or [`Session`] stops its work and leaves nothing behind.

mod agent;
mod callback;
mod client;
mod controls;
mod environment;
mod error;
mod frame_size;
mod frames;
mod hook;
mod prompt;
mod query;
mod router;
mod session;
#[cfg(feature = "in-process")]
pub mod store;
mod tools;
mod transport;
mod unread_limit;

pub use agent::Agent;
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
pub use tools::{Json, Tool, ToolOutput, ToolServer, tool};
pub use transport::Transport;
pub use whimbrel_wire as wire;
pub use whimbrel_wire::Frame;
pub use whimbrel_wire::control::CanUseTool;
pub use whimbrel_wire::options::Options;
pub use whimbrel_wire::permission::{PermissionMode, PermissionResult};

/// The shared part of the engine: one instance serves any number of sessions of this process.
#[cfg(feature = "in-process")]
pub use whimbrel_engine::Engine;

/// Scripted models, for tests and demos.
#[cfg(feature = "in-process")]
pub use whimbrel_models::scripted::Scripted;
