//! Talking to a model: a request goes in, a stream of events comes out, whoever the provider is.
//!
//! The common tongue is that of the Messages API; other dialects are translated to and from it by pure functions.
//! This crate knows no tools, no permissions and no sessions: it gets schemas and messages, and gives events.
//!
//! The rooms:
//! - [`model`]: the trait [`Model`], one attempt at one reply
//! - [`request`]: what is asked; [`history`]: the conversation as bytes, each message written once
//! - [`event`]: what comes back; [`figures`]: what it costs, as told; [`assemble`]: events to blocks, pure
//! - [`call`]: one reply with everything that may go wrong on the way: retries, watchdogs, corrections
//! - [`retry`]: when to try again, pure; [`correct`]: what to ask otherwise, pure; [`error`]: what can go wrong
//! - [`sse`]: bytes to events, pure; [`reply`]: an HTTP answer as events; [`replay`]: a whole reply as events
//! - [`anthropic`], [`openai_chat`], [`scripted`]: the providers; [`providers`]: which one a model name means
//! - [`api_key`]: keys that are fetched; [`log`]: what is done, for whoever follows it
//! - [`tape`]: replies that are recorded and played again
//! - [`http`]: the one door to the network
//! - [`catalog`]: aliases, windows, limits, prices

pub mod anthropic;
pub mod assemble;
pub mod call;
pub mod catalog;
pub mod downgrade;
pub mod event;
pub mod error;
pub mod usage;
pub mod history;
#[cfg(feature = "http")]
pub mod http;
pub mod api_key;
pub mod log;
#[cfg(all(test, feature = "http"))]
mod test_server;
pub mod model;
#[cfg(feature = "http")]
pub mod openai_chat;
mod regular_file;
pub mod providers;
#[cfg(feature = "http")]
mod hint;
pub mod whole_reply;
#[cfg(feature = "http")]
pub mod reply_stream;
pub mod request;
pub mod retry;
pub mod scripted;
pub mod sse;
#[cfg(feature = "http")]
pub mod recording;

pub use event::{BlockDelta, ReplyEvent};
pub use error::{ModelError, ModelErrorKind};
pub use usage::ReportedUsage;
pub use history::History;
pub use model::{ReplyItem, Model};
pub use request::{Effort, Preamble, Request, TaskBudget, Thinking, ThinkingDisplay, ToolSpec};
