//! The language that an agent engine and its host speak: one JSON object per line, in both directions.
//!
//! This crate only knows words. It has no runtime, opens nothing and decides nothing; the engine, the SDK and a
//! web page all use the same types, so there is no second vocabulary to translate into.
//!
//! The rooms:
//! - [`frame`]: [`Frame`], everything that can stand on a line
//! - [`codec`]: line to frame and back, with errors that name the field
//! - [`message`]: what the conversation consists of (assistant, user, result, stream events, ...)
//! - [`content`]: the blocks inside a message, usage, stop reasons
//! - [`notice`]: the rarer messages beside the conversation
//! - [`system`]: the many `system` notices, one struct each
//! - [`control`]: questions and answers between host and engine, one table
//! - [`hook`]: hook events, their inputs and outputs, one table
//! - [`permission`]: modes, rules, updates and verdicts
//! - [`options`]: everything a caller can ask of a session
//! - [`schema`]: the JSON Schema of all of the above
//! - [`names`]: enums that are a list of names
//! - [`raw`]: JSON that is passed on unread

#![deny(missing_docs)]

pub mod codec;
pub mod content;
pub mod control;
mod truncate;
pub mod frame;
pub mod hook;
mod lenient;
pub mod message;
pub mod names;
pub mod notice;
pub mod options;
pub mod permission;
pub mod raw;
pub mod schema;
pub mod system;

pub use codec::{WireError, decode, encode};
pub use content::{Block, Role, StopReason, Usage};
pub use frame::Frame;
pub use raw::RawJson;

/// The version of the engine protocol that we speak, as reported in `claude_code_version`.
/// The official SDKs read it to find out which features they may use.
pub const PROTOCOL_VERSION: &str = "2.1.325";
