//! Run agents from Rust.
//!
//! ```
//! use whimbrel::{Agent, query};
//!
//! # async fn first() -> Result<(), whimbrel::TurnError> {
//! let agent = Agent::new().model("sonnet");
//! println!("{}", query("What is in this folder?", &agent).await?);
//! # Ok(())
//! # }
//! ```
//!
//! A scripted model answers without a key, in tests and in the examples of these pages; this one prints the text while
//! it is written:
//!
//! ```
//! use serde_json::json;
//! use whimbrel::{Agent, Scripted, Session};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let agent = Agent::new().script(Scripted::replies(json!(["Four."]))?);
//! let mut session = Session::open(&agent).await?;
//! let mut text = session.ask("What is two and two?").text_stream();
//! while let Some(piece) = text.next().await {
//!     print!("{}", piece?);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Overview:
//! - [`Agent`]: configuration of sessions: options and callbacks (async closures)
//! - [`Hook`]: a closure that receives events and may influence them
//! - [`macro@tool`], [`macro@tools`], [`tool()`], [`tool_with_state`], [`tool_with_schema`] and [`ToolServer`]: functions that the model can call
//! - [`PermissionRequest`]: a tool call that needs permission
//! - [`query`]: runs an agent on a prompt, or on a stream of them; [`query_as`] gives a value of a type
//! - [`Session`]: a conversation that stays open; [`SharedSession`]: one that several tasks ask
//! - [`Turn`]: a prompt and what answers it: an [`Answer`], a [`TextStream`], an [`EventStream`], or frames
//! - [`OpenError`], [`TurnError`], [`Error`]: why a session was not opened, a turn has no answer, a request failed
//! - [`Controls`] and [`Frames`]: its two halves, so that one task can read while others send
//! - [`Environment`]: keys and endpoints, if not those of this process
//! - [`store`]: session stores other than files; [`Sessions`]: the stored sessions
//! - `model`: providers as values, models of your own, layers, recordings
//! - [`Transport`]: the engine in this process (default), or an engine process driven over its standard streams
//! - [`wire`]: types of the protocol
//!
//! This crate holds no agent logic. Dropping a [`Query`] or [`Session`] stops its work and leaves nothing behind.

#![deny(missing_docs)]

mod agent;
mod answer;
mod callback;
mod client;
mod controls;
mod environment;
mod error;
mod extensions;
mod frame_size;
mod frames;
mod hook;
mod hook_answer;
#[cfg(feature = "macros")]
#[doc(hidden)]
pub mod macro_support;
#[cfg(feature = "in-process")]
pub mod model;
mod open_check;
mod permission;
mod prompt;
mod router;
#[cfg(feature = "in-process")]
pub mod store;
mod subagent;
mod tools;
mod transport;
mod turn_tracker;
mod turns;
mod unread_limit;
mod unread_output;
mod warning;

pub use agent::Agent;
pub use answer::Answer;
pub use controls::Controls;
pub use environment::Environment;
pub use error::{ApiError, Error, OpenError, TurnError};
pub use frames::Frames;
pub use hook::{Hook, HookContext};
pub use hook_answer::{ContextHookEvent, HookAnswer, NoOutput, SpecificOutput, TypedHookEvent};
pub use permission::{CheckInputError, PermissionRequest, Withdrawal};
pub use prompt::Prompt;
pub use schemars;
pub use serde_json;
#[cfg(feature = "in-process")]
pub use store::Sessions;
pub use subagent::{Isolation, MemoryScope, Subagent};
pub use tools::{
    Json, NoState, Tool, ToolContext, ToolHandler, ToolOutput, ToolServer, tool, tool_with_schema,
    tool_with_state,
};
pub use transport::Transport;
pub use turns::events::{Event, EventStream, LiveOutput, ProgressReport, TextStream, ToolEnd, ToolStart};
pub use turns::query::{Query, QueryFuture, query};
pub use turns::session::Session;
pub use turns::shared_session::SharedSession;
pub use turns::turn::{Turn, TurnFuture};
pub use turns::typed::{Typed, TypedTurn, query_as};
/// # Example
///
/// ```
/// use whimbrel::{Agent, ToolServer, tool};
///
/// /// Adds two numbers.
/// #[tool(read_only)]
/// async fn add(
///     /// The first number.
///     a: f64,
///     /// The second one.
///     b: f64,
/// ) -> String {
///     (a + b).to_string()
/// }
///
/// let agent = Agent::new().tool_server(ToolServer::new("calculator").tool(add_tool()));
/// assert_eq!(add_tool().description(), "Adds two numbers.");
/// ```
///
/// An argument that cannot come from the input of a model is an error of the compiler:
///
/// ```compile_fail
/// /// Counts words.
/// #[whimbrel::tool]
/// async fn count(text: &str) -> String {
///     text.split(' ').count().to_string()
/// }
/// ```
#[cfg(feature = "macros")]
pub use whimbrel_macros::tool;
/// # Example
///
/// ```
/// use std::sync::Mutex;
///
/// use whimbrel::{Agent, Json, ToolContext, tools};
///
/// #[derive(Default)]
/// struct Tracker {
///     issues: Mutex<Vec<String>>,
/// }
///
/// #[tools(name = "tracker")]
/// impl Tracker {
///     /// Files an issue, and returns its number.
///     #[tool(destructive)]
///     async fn file_issue(
///         &self,
///         context: &ToolContext,
///         /// One line.
///         title: String,
///     ) -> Result<Json<usize>, String> {
///         let mut issues = self.issues.lock().map_err(|_| "the tracker has failed")?;
///         issues.push(format!("{title} (in {})", context.cwd().display()));
///         Ok(Json(issues.len()))
///     }
/// }
///
/// let agent = Agent::new().tool_server(Tracker::default().into_server());
/// ```
#[cfg(feature = "macros")]
pub use whimbrel_macros::tools;
pub use whimbrel_wire as wire;
pub use whimbrel_wire::Frame;
pub use whimbrel_wire::control::{CanUseTool, CancelReason, InvalidField};
pub use whimbrel_wire::options::Options;
pub use whimbrel_wire::permission::{PermissionMode, PermissionResult};

/// The shared part of the engine: one instance serves any number of sessions of this process.
#[cfg(feature = "in-process")]
pub use whimbrel_engine::{Engine, EngineBuilder, SandboxLauncher};

/// Scripted models, for tests and demos.
#[cfg(feature = "in-process")]
pub use whimbrel_models::scripted::Scripted;

/// Compiles the code of the cookbook.
#[cfg(all(doctest, feature = "in-process"))]
#[doc = include_str!("../../../docs/rust.md")]
struct Cookbook;
