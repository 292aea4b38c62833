//! Tools that are async functions of this program.
//!
//! Rooms: `tool` (one tool), `answer` (what a function may give back), `server` (tools under one name), `rpc` (the same
//! for an engine that is another process).

mod answer;
mod rpc;
mod server;
mod tool;

pub use answer::{Json, ToolAnswer};
pub use server::ToolServer;
pub use tool::{Tool, tool};

pub(crate) use server::ToolServers;
