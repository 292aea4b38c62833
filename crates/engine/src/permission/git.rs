//! What a git repository makes git run while it is only read. Whoever packs an archive packs its git metadata too, so the
//! repository of a project that nobody vouches for is looked at before a command reads it unasked.
//!
//! Only files are read here, and git is not started.

mod config;

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use whimbrel_policy::protected::is_protected;
use whimbrel_policy::{GitProgram, Repositories};

use crate::files::{self, Kind, Stamp};
use crate::settings::tracked::{LARGEST_INDEX, elsewhere, nested};
use config::{Setting, settings};

/// The largest settings of a repository that are read.
const LARGEST_CONFIG: u64 = 1024 * 1024;

/// How many repositories inside one another are looked at.
const MOST: usize = 64;

/// The hook that runs when a command that only reads brings the index up to date.
const HOOK: &str = "post-index-change";

/// Repositories that nobody vouches for.
#[derive(Debug, Default)]
pub(super) struct Unvouched {
    /// What is inside each repository, as long as its index has not changed.
    indexes: Mutex<HashMap<PathBuf, (Stamp, Nested)>>,
}

/// The repositories inside one; none if its index is not understood.
type Nested = Option<Arc<[PathBuf]>>;

impl Repositories for Unvouched {
    fn program(&self, work_tree: &Path) -> Option<GitProgram> {
        let mut todo = vec![work_tree.to_owned()];
        for _ in 0..MOST {
            let tree = todo.pop()?;
            match self.look(&tree) {
                Ok(inside) => {
                    todo.extend(inside.iter().map(|path| tree.join(path)).filter(|tree| is_there(tree)));
                }
                Err(program) => return Some(program),
            }
        }
        Some(found("too many repositories inside one another", work_tree))
    }
}

fn is_there(tree: &Path) -> bool {
    !matches!(files::kind(&tree.join(".git")), Ok(Kind::Missing))
}

fn found(key: &str, file: &Path) -> GitProgram {
    GitProgram { key: key.to_owned(), file: file.to_owned() }
}

impl Unvouched {
    /// The repositories inside this one, or what it makes git run.
    fn look(&self, tree: &Path) -> Result<Arc<[PathBuf]>, GitProgram> {
        let unclear = || found("what is not understood", &tree.join(".git"));
        let (own, shared) = folders(tree).map_err(|_| unclear())?;
        let mut hooks = shared.join("hooks");
        for file in [shared.join("config"), own.join("config.worktree")] {
            for setting in read_settings(&file)? {
                match setting.key().as_str() {
                    "core.hookspath" => {
                        hooks = harmless_hooks(tree, &setting.value)
                            .ok_or_else(|| found("core.hooksPath", &file))?;
                    }
                    "core.worktree" if files::tidy(&own.join(&setting.value)) != files::tidy(tree) => {
                        return Err(found("core.worktree", &file));
                    }
                    _ if setting.runs_a_program() => return Err(found(&setting.shown(), &file)),
                    _ => {}
                }
            }
        }
        let hook = hooks.join(HOOK);
        if is_executable(&hook) {
            return Err(found("a hook", &hook));
        }
        self.inside(&own.join("index"))
    }

    /// The repositories that an index lists.
    fn inside(&self, index: &Path) -> Result<Arc<[PathBuf]>, GitProgram> {
        let unclear = || found("what is not understood", index);
        let stamp = match files::kind(index) {
            Ok(Kind::File(stamp)) => stamp,
            Ok(Kind::Missing) => return Ok(Arc::default()),
            Ok(_) | Err(_) => return Err(unclear()),
        };
        let mut known = self.indexes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((before, inside)) = known.get(index)
            && *before == stamp
        {
            return inside.clone().ok_or_else(unclear);
        }
        let (bytes, stamp) = files::read(index, LARGEST_INDEX).map_err(|_| unclear())?;
        let inside: Nested = nested(&bytes).map(Into::into);
        known.insert(index.to_owned(), (stamp, inside.clone()));
        inside.ok_or_else(unclear)
    }
}

/// The folder of a work tree's repository, and the one that it shares with other work trees.
fn folders(tree: &Path) -> io::Result<(PathBuf, PathBuf)> {
    let git = tree.join(".git");
    let own = match files::kind(&git)? {
        Kind::Folder => git,
        Kind::File(_) => elsewhere(&git, tree)?.ok_or(io::ErrorKind::InvalidData)?,
        Kind::Missing | Kind::Pipe | Kind::Socket | Kind::Device => {
            return Err(io::ErrorKind::InvalidData.into());
        }
    };
    let shared = match files::read(&own.join("commondir"), LARGEST_CONFIG) {
        Ok((bytes, _)) => own.join(String::from_utf8_lossy(&bytes).trim_end()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => own.clone(),
        Err(error) => return Err(error),
    };
    Ok((own, shared))
}

fn read_settings(file: &Path) -> Result<Vec<Setting>, GitProgram> {
    let unclear = || found("what is not understood", file);
    match files::read(file, LARGEST_CONFIG) {
        Ok((bytes, _)) => settings(&String::from_utf8_lossy(&bytes)).ok_or_else(unclear),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(_) => Err(unclear()),
    }
}

/// The folder of hooks that a setting names, unless an agent could put a hook there unasked.
fn harmless_hooks(tree: &Path, value: &str) -> Option<PathBuf> {
    let folder = files::tidy(&tree.join(value));
    let plain = !value.starts_with(['~', '%']);
    (plain && (is_protected(&folder) || !folder.starts_with(tree))).then_some(folder)
}

fn is_executable(file: &Path) -> bool {
    files::mode(file).is_ok_and(|mode| mode & 0o111 != 0)
}

#[cfg(test)]
mod tests;
