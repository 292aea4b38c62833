//! Types of the protocol between an agent engine and its host: one JSON object per line, in both directions.
//!
//! This crate holds data types only: no runtime, no I/O, no decisions. Engine, SDK and web clients use the same types,
//! so there is no second vocabulary to translate into.
//!
//! Modules:
//! - [`frame`]: [`Frame`], one line of the wire
//! - [`codec`]: line to frame and back; `error` and `json_path`: errors that name the field; `truncate`: length limits of lines
//! - [`message`]: messages of the conversation (assistant, user, result, stream events, ...)
//!   ([`stream_delta`]: typed pieces of streamed replies)
//! - [`content`]: blocks inside a message, usage, stop reasons
//! - [`notice`]: rarer frames beside the conversation
//! - [`system`]: `system` frames, one struct per subtype
//! - [`control`]: control requests and responses, in one table
//! - [`hook`]: hook events with their inputs and outputs, in one table
//! - [`permission`]: modes, rules, rule updates and decisions
//! - [`options`]: options of a session
//! - `schema`: JSON Schema of all of the above, with the feature of that name; `tagged_union`: its unions
//! - [`names`]: enums that are a list of names
//! - [`tool_names`]: names of built-in tools
//! - [`invisible`]: characters that a reader cannot see
//! - [`raw`]: JSON that is passed on unparsed; `lenient`: fields that clients write differently

#![deny(missing_docs)]

pub mod codec;
pub mod content;
pub mod control;
mod error;
pub mod frame;
pub mod hook;
pub mod invisible;
mod json_path;
mod lenient;
pub mod message;
pub mod names;
pub mod notice;
pub mod options;
pub mod permission;
pub mod raw;
#[cfg(feature = "schema")]
pub mod schema;
pub mod stream_delta;
pub mod system;
#[cfg(feature = "schema")]
mod tagged_union;
pub mod tool_names;
mod truncate;

pub use codec::{WireError, decode, encode};
pub use content::{Block, Role, StopReason, Usage};
pub use frame::Frame;
pub use raw::RawJson;

/// Version of the engine protocol that this crate implements, reported as `claude_code_version`. The official SDKs
/// derive from it which features they may use.
pub const PROTOCOL_VERSION: &str = "2.1.325";
