//! Tools that are async functions of this program.
//!
//! Modules: `tool` (one tool), `output` (return values), `server` (tools under one name), `json_rpc` (JSON-RPC for an
//! engine process).

mod json_rpc;
mod output;
mod server;
mod tool;

pub use output::{Json, ToolOutput};
pub use server::ToolServer;
pub use tool::{Tool, tool};

pub(crate) use server::ToolServers;
