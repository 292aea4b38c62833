//! Why there is no work tree, or why it stays.

use std::io;
use std::path::PathBuf;

use crate::tasks::SpawnError;

/// What went wrong with a work tree.
#[derive(Debug, thiserror::Error)]
pub enum WorktreeError {
    /// Not a name.
    #[error(
        "{0:?} is no name for a work tree: use up to 64 letters, digits, dots, dashes and underscores, beginning with a letter or a digit"
    )]
    InvalidName(String),
    /// There is no repository.
    #[error("{} is not in a git repository. A WorktreeCreate hook can make work trees for other systems", .0.display())]
    NoRepository(PathBuf),
    /// There is nothing to check out.
    #[error("the repository has no commit yet, so there is nothing to check out")]
    NoCommit,
    /// What it would have git run cannot be switched off.
    #[error(
        "the settings of the repository are too many, not readable or not the same everywhere (includeIf), and nobody vouches for it; let the user trust the folder, or look at .git/config"
    )]
    UnsafeSettings,
    /// Not a work tree of this repository.
    #[error("{} is no work tree of this repository", .0.display())]
    NotAWorktree(PathBuf),
    /// The session may not work there.
    #[error("{} lies outside the folders of the session; the host can add it (--add-dir)", .0.display())]
    OutsideSession(PathBuf),
    /// It was there before the session.
    #[error("{} was not made by this session: leave it with `keep`, and let the user remove it", .0.display())]
    NotCreatedHere(PathBuf),
    /// A hook does not want it.
    #[error("a hook has stopped it: {0}")]
    BlockedByHook(String),
    /// The folder cannot be made.
    #[error("{} cannot be made: {error}", .folder.display())]
    Io {
        /// The folder.
        folder: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// Git said no.
    #[error("git {subcommand} failed: {message}")]
    Git {
        /// What it was to do.
        subcommand: String,
        /// Its words.
        message: String,
    },
    /// There is no git.
    #[error("the program git was not found; let the user install it")]
    GitNotFound,
    /// Git could not be started.
    #[error("git was not run: {0}")]
    Spawn(#[from] SpawnError),
    /// The turn was interrupted.
    #[error("it was interrupted")]
    Interrupted,
    /// Git took too long.
    #[error("git {0} took longer than ten minutes and was ended")]
    TimedOut(String),
}

impl WorktreeError {
    /// Whether another git holds a lock on what was to be written, or is just making a work tree or taking one away, of
    /// which only half can be read. Its own words are all that it tells.
    pub(super) fn is_lock_conflict(&self) -> bool {
        match self {
            Self::Git { message: said, .. } => {
                let unreadable = said.contains("failed to read") || said.contains("Invalid path");
                (unreadable && said.contains("/worktrees"))
                    || said.contains(".lock': File exists")
                    || said.contains("could not lock config file")
            }
            _ => false,
        }
    }
}
