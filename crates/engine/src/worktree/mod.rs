//! Git work trees: a second checkout of the session's repository, so that an agent can work without disturbing the first.
//!
//! They lie in `.claude/worktrees/NAME` below the session's folder, on a branch `worktree-NAME`. Hooks may make and remove
//! them instead, for other systems than git. Rooms: `git` (running the program), `silence` (what it must not run),
//! `fault` (what can go wrong).

mod fault;
mod git;
mod silence;
#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use whimbrel_wire::hook::{HookEvent, WorktreeCreate, WorktreeRemove};

pub use self::fault::Fault;
use self::git::Git;
use crate::files::{self, Kind, Moved, Spot};
use crate::hooks::{Lookout, Scene, joined};
use crate::ids;
use crate::tools::Call;
use crate::workspace::Workspace;

/// Where work trees lie, below the session's folder.
const FOLDER: &str = ".claude/worktrees";

/// How long a name may be.
const LONGEST_NAME: usize = 64;

/// Makes and removes work trees for a session.
pub struct Worktrees {
    git: Git,
    workspace: Arc<Workspace>,
    lookout: Lookout,
}

/// A work tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worktree {
    /// Its folder.
    pub path: PathBuf,
    /// The branch that is checked out in it, if git knows it.
    pub branch: Option<String>,
    /// Who made it.
    maker: Maker,
}

/// Who made a work tree; it decides who removes it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Maker {
    /// We did, from this commit.
    Engine { base: String },
    /// A hook.
    Hook,
    /// Somebody else, before the session.
    Others,
}

/// What there is in a work tree that would be lost with it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Changes {
    /// Files that are changed or new.
    pub files: usize,
    /// Commits that no other branch has got from here.
    pub commits: usize,
}

/// What became of a work tree that was to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    /// It is gone.
    Removed,
    /// It stays, because there is something in it.
    Kept(Changes),
}

impl Worktree {
    /// Whether it is still there. A folder of that name that is no work tree any more would lead git to the person's own
    /// tree.
    pub fn is_there(&self) -> bool {
        match &self.maker {
            Maker::Engine { .. } | Maker::Others => is_checked_out(&self.path),
            Maker::Hook => matches!(files::kind(&self.path), Ok(Kind::Folder)),
        }
    }
}

/// Whether git has a work tree in a folder.
fn is_checked_out(path: &Path) -> bool {
    !matches!(files::kind(&path.join(".git")), Ok(Kind::Missing))
}

impl Changes {
    /// Whether nothing would be lost.
    pub fn is_empty(self) -> bool {
        self == Self::default()
    }
}

impl Worktrees {
    /// For the session that a call belongs to.
    pub fn of(call: &Call) -> Self {
        Self {
            git: Git::new(
                call.tasks.clone(),
                call.workspace.environment(),
                call.cancel.clone(),
                call.mode.trust(),
            ),
            workspace: Arc::clone(&call.workspace),
            lookout: call.lookout.clone(),
        }
    }

    /// Makes a work tree of what is checked out, with this name or a new one. One of this name that is there already is
    /// used again.
    pub async fn create(&self, name: Option<&str>) -> Result<Worktree, Fault> {
        let name = name.map_or_else(|| ids::task('w'), str::to_owned);
        check_name(&name)?;
        match self.made_by_hook(&name).await? {
            Some(tree) => Ok(tree),
            None => self.make(&name).await,
        }
    }

    /// A work tree that is there already, of the same repository and within what the session may use.
    pub async fn find(&self, path: &str) -> Result<Worktree, Fault> {
        let path = files::tidy(&self.workspace.resolve(path));
        let real = files::real_path(&path).ok_or_else(|| Fault::NoTree(path.clone()))?;
        if !self.workspace.contains(&real) {
            return Err(Fault::Outside(path));
        }
        let root = self.workspace.root();
        let listed = self.git.trees(root).await?;
        let (_, branch) = listed.into_iter().find(|(tree, _)| *tree == real).ok_or(Fault::NoTree(path))?;
        Ok(Worktree { path: real, branch, maker: Maker::Others })
    }

    /// What would be lost with a work tree. What a hook has made is the hook's to judge.
    pub async fn changes(&self, tree: &Worktree) -> Result<Changes, Fault> {
        let is_gone = matches!(files::kind(&tree.path), Ok(Kind::Missing));
        match &tree.maker {
            Maker::Hook => Ok(Changes::default()),
            Maker::Engine { base } if is_gone => self.left_on_branch(tree, base).await,
            Maker::Others if is_gone => Ok(Changes::default()),
            Maker::Engine { base } => self.git.changes(&tree.path, Some(base)).await,
            Maker::Others => self.git.changes(&tree.path, None).await,
        }
    }

    /// What would be lost with a work tree whose folder is gone: what was committed in it.
    async fn left_on_branch(&self, tree: &Worktree, base: &str) -> Result<Changes, Fault> {
        let root = self.workspace.root();
        let commits = match &tree.branch {
            Some(branch) if self.git.knows(root, branch).await => {
                self.git.commits(root, base, branch).await?
            }
            _ => 0,
        };
        Ok(Changes { files: 0, commits })
    }

    /// Removes a work tree with everything in it, and the branch that was made for it.
    pub async fn remove(&self, tree: &Worktree) -> Result<(), Fault> {
        let told =
            |scene: &Scene| scene.of(WorktreeRemove { worktree_path: tree.path.display().to_string() });
        let said = self.lookout.raise(HookEvent::WorktreeRemove, told, self.git.cancel()).await;
        if !said.blocked.is_empty() {
            return Err(Fault::Blocked(joined(&said.blocked)));
        }
        match &tree.maker {
            Maker::Hook => Ok(()),
            Maker::Others => Err(Fault::NotOurs(tree.path.clone())),
            Maker::Engine { .. } => {
                let root = self.workspace.root();
                self.git.remove_tree(root, &tree.path).await?;
                if let Some(branch) = &tree.branch {
                    // A branch that stays does no harm: its commits are not lost.
                    let _ = self.git.remove_branch(root, branch).await;
                }
                Ok(())
            }
        }
    }

    /// Removes a work tree if nothing is lost with it.
    pub async fn remove_if_clean(&self, tree: &Worktree) -> Result<Removal, Fault> {
        let changes = self.changes(tree).await?;
        if !changes.is_empty() {
            return Ok(Removal::Kept(changes));
        }
        self.remove(tree).await?;
        Ok(Removal::Removed)
    }

    async fn made_by_hook(&self, name: &str) -> Result<Option<Worktree>, Fault> {
        let told = |scene: &Scene| scene.of(WorktreeCreate { name: name.into() });
        let said = self.lookout.raise(HookEvent::WorktreeCreate, told, self.git.cancel()).await;
        if !said.blocked.is_empty() {
            return Err(Fault::Blocked(joined(&said.blocked)));
        }
        let Some(path) = said.special.worktree_path else { return Ok(None) };
        let path = self.workspace.root().join(path.trim());
        let real = match files::kind(&path) {
            Ok(Kind::Folder) => files::real_path(&path),
            _ => None,
        };
        let real = real.ok_or_else(|| Fault::NoTree(path.clone()))?;
        if !self.workspace.contains(&real) {
            return Err(Fault::Outside(real));
        }
        Ok(Some(Worktree { path: real, branch: None, maker: Maker::Hook }))
    }

    async fn make(&self, name: &str) -> Result<Worktree, Fault> {
        let root = self.workspace.root();
        let base = self.git.head(root).await?;
        let path = shelf(root)?.join(name);
        let branch = format!("worktree-{name}");
        let listed = self.git.trees(root).await?;
        if let Some((_, found)) = listed.into_iter().find(|(tree, _)| *tree == path) {
            if is_checked_out(&path) {
                let base = self.git.fork_point(&path, &base).await.unwrap_or(base);
                return Ok(Worktree { path, branch: found, maker: Maker::Engine { base } });
            }
            // Somebody has taken its folder away: git is to forget it, so that it can be made again.
            self.git.remove_tree(root, &path).await?;
        }
        self.git.add_tree(root, &path, &branch, &base).await?;
        Ok(Worktree { path, branch: Some(branch), maker: Maker::Engine { base } })
    }
}

/// The folder of the work trees, made if need be. The repository does not see it.
fn shelf(root: &Path) -> Result<PathBuf, Fault> {
    let folder = files::real_path(root).unwrap_or_else(|| root.to_owned()).join(FOLDER);
    match ignored(&folder) {
        Ok(()) => Ok(folder),
        // A link would lead the checkout to where the session has nothing to do.
        Err(error) if Moved::is(&error) => Err(Fault::Outside(folder)),
        Err(error) => Err(Fault::Disk { folder, error }),
    }
}

/// Has git overlook a folder, and makes it if need be. No link is followed.
fn ignored(folder: &Path) -> io::Result<()> {
    let ignore = Spot::find(&folder.join(".gitignore"))?;
    if ignore.kind()? != Kind::Missing {
        return Ok(());
    }
    match ignore.create(b"*\n") {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made.map(drop),
    }
}

/// A name is one part of a path and one part of a branch, and means nothing else to either.
fn check_name(name: &str) -> Result<(), Fault> {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_' | '-');
    let fits = !name.is_empty()
        && name.len() <= LONGEST_NAME
        && name.chars().all(plain)
        && name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && !name.contains("..")
        && !name.ends_with('.')
        && !name.to_ascii_lowercase().ends_with(".lock");
    if fits { Ok(()) } else { Err(Fault::Name(name.into())) }
}
