//! Client for language models: a request goes in, a stream of events comes out, for every provider alike.
//!
//! The internal vocabulary is that of the Messages API; pure functions translate other dialects to and from it.
//! The crate does not know tools, permissions or sessions: it receives schemas and messages and returns events.
//!
//! Modules:
//! - [`model`]: the trait [`Model`], one attempt at one reply
//! - [`request`]: the request; [`history`]: the conversation as JSON bytes, each message serialized once;
//!   `prompt_cache`: cache breakpoints in both, pure
//! - [`event`]: events of a streamed reply; [`usage`]: token usage as reported; [`assemble`]: events to blocks, pure
//! - [`model_call`]: one reply including retries, timeouts and request downgrades
//! - [`retry`]: the retry policy, pure; [`downgrade`]: which optional part of a rejected request to drop, pure;
//!   `unsupported_parts`: the parts that a provider rejected so far; [`error`]: the error type; `error_hint`: remedies
//!   appended to a provider's error message, pure
//! - [`sse`]: bytes to server-sent events, pure; [`reply_stream`]: an HTTP response as reply events;
//!   [`whole_reply`]: a complete reply as reply events
//! - [`anthropic`], [`openai_chat`], [`scripted`]: the providers; [`providers`]: maps a model name to its provider
//! - [`key_source`]: keys fetched on demand
//! - [`recording`]: records replies to a file and replays them
//! - [`http`]: the HTTP client; `images`: images scaled to the limits of a request
//! - [`catalog`]: aliases, context windows, output limits, prices
//! - `test_server`: HTTP server of the unit tests

#![cfg_attr(not(feature = "http"), allow(dead_code, reason = "some parts serve only providers over HTTP"))]

pub mod anthropic;
pub mod assemble;
pub mod catalog;
pub mod downgrade;
pub mod error;
#[cfg(feature = "http")]
mod error_hint;
pub mod event;
pub mod history;
#[cfg(feature = "http")]
pub mod http;
pub mod images;
pub mod key_source;
pub mod model;
pub mod model_call;
#[cfg(feature = "http")]
pub mod openai_chat;
mod prompt_cache;
pub mod providers;
#[cfg(feature = "http")]
pub mod recording;
#[cfg(feature = "http")]
pub mod reply_stream;
pub mod request;
pub mod retry;
pub mod scripted;
pub mod sse;
#[cfg(all(test, feature = "http"))]
mod test_server;
#[cfg(feature = "http")]
mod unsupported_parts;
pub mod usage;
pub mod whole_reply;

pub use error::{ModelError, ModelErrorKind};
pub use event::{BlockDelta, ReplyEvent};
pub use history::History;
pub use model::{Model, RawEvents, ReplyItem};
pub use prompt_cache::PromptCaching;
pub use request::{
    Effort, OptionalPart, Request, RequestPrefix, TaskBudget, Thinking, ThinkingDisplay, ToolSpec,
};
pub use usage::ReportedUsage;
