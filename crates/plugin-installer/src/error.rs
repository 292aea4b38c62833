//! Errors of operations on marketplaces and plugins.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use whimbrel_config::settings::SettingsError;
use whimbrel_process::SpawnError;

#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// The user, or the owner of a marketplace or plugin, must correct something.
    #[error("{0}")]
    Invalid(String),
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error("cannot access {}: {error}", .path.display())]
    Io { path: PathBuf, error: io::Error },
    /// A marketplace file cannot be downloaded.
    #[error("cannot download {url}: {cause}. Check the URL and your network")]
    Download { url: String, cause: String },
    #[error("another program changes the plugins at the moment. Try again when it has finished")]
    Busy,
}

impl InstallError {
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        |error| Self::Io { path: path.into(), error }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum GitError {
    #[error("git was not found. Install git, or use a marketplace in a local directory")]
    NotFound,
    #[error(
        "git {subcommand} failed: {message}. Check the address, your network and your access to the repository"
    )]
    Failed {
        subcommand: String,
        /// Message on stderr.
        message: String,
    },
    #[error(
        "git {subcommand} took longer than {} seconds and was stopped. Check your network, or set \
         CLAUDE_CODE_PLUGIN_GIT_TIMEOUT_MS to allow more time",
        .limit.as_secs_f32()
    )]
    TimedOut { subcommand: String, limit: Duration },
    /// Filters that the settings name cannot be disabled.
    #[error(
        "your git configuration is too large or not UTF-8, so its filters cannot be disabled. Check git config --list"
    )]
    UnreadableSettings,
    #[error("git was not run: {0}")]
    Spawn(#[from] SpawnError),
}
