//! Working directory of the session's shell: it follows the commands, but is reset when a command leaves the workspace.

use std::path::{Path, PathBuf};

use super::{Workspace, lock};

impl Workspace {
    /// Working directory of the shell.
    pub fn cwd(&self) -> PathBuf {
        lock(&self.cwd).clone()
    }

    pub fn set_cwd(&self, dir: PathBuf) {
        *lock(&self.cwd) = dir;
    }

    /// Sets the working directory to where a command ended. If that is outside the workspace, resets it to the base
    /// directory and returns a note.
    pub fn follow_command(&self, dir: &Path) -> Option<String> {
        match self.dir_in_workspace(dir) {
            Some(dir) => {
                self.set_cwd(dir);
                None
            }
            None => {
                let base = self.base_dir();
                self.set_cwd(base.clone());
                Some(format!(
                    "({} is outside the workspace: the next command starts in {}.)",
                    dir.display(),
                    base.display()
                ))
            }
        }
    }

    /// The directory as the workspace names it: the shell reports real paths, but the workspace may be named by a
    /// symlink.
    fn dir_in_workspace(&self, dir: &Path) -> Option<PathBuf> {
        if self.contains(dir) {
            return Some(dir.to_path_buf());
        }
        let real = self.root.canonicalize().ok()?;
        dir.strip_prefix(real).ok().map(|rest| self.root.join(rest))
    }

    /// The session's base directory: the entered worktree, otherwise the directory in which the session was started.
    /// The shell returns there when it leaves the workspace.
    pub fn base_dir(&self) -> PathBuf {
        lock(&self.worktree).as_ref().map_or_else(|| self.root.clone(), |tree| tree.path.clone())
    }

    /// Where commands run if their directory is gone; `None` for an isolated agent.
    pub fn fallback_dir(&self) -> Option<&Path> {
        (!self.isolated).then_some(&*self.root)
    }
}
