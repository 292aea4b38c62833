//! Whimbrel as an agent for editors: the Agent Client Protocol, version 1, on the official crate of the protocol and on
//! the Rust SDK. One process serves any number of sessions.
//!
//! Frames of the engine become updates, requests of the editor become calls of the SDK. There is no agent logic here.
//!
//! Modules:
//! - the connection: `serve_stdio` in `connection` (one handler per request), `stdio` (lines on stdin and stdout),
//!   `outbox` (what waits to be written), `capabilities` (what either side can do), `errors`, `steering`
//! - sessions: `server` (which are open), `open_session` (options and callbacks of a session), `engines` (which are shared),
//!   `session` (the task of one), `session_list`, `stored_conversation`,
//!   `existing_file`, `ids`
//! - translation, pure: `translate` (frames to updates), `replay` (stored messages to updates), `prompt`, `turn_end`,
//!   `permission_options`, `question_form`, `elicitation`, `config_options`, `mcp_servers`

mod capabilities;
mod config_options;
mod connection;
mod elicitation;
mod engines;
mod errors;
mod existing_file;
mod ids;
mod mcp_servers;
mod open_session;
mod outbox;
mod permission_options;
mod prompt;
mod question_form;
mod replay;
mod server;
mod session;
mod session_list;
mod stdio;
mod steering;
mod stored_conversation;
mod translate;
mod turn_end;

pub use connection::serve_stdio;
