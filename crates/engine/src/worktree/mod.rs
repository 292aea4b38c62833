//! Git work trees: a second checkout of the session's repository, so that an agent can work without disturbing the first.
//!
//! They lie in `.claude/worktrees/NAME` below the session's folder, on a branch `worktree-NAME`. Hooks may make and remove
//! them instead, for other systems than git. Rooms: `git` (running the program), `silence` (what it must not run),
//! `fault` (what can go wrong).

mod error;
mod git;
mod git_overrides;
#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use whimbrel_wire::hook::{HookEvent, WorktreeCreate, WorktreeRemove};

pub use self::error::WorktreeError;
use self::git::Git;
use crate::files::{self, FileKind, PathChangedError, FileHandle};
use crate::hooks::{HookDispatcher, HookInputBuilder, join_reasons};
use crate::ids;
use crate::tools::ToolContext;
use crate::workspace::Workspace;

/// Where work trees lie, below the session's folder.
const WORKTREES_DIR: &str = ".claude/worktrees";

/// How long a name may be.
const MAX_NAME_LENGTH: usize = 64;

/// Makes and removes work trees for a session.
pub struct Worktrees {
    git: Git,
    workspace: Arc<Workspace>,
    hooks: HookDispatcher,
}

/// A work tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worktree {
    /// Its folder.
    pub path: PathBuf,
    /// The branch that is checked out in it, if git knows it.
    pub branch: Option<String>,
    /// Who made it.
    creator: WorktreeCreator,
}

/// Who made a work tree; it decides who removes it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum WorktreeCreator {
    /// We did, from this commit.
    Engine { base: String },
    /// A hook.
    Hook,
    /// Somebody else, before the session.
    External,
}

/// What there is in a work tree that would be lost with it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WorktreeChanges {
    /// Files that are changed or new.
    pub files: usize,
    /// Commits that no other branch has got from here.
    pub commits: usize,
}

/// What became of a work tree that was to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemovalOutcome {
    /// It is gone.
    Removed,
    /// It stays, because there is something in it.
    Kept(WorktreeChanges),
}

impl Worktree {
    /// Whether it is still there. A folder of that name that is no work tree any more would lead git to the person's own
    /// tree.
    pub fn exists(&self) -> bool {
        match &self.creator {
            WorktreeCreator::Engine { .. } | WorktreeCreator::External => has_git_link(&self.path),
            WorktreeCreator::Hook => matches!(files::file_kind(&self.path), Ok(FileKind::Directory)),
        }
    }
}

/// Whether git has a work tree in a folder.
fn has_git_link(path: &Path) -> bool {
    !matches!(files::file_kind(&path.join(".git")), Ok(FileKind::Missing))
}

impl WorktreeChanges {
    /// Whether nothing would be lost.
    pub fn is_empty(self) -> bool {
        self == Self::default()
    }
}

impl Worktrees {
    /// For the session that a call belongs to.
    pub fn for_context(call: &ToolContext) -> Self {
        Self {
            git: Git::new(
                call.tasks.clone(),
                call.workspace.environment(),
                call.cancel.clone(),
                call.mode.trust(),
            ),
            workspace: Arc::clone(&call.workspace),
            hooks: call.hooks.clone(),
        }
    }

    /// Makes a work tree of what is checked out, with this name or a new one. One of this name that is there already is
    /// used again.
    pub async fn create(&self, name: Option<&str>) -> Result<Worktree, WorktreeError> {
        let name = name.map_or_else(|| ids::new_task_id('w'), str::to_owned);
        check_name(&name)?;
        match self.create_by_hook(&name).await? {
            Some(tree) => Ok(tree),
            None => self.create_with_git(&name).await,
        }
    }

    /// A work tree that is there already, of the same repository and within what the session may use.
    pub async fn find(&self, path: &str) -> Result<Worktree, WorktreeError> {
        let path = files::normalize_path(&self.workspace.resolve(path));
        let real = files::real_path(&path).ok_or_else(|| WorktreeError::NotAWorktree(path.clone()))?;
        if !self.workspace.contains(&real) {
            return Err(WorktreeError::OutsideSession(path));
        }
        let root = self.workspace.root();
        let listed = self.git.list_worktrees(root).await?;
        let (_, branch) = listed.into_iter().find(|(tree, _)| *tree == real).ok_or(WorktreeError::NotAWorktree(path))?;
        Ok(Worktree { path: real, branch, creator: WorktreeCreator::External })
    }

    /// What would be lost with a work tree. What a hook has made is the hook's to judge.
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

    /// What would be lost with a work tree whose folder is gone: what was committed in it.
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

    /// Removes a work tree with everything in it, and the branch that was made for it.
    pub async fn remove(&self, tree: &Worktree) -> Result<(), WorktreeError> {
        let told =
            |scene: &HookInputBuilder| scene.build(WorktreeRemove { worktree_path: tree.path.display().to_string() });
        let said = self.hooks.dispatch(HookEvent::WorktreeRemove, told, self.git.cancel()).await;
        if !said.blocked.is_empty() {
            return Err(WorktreeError::BlockedByHook(join_reasons(&said.blocked)));
        }
        match &tree.creator {
            WorktreeCreator::Hook => Ok(()),
            WorktreeCreator::External => Err(WorktreeError::NotCreatedHere(tree.path.clone())),
            WorktreeCreator::Engine { .. } => {
                let root = self.workspace.root();
                self.git.remove_worktree(root, &tree.path).await?;
                if let Some(branch) = &tree.branch {
                    // A branch that stays does no harm: its commits are not lost.
                    let _ = self.git.remove_branch(root, branch).await;
                }
                Ok(())
            }
        }
    }

    /// Removes a work tree if nothing is lost with it.
    pub async fn remove_if_clean(&self, tree: &Worktree) -> Result<RemovalOutcome, WorktreeError> {
        let changes = self.changes(tree).await?;
        if !changes.is_empty() {
            return Ok(RemovalOutcome::Kept(changes));
        }
        self.remove(tree).await?;
        Ok(RemovalOutcome::Removed)
    }

    async fn create_by_hook(&self, name: &str) -> Result<Option<Worktree>, WorktreeError> {
        let told = |scene: &HookInputBuilder| scene.build(WorktreeCreate { name: name.into() });
        let said = self.hooks.dispatch(HookEvent::WorktreeCreate, told, self.git.cancel()).await;
        if !said.blocked.is_empty() {
            return Err(WorktreeError::BlockedByHook(join_reasons(&said.blocked)));
        }
        let Some(path) = said.event_specific.worktree_path else { return Ok(None) };
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
        if let Some((_, found)) = listed.into_iter().find(|(tree, _)| *tree == path) {
            if has_git_link(&path) {
                let base = self.git.fork_point(&path, &base).await.unwrap_or(base);
                return Ok(Worktree { path, branch: found, creator: WorktreeCreator::Engine { base } });
            }
            // Somebody has taken its folder away: git is to forget it, so that it can be made again.
            self.git.remove_worktree(root, &path).await?;
        }
        self.git.add_worktree(root, &path, &branch, &base).await?;
        Ok(Worktree { path, branch: Some(branch), creator: WorktreeCreator::Engine { base } })
    }
}

/// The folder of the work trees, made if need be. The repository does not see it.
fn worktrees_dir(root: &Path) -> Result<PathBuf, WorktreeError> {
    let folder = files::real_path(root).unwrap_or_else(|| root.to_owned()).join(WORKTREES_DIR);
    match ensure_gitignore(&folder) {
        Ok(()) => Ok(folder),
        // A link would lead the checkout to where the session has nothing to do.
        Err(error) if PathChangedError::is_source_of(&error) => Err(WorktreeError::OutsideSession(folder)),
        Err(error) => Err(WorktreeError::Io { folder, error }),
    }
}

/// Has git overlook a folder, and makes it if need be. No link is followed.
fn ensure_gitignore(folder: &Path) -> io::Result<()> {
    let ignore = FileHandle::for_real_path(&folder.join(".gitignore"))?;
    if ignore.kind()? != FileKind::Missing {
        return Ok(());
    }
    match ignore.create(b"*\n") {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made.map(drop),
    }
}

/// A name is one part of a path and one part of a branch, and means nothing else to either.
fn check_name(name: &str) -> Result<(), WorktreeError> {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_' | '-');
    let fits = !name.is_empty()
        && name.len() <= MAX_NAME_LENGTH
        && name.chars().all(plain)
        && name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && !name.contains("..")
        && !name.ends_with('.')
        && !name.to_ascii_lowercase().ends_with(".lock");
    if fits { Ok(()) } else { Err(WorktreeError::InvalidName(name.into())) }
}
