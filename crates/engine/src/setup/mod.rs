//! From what was asked to what it means: options and environment are resolved once, before the first turn.
//!
//! Rooms: [`start`] (what was asked), [`resolve`] (that to [`Setup`]), `site` (which session it is and where it works),
//! `configure` (settings), `brought` (what files, plugins and the host bring), [`extensions`] (plugins, commands, skills,
//! output styles), `grants` (rights), `hooks` (those of settings and plugins), `limits`, `prompt`, `ending` (what becomes of
//! background work), [`model`], `history` (copies of files), [`absent`] (what this version does not have yet, and says
//! so), `servers` (MCP servers), `tools` (which of them are on demand), `home` (where things are kept),
//! [`resume`] (which session it is, and whether it goes on from an older one), `in_store` (the same for a session that a
//! store keeps).

pub mod unsupported;
mod discover;
pub(crate) mod configure;
mod background;
pub mod extensions;
mod permissions;
mod checkpoints;
mod storage;
pub(crate) mod hooks;
mod store_resume;
mod limits;
pub mod model;
mod system_prompt;
pub mod resolve;
pub mod resume;
mod mcp_servers;
mod location;
pub mod start;
mod tools;

pub use crate::settings::config_dir;
pub use extensions::Extensions;
pub use resolve::Setup;
pub(crate) use mcp_servers::{MAX_FILE_SIZE as LARGEST_SERVER_FILE, PROJECT_FILE, project_files as server_files};
pub use start::{SetupError, Start};
