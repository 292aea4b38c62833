//! What the model says in a test, as values.
//!
//! A [`Script`] is a list of [`Reply`] values, given in order, or a closure that looks at each request and answers it.
//! A script is played by the [HTTP mock](crate::http_mock), or by the engine's own [scripted model](crate::scripted).
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
//! Replies are also a file format, so that scripts can be shared with other languages. A reply is a string (its text) or
//! an object; every field is optional:
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
//! `afterMs` waits before the first byte, `paceMs` between events, `hold` until the host releases that name. What the
//! faults look like is told at [`Fault`].

mod model_request;
mod fault;
mod json;
mod reply;
mod sequence;

pub use model_request::{ModelRequest, ApiFormat};
pub use fault::{Fault, FaultCount};
pub use reply::{Reply, ReplyBlock};
pub use sequence::Script;

pub(crate) use sequence::SelectedReply;
