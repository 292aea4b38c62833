//! Tools that are async functions of this program.
//!
//! Modules: `tool` (one tool), `answer` (return values), `server` (tools under one name), `json_rpc` (JSON-RPC for an
//! engine process).

mod answer;
mod json_rpc;
mod server;
mod tool;

pub use answer::{Json, ToolAnswer};
pub use server::ToolServer;
pub use tool::{Tool, tool};

pub(crate) use server::ToolServers;
