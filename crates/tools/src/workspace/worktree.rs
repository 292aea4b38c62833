//! A git worktree, or a directory that a hook made in its place. The operations are in [`crate::worktrees`].

use std::path::{Path, PathBuf};

use whimbrel_os::files::{self, FileKind};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worktree {
    pub path: PathBuf,
    /// The checked out branch, if known.
    pub branch: Option<String>,
    pub(crate) creator: WorktreeCreator,
}

/// Who created a worktree; decides how it is removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WorktreeCreator {
    /// The engine, from this commit.
    Engine { base: String },
    /// A hook.
    Hook,
    /// Existed before the session.
    External,
}

impl Worktree {
    /// Returns whether it still exists. A directory that is no longer a worktree would make git use the user's own
    /// checkout.
    pub fn exists(&self) -> bool {
        match &self.creator {
            WorktreeCreator::Engine { .. } | WorktreeCreator::External => has_git_link(&self.path),
            WorktreeCreator::Hook => matches!(files::file_kind(&self.path), Ok(FileKind::Directory)),
        }
    }
}

/// Returns whether a directory has a `.git` entry.
pub(crate) fn has_git_link(path: &Path) -> bool {
    !matches!(files::file_kind(&path.join(".git")), Ok(FileKind::Missing))
}
