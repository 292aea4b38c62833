//! From what was asked to what it means: options and environment are resolved once, before the first turn.
//!
//! Rooms: [`resolve`] (options to [`Setup`]), `configure` (settings), [`extensions`] (plugins, commands, skills, output
//! styles), `grants` (rights), `hooks` (those of settings and plugins), `ending` (what becomes of background work), [`model`], `history` (copies of files), [`absent`] (what this version does not have yet,
//! and says so), `servers` (MCP servers), `tools` (which of them are on demand), `home` (where things are kept),
//! [`resume`] (which session it is, and whether it goes on from an older one), `in_store` (the same for a session that a
//! store keeps).

pub mod absent;
pub(crate) mod configure;
mod ending;
pub mod extensions;
mod grants;
mod history;
mod home;
pub(crate) mod hooks;
mod in_store;
pub mod model;
pub mod resolve;
pub mod resume;
mod servers;
mod tools;

pub use crate::settings::config_folder;
pub use extensions::Extensions;
pub use resolve::{Setup, SetupError, Start};
pub(crate) use servers::{LARGEST as LARGEST_SERVER_FILE, PROJECT_FILE, files_of as server_files};
