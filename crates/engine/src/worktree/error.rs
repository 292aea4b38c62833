//! Errors of worktree operations.

use std::io;
use std::path::PathBuf;

use whimbrel_process::SpawnError;

#[derive(Debug, thiserror::Error)]
pub enum WorktreeError {
    #[error(
        "{0:?} is no name for a work tree: use up to 64 letters, digits, dots, dashes and underscores, beginning with a letter or a digit"
    )]
    InvalidName(String),
    #[error("{} is not in a git repository. A WorktreeCreate hook can make work trees for other systems", .0.display())]
    NoRepository(PathBuf),
    #[error("the repository has no commit yet, so there is nothing to check out")]
    NoCommit,
    /// Programs that the repository's settings name cannot be disabled.
    #[error(
        "the settings of the repository are too many, not readable or not the same everywhere (includeIf), and nobody vouches for it; let the user trust the folder, or look at .git/config"
    )]
    UnsafeSettings,
    #[error("{} is no work tree of this repository", .0.display())]
    NotAWorktree(PathBuf),
    /// Outside the session's directories.
    #[error("{} lies outside the folders of the session; the host can add it (--add-dir)", .0.display())]
    OutsideSession(PathBuf),
    /// It existed before the session.
    #[error("{} was not made by this session: leave it with `keep`, and let the user remove it", .0.display())]
    NotCreatedHere(PathBuf),
    #[error("a hook has stopped it: {0}")]
    BlockedByHook(String),
    /// The directory cannot be created.
    #[error("{} cannot be made: {error}", .folder.display())]
    Io { folder: PathBuf, error: io::Error },
    #[error("git {subcommand} failed: {message}")]
    Git {
        subcommand: String,
        /// Message on stderr.
        message: String,
    },
    #[error("the program git was not found; let the user install it")]
    GitNotFound,
    #[error("git was not run: {0}")]
    Spawn(#[from] SpawnError),
    #[error("it was interrupted")]
    Interrupted,
    #[error("git {0} took longer than ten minutes and was ended")]
    TimedOut(String),
}

impl WorktreeError {
    /// Returns whether another git process holds a lock, or is creating or removing a worktree that can be read only
    /// partially. Git reports this only by its message.
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
