//! Tools that are async functions of this program.
//!
//! Modules: `tool` (one tool), `handler` (functions that can be one), `input` (schema and conversion of inputs and answers),
//! `context` (what a function learns about its call), `output` (return values), `server` (tools under one name),
//! `json_rpc` (JSON-RPC for an engine process).

mod context;
mod handler;
mod input;
mod json_rpc;
mod output;
mod server;
mod tool;

pub use context::ToolContext;
pub use handler::{NoState, ToolHandler};
pub use output::{Json, ToolOutput};
pub use server::ToolServer;
pub use tool::{Tool, tool, tool_with_schema, tool_with_state};

pub(crate) use input::InputFormat;
pub(crate) use json_rpc::NotifyFn;
pub(crate) use server::ToolServers;
