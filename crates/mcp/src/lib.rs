//! MCP client: servers that are programs, URLs or objects of the host, and offer tools, resources and prompts.
//!
//! The protocol is rmcp's. This crate adds the policy: which servers exist, timeouts and size limits, reconnecting,
//! and which of their tools, prompts and instructions reach the model.
//!
//! - [`config`]: configured servers; `server_policy`: allow and deny lists of the settings, approval of project
//!   servers; `expand`: `${VAR}` in entries; [`names`]: tool names
//! - `transport/`: stdio, HTTP, SSE and host transports
//! - `connection`: one connection; `client_handler`: requests and notifications from the server; `listing`:
//!   `tools/list` and the like; `schema`: limits on input schemas; [`oauth`]: logins
//! - `server_lifecycle`: one server with reconnects; `reconnect_backoff`: when it is tried again; `error`: errors by
//!   remedy; `limits`: timeouts and sizes
//! - [`ServerRegistry`]: all servers of a session; `slot`: one entry of it; `status`: status frames; `features`: tools
//!   and prompts of all servers; `requests`: requests outside the conversation; [`ServerPool`]: servers that sessions
//!   share; `in_process`: servers in this process
//! - `server_tool`: a tool and its calls; `tool_policy`: per-tool policy of an entry; `prompts`: prompts as commands;
//!   `content`: results as blocks for the model
//!
//! The crate `tools` makes tools for the model of them.

mod client_handler;
pub mod config;
mod connection;
pub mod content;
mod deps;
mod error;
mod expand;
mod features;
mod in_process;
mod limits;
mod listing;
pub mod names;
pub mod oauth;
mod prompts;
mod reconnect_backoff;
mod registry;
mod requests;
mod schema;
mod server_lifecycle;
mod server_policy;
mod server_pool;
mod server_tool;
mod slot;
mod status;
#[cfg(test)]
mod tests;
mod tool_policy;
mod transport;

pub use config::{ServerConfigs, ServerEntry, ServerOrigin};
pub use content::FailedCall;
pub use deps::{ElicitFn, McpCallProgress, NotifyFn, ServerDeps, ServerNotification, elicit_via_host};
pub use error::McpError;
pub use expand::VariableLookup;
pub use in_process::{InProcessCall, InProcessServer, InProcessTool, InProcessToolFn, ProgressFn};
pub use limits::{MAX_TOTAL_INSTRUCTIONS_BYTES, McpLimits};
pub use listing::ListedTool;
pub use prompts::PromptCommand;
pub use reconnect_backoff::ReconnectBackoff;
pub use registry::{ServerRegistry, Toggle, WeakServerRegistry};
pub use server_policy::{ProjectApproval, ServerPolicy};
pub use server_pool::ServerPool;
pub use server_tool::{ServerTool, ToolOwner, ToolRequest};
