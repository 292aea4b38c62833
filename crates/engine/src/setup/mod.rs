//! Resolves options, environment and settings into a [`Setup`], once before the first turn.
//!
//! Modules: [`session_request`] (the request), [`setup_types`] (the [`Setup`] and its parts), [`resolve`] (builds it),
//! `location` (session, working directory, storage), [`session_selection`] (a new, resumed or forked session),
//! `store_resume` (the same from a session store), `storage` (where transcripts go), `checkpoints`, `settings`,
//! `discover` (hooks, MCP servers, agents, extensions), [`extensions`] (plugins, commands, skills, output styles),
//! `permissions`, `hooks`, `limits`, `system_prompt`, `background` (policy for background tasks), [`model`],
//! `mcp_servers`, `tools`, `sandbox` (whether commands can be confined), `env` (parsing of variables), `new_session` (after `/clear`), [`unsupported`]
//! (options that this version rejects), `unsupported_variables` (the same for variables).

mod background;
mod checkpoints;
mod discover;
mod env;
pub mod explain;
pub mod extensions;
pub(crate) mod hooks;
mod limits;
mod location;
pub mod mcp_config_files;
mod mcp_servers;
pub mod model;
mod new_session;
mod permissions;
pub mod resolve;
pub(crate) mod sandbox;
pub mod session_request;
pub mod session_selection;
pub(crate) mod settings;
pub mod setup_types;
mod storage;
mod store_resume;
mod system_prompt;
mod tools;
pub mod unsupported;
mod unsupported_variables;

pub use whimbrel_config::settings::config_dir;

pub use extensions::Extensions;
pub(crate) use mcp_servers::{
    MAX_FILE_SIZE as LARGEST_SERVER_FILE, PROJECT_FILE, project_files as server_files,
};
pub use session_request::{SessionRequest, SetupError};
pub use setup_types::{NotificationTurns, Setup};
