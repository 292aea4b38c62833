//! Git worktrees: a second checkout of the session's repository, for isolated work.
//!
//! They are in `.claude/worktrees/NAME` below the session's directory, on a branch `worktree-NAME`. Hooks may create
//! and remove them instead, for other version control systems. Modules: `git` (runs git), `git_overrides` (disables
//! programs in settings), `error`.

mod error;
mod git;
mod git_overrides;
#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use whimbrel_config::settings::Trust;
use whimbrel_os::files::{self, FileHandle, FileKind, PathChangedError};
use whimbrel_os::ids;
use whimbrel_wire::hook::{HookEvent, WorktreeCreate, WorktreeRemove};

pub use self::error::WorktreeError;
use self::git::Git;
use crate::hooks::{HookDispatcher, HookInputBuilder, join_reasons};
use crate::tasks::TaskRegistry;
use crate::workspace::Workspace;
use crate::workspace::worktree::{Worktree, WorktreeCreator, has_git_link};

/// Directory of the worktrees, relative to the session's directory.
const WORKTREES_DIR: &str = ".claude/worktrees";

const MAX_NAME_LENGTH: usize = 64;

/// Creates and removes worktrees of a session.
pub struct Worktrees {
    git: Git,
    workspace: Arc<Workspace>,
    hooks: HookDispatcher,
}

/// What would be lost by removing a worktree.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WorktreeChanges {
    /// Changed and new files.
    pub files: usize,
    /// Commits since its base commit.
    pub commits: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemovalOutcome {
    Removed,
    /// Kept because of these changes.
    Kept(WorktreeChanges),
}

impl WorktreeChanges {
    pub fn is_empty(self) -> bool {
        self == Self::default()
    }
}

impl Worktrees {
    pub fn new(
        workspace: &Arc<Workspace>,
        tasks: TaskRegistry,
        hooks: HookDispatcher,
        trust: Trust,
        cancel: CancellationToken,
    ) -> Self {
        let git = Git::new(tasks, workspace.program_environment(), cancel, trust);
        Self { git, workspace: Arc::clone(workspace), hooks }
    }

    /// Creates a worktree with this name or a generated one. An existing one of the name is reused.
    pub async fn create(&self, name: Option<&str>) -> Result<Worktree, WorktreeError> {
        let name = name.map_or_else(|| ids::new_task_id('w'), str::to_owned);
        check_name(&name)?;
        match self.create_by_hook(&name).await? {
            Some(tree) => Ok(tree),
            None => self.create_with_git(&name).await,
        }
    }

    /// Finds an existing worktree of the same repository within the session's directories.
    pub async fn find(&self, path: &str) -> Result<Worktree, WorktreeError> {
        let path = files::normalize_path(&self.workspace.resolve(path));
        let real = files::real_path(&path).ok_or_else(|| WorktreeError::NotAWorktree(path.clone()))?;
        if !self.workspace.contains(&real) {
            return Err(WorktreeError::OutsideSession(path));
        }
        let root = self.workspace.root();
        let listed = self.git.list_worktrees(root).await?;
        let (_, branch) =
            listed.into_iter().find(|(tree, _)| *tree == real).ok_or(WorktreeError::NotAWorktree(path))?;
        Ok(Worktree { path: real, branch, creator: WorktreeCreator::External })
    }

    /// Counts what would be lost. Worktrees made by a hook are left to the hook.
    pub async fn changes(&self, tree: &Worktree) -> Result<WorktreeChanges, WorktreeError> {
        let is_gone = matches!(files::file_kind(&tree.path), Ok(FileKind::Missing));
        match &tree.creator {
            WorktreeCreator::Hook => Ok(WorktreeChanges::default()),
            WorktreeCreator::Engine { base } if is_gone => self.branch_changes(tree, base).await,
            WorktreeCreator::External if is_gone => Ok(WorktreeChanges::default()),
            WorktreeCreator::Engine { base } => self.git.changes(&tree.path, Some(base)).await,
            WorktreeCreator::External => self.git.changes(&tree.path, None).await,
        }
    }

    /// What would be lost if the directory is already gone: commits on its branch.
    async fn branch_changes(&self, tree: &Worktree, base: &str) -> Result<WorktreeChanges, WorktreeError> {
        let root = self.workspace.root();
        let commits = match &tree.branch {
            Some(branch) if self.git.has_branch(root, branch).await => {
                self.git.count_commits(root, base, branch).await?
            }
            _ => 0,
        };
        Ok(WorktreeChanges { files: 0, commits })
    }

    /// Removes a worktree with its content, and the branch that was created for it.
    pub async fn remove(&self, tree: &Worktree) -> Result<(), WorktreeError> {
        let build_input = |builder: &HookInputBuilder| {
            builder.build(WorktreeRemove { worktree_path: tree.path.display().to_string() })
        };
        let output = self.hooks.dispatch(HookEvent::WorktreeRemove, build_input, self.git.cancel()).await;
        if !output.blocked.is_empty() {
            return Err(WorktreeError::BlockedByHook(join_reasons(&output.blocked)));
        }
        match &tree.creator {
            WorktreeCreator::Hook => Ok(()),
            WorktreeCreator::External => Err(WorktreeError::NotCreatedHere(tree.path.clone())),
            WorktreeCreator::Engine { .. } => {
                let root = self.workspace.root();
                self.git.remove_worktree(root, &tree.path).await?;
                if let Some(branch) = &tree.branch {
                    // A remaining branch does no harm.
                    let _ = self.git.remove_branch(root, branch).await;
                }
                Ok(())
            }
        }
    }

    /// Removes a worktree unless something would be lost.
    pub async fn remove_if_clean(&self, tree: &Worktree) -> Result<RemovalOutcome, WorktreeError> {
        let changes = self.changes(tree).await?;
        if !changes.is_empty() {
            return Ok(RemovalOutcome::Kept(changes));
        }
        self.remove(tree).await?;
        Ok(RemovalOutcome::Removed)
    }

    async fn create_by_hook(&self, name: &str) -> Result<Option<Worktree>, WorktreeError> {
        let build_input = |builder: &HookInputBuilder| builder.build(WorktreeCreate { name: name.into() });
        let output = self.hooks.dispatch(HookEvent::WorktreeCreate, build_input, self.git.cancel()).await;
        if !output.blocked.is_empty() {
            return Err(WorktreeError::BlockedByHook(join_reasons(&output.blocked)));
        }
        let Some(path) = output.event_specific.worktree_path else { return Ok(None) };
        let path = self.workspace.root().join(path.trim());
        let real = match files::file_kind(&path) {
            Ok(FileKind::Directory) => files::real_path(&path),
            _ => None,
        };
        let real = real.ok_or_else(|| WorktreeError::NotAWorktree(path.clone()))?;
        if !self.workspace.contains(&real) {
            return Err(WorktreeError::OutsideSession(real));
        }
        Ok(Some(Worktree { path: real, branch: None, creator: WorktreeCreator::Hook }))
    }

    async fn create_with_git(&self, name: &str) -> Result<Worktree, WorktreeError> {
        let root = self.workspace.root();
        let base = self.git.head_commit(root).await?;
        let path = worktrees_dir(root)?.join(name);
        let branch = format!("worktree-{name}");
        let listed = self.git.list_worktrees(root).await?;
        if let Some((_, existing_branch)) = listed.into_iter().find(|(tree, _)| *tree == path) {
            if has_git_link(&path) {
                let base = self.git.fork_point(&path, &base).await.unwrap_or(base);
                return Ok(Worktree {
                    path,
                    branch: existing_branch,
                    creator: WorktreeCreator::Engine { base },
                });
            }
            // Its directory was deleted: prune it, so that it can be created again.
            self.git.remove_worktree(root, &path).await?;
        }
        self.git.add_worktree(root, &path, &branch, &base).await?;
        Ok(Worktree { path, branch: Some(branch), creator: WorktreeCreator::Engine { base } })
    }
}

/// Creates the directory of the worktrees, ignored by git.
fn worktrees_dir(root: &Path) -> Result<PathBuf, WorktreeError> {
    let dir = files::real_path(root).unwrap_or_else(|| root.to_owned()).join(WORKTREES_DIR);
    match ensure_gitignore(&dir) {
        Ok(()) => Ok(dir),
        // A symlink would lead the checkout outside of the session's directories.
        Err(error) if PathChangedError::is_source_of(&error) => Err(WorktreeError::OutsideSession(dir)),
        Err(error) => Err(WorktreeError::Io { dir, error }),
    }
}

/// Creates a directory with a `.gitignore` that ignores everything. Follows no symlinks.
fn ensure_gitignore(dir: &Path) -> io::Result<()> {
    let ignore = FileHandle::for_real_path(&dir.join(".gitignore"))?;
    if ignore.kind()? != FileKind::Missing {
        return Ok(());
    }
    match ignore.create(b"*\n") {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        created => created.map(drop),
    }
}

/// A name must be a plain component of a path and of a branch name.
fn check_name(name: &str) -> Result<(), WorktreeError> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let is_valid = !name.is_empty()
        && name.len() <= MAX_NAME_LENGTH
        && name.chars().all(is_allowed)
        && name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && !name.contains("..")
        && !name.ends_with('.')
        && !name.to_ascii_lowercase().ends_with(".lock");
    if is_valid { Ok(()) } else { Err(WorktreeError::InvalidName(name.into())) }
}
