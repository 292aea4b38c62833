//! Errors of worktree operations.

use std::io;
use std::path::PathBuf;

use whimbrel_process::SpawnError;

#[derive(Debug, thiserror::Error)]
pub enum WorktreeError {
    #[error(
        "{0:?} is not a valid worktree name: use up to 64 letters, digits, dots, dashes and underscores, starting with \
         a letter or digit"
    )]
    InvalidName(String),
    #[error("{} is not in a git repository. A WorktreeCreate hook can create worktrees for other version control \
        systems", .0.display())]
    NoRepository(PathBuf),
    #[error("the repository has no commit yet, so there is nothing to check out")]
    NoCommit,
    /// Programs that the repository's settings name cannot be disabled.
    #[error(
        "the git configuration is too large, unreadable or conditional (includeIf), and the project is not trusted; \
         let the user trust the directory, or check .git/config"
    )]
    UnsafeSettings,
    #[error("{} is not a worktree of this repository", .0.display())]
    NotAWorktree(PathBuf),
    /// Outside the session's directories.
    #[error("{} is outside the directories of the session; the host can add it (--add-dir)", .0.display())]
    OutsideSession(PathBuf),
    /// It existed before the session.
    #[error("{} was not created by this session: leave it with `keep` and let the user remove it", .0.display())]
    NotCreatedHere(PathBuf),
    #[error("a hook blocked it: {0}")]
    BlockedByHook(String),
    /// The directory cannot be created.
    #[error("cannot create {}: {error}", .dir.display())]
    Io { dir: PathBuf, error: io::Error },
    #[error("git {subcommand} failed: {message}")]
    Git {
        subcommand: String,
        /// Message on stderr.
        message: String,
    },
    #[error("git was not found; let the user install it")]
    GitNotFound,
    #[error("git was not run: {0}")]
    Spawn(#[from] SpawnError),
    #[error("it was interrupted")]
    Interrupted,
    #[error("git {0} took longer than ten minutes and was stopped")]
    TimedOut(String),
}

impl WorktreeError {
    /// Returns whether another git process holds a lock, or is creating or removing a worktree that can be read only
    /// partially. Git reports this only by its message.
    pub(super) fn is_lock_conflict(&self) -> bool {
        match self {
            Self::Git { message, .. } => {
                let unreadable = message.contains("failed to read") || message.contains("Invalid path");
                (unreadable && message.contains("/worktrees"))
                    || message.contains(".lock': File exists")
                    || message.contains("could not lock config file")
            }
            _ => false,
        }
    }
}
