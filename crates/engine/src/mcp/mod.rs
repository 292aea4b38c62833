//! MCP servers: programs, addresses and objects of the host that offer tools, resources and prompts.
//!
//! The protocol is rmcp's; what is here is policy: which servers there are, how long they may take, how much they may
//! say, what becomes of one that dies, and what of theirs reaches the model.
//!
//! - [`config`]: which servers; `admission`: whom the settings let in; `expand`: variables in their entries; [`names`]:
//!   what their tools are called
//! - `transport/`: how messages get there and back
//! - `connection`: one connection; `desk`: our side of it; `listing`: what the other side offers; `schema`: bounds
//! - [`login`]: what shows a server who asks
//! - `server`: one server's life; `fault`: what can go wrong; `limits`: how long and how much
//! - [`Roster`]: all servers of a session; `status`: how they are; `slot`: the place of one; `offers`: what they offer
//!   together; `asked`: what is asked of single ones; [`Pool`]: servers
//!   that sessions share; `local`: servers that are code in this process
//! - `tool`, `resources`, `prompts`: what a model or a person can use; `terms`: what an entry says about single tools;
//!   `result`: what comes of it; [`Supply`]: all that as toolboxes, commands and conversations take it
//! - `kept`: the files in which people keep their servers, for whoever changes them; `serving`: the other way round, our
//!   own tools for others

mod server_policy;
mod requests;
pub mod config;
mod connection;
mod client_handler;
mod expand;
mod error;
mod config_files;
mod limits;
mod listing;
mod local;
pub mod oauth;
pub mod names;
mod features;
mod server_pool;
mod prompts;
mod resources;
mod tool_result;
mod registry;
mod schema;
mod server;
mod tool_server;
mod slot;
mod status;
mod tool_cache;
mod deps;
mod tool_policy;
#[cfg(test)]
mod tests;
mod tool;
mod transport;

pub use server_policy::ServerPolicy;
pub use config::{ProjectApproval, ServerEntry, ServerOrigin, ServerConfigs};
pub use expand::VariableLookup;
pub use error::{ReconnectBackoff, McpError};
pub use config_files::{McpConfigFiles, ConfigFileEntry, ConfigScope};
pub use limits::McpLimits;
pub use local::{LocalServer, LocalTool, LocalToolFn};
pub use server_pool::ServerPool;
pub use prompts::PromptCommand;
pub use registry::{ServerRegistry, Toggle};
pub use tool_server::serve_tools;
pub use tool_cache::ToolCache;
pub use deps::{ElicitFn, ServerNotification, McpCallProgress, ServerDeps, NotifyFn, elicit_via_host};
pub use tool::McpTool;
