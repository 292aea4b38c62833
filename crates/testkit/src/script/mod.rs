//! Replies of a scripted model, as values.
//!
//! A [`Script`] is a list of [`Reply`] values, used in order, or a closure that answers each request. The [HTTP
//! mock](crate::http_mock) plays it, or the engine's own [scripted model](crate::scripted_model).
//!
//! ```
//! use serde_json::json;
//! use whimbrel_testkit::{Reply, Script};
//!
//! let script = Script::from([
//!     Reply::text("Let me look.").and_tool("Read", json!({"file_path": "notes.txt"})),
//!     Reply::text("It says hello.").status(529).times(2),
//! ]);
//! # let _ = script;
//! ```
//!
//! # As JSON
//!
//! Replies are also a file format, so that scripts can be shared with other languages. A reply is a string (its text)
//! or an object; every field is optional:
//!
//! ```json
//! {
//!   "say": [
//!     {"text": "Let me look."},
//!     {"thinking": "Which file?", "signature": "sig"},
//!     {"tool": "Read", "input": {"file_path": "notes.txt"}, "id": "toolu_x"},
//!     {"tool": "Read", "rawInput": "{\"file_pa"},
//!     {"block": {"type": "redacted_thinking", "data": "x"}}
//!   ],
//!   "stop": "tool_use",
//!   "usage": {"input_tokens": 100, "output_tokens": 10},
//!   "chunk": 8,
//!   "afterMs": 0,
//!   "paceMs": 0,
//!   "hold": "a name",
//!   "faults": [{"kind": "status", "status": 529, "times": 2}, {"kind": "cut", "after": 3}],
//!   "thenNext": false
//! }
//! ```
//!
//! `afterMs` delays the first byte, `paceMs` is the interval between events, `hold` delays the reply until the host
//! releases that name. [`Fault`] documents the faults.

mod fault;
mod json;
mod model_request;
mod reply;
mod select_reply;

pub use fault::{Fault, FaultCount};
pub use model_request::{ApiFormat, ModelRequest};
pub use reply::{Reply, ReplyBlock};
pub use select_reply::Script;

pub(crate) use select_reply::SelectedReply;
