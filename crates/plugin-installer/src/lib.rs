//! Marketplaces of plugins: adding, updating and removing them, and installing plugins from them.
//!
//! Files and records are those of the official engine (`whimbrel_config::plugins::records`), so both programs can share
//! them. Sessions only read what is installed here; they never fetch anything.
//!
//! A killed process leaves either the old or the new state: files are prepared in a temporary directory and renamed,
//! and a record is written after the files that it names. One process changes the plugin directory at a time.
//!
//! - [`installer`]: what all operations need; `marketplaces` and `plugins`: the operations; [`listing`]: what is there
//! - `git`: fetches repositories; `download`: fetches a marketplace file from a web server
//! - `copy_tree`: copies the files of a plugin; `dir_lock`: one process at a time
//! - [`error`]

mod copy_tree;
mod dir_lock;
mod download;
pub mod error;
mod git;
pub mod installer;
pub mod listing;
pub mod marketplaces;
pub mod plugins;

pub use error::{GitError, InstallError};
pub use installer::PluginInstaller;
