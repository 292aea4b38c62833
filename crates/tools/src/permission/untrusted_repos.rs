//! Detects programs that a git repository makes git run during read-only commands. An archive may contain git metadata,
//! so the repository of an untrusted project is inspected before such a command is allowed.
//!
//! Only files are read; git is not started.

mod git_config;

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use whimbrel_config::settings::trust::git_index::{MAX_INDEX_SIZE, git_dir_from_file, submodule_paths};
use whimbrel_os::files::{self, FileKind, FileStamp};
use whimbrel_policy::paths::protected::is_protected;
use whimbrel_policy::{GitInspector, GitProgram};

use git_config::{GitSetting, parse_config};

const MAX_CONFIG_BYTES: u64 = 1024 * 1024;

/// Maximum number of nested repositories to inspect.
const MAX_NESTED_REPOS: usize = 64;

/// Hook that runs when a read-only command refreshes the index.
const INDEX_HOOK: &str = "post-index-change";

/// Inspector of untrusted repositories.
#[derive(Debug, Default)]
pub(super) struct UntrustedRepos {
    /// Nested repositories by index file, valid while its stamp is unchanged.
    index_cache: Mutex<HashMap<PathBuf, (FileStamp, NestedRepos)>>,
}

/// Nested repositories; `None` if the index cannot be parsed.
type NestedRepos = Option<Arc<[PathBuf]>>;

impl GitInspector for UntrustedRepos {
    fn configured_program(&self, work_tree: &Path) -> Option<GitProgram> {
        let mut pending = vec![work_tree.to_owned()];
        for _ in 0..MAX_NESTED_REPOS {
            let tree = pending.pop()?;
            match self.inspect(&tree) {
                Ok(nested) => {
                    pending.extend(
                        nested.iter().map(|path| tree.join(path)).filter(|tree| has_repository(tree)),
                    );
                }
                Err(program) => return Some(program),
            }
        }
        Some(git_program("too many nested repositories", work_tree))
    }
}

fn has_repository(tree: &Path) -> bool {
    !matches!(files::file_kind(&tree.join(".git")), Ok(FileKind::Missing))
}

fn git_program(key: &str, file: &Path) -> GitProgram {
    GitProgram { key: key.to_owned(), file: file.to_owned() }
}

impl UntrustedRepos {
    /// Inspects one repository; returns its nested ones, or the program that it makes git run.
    fn inspect(&self, tree: &Path) -> Result<Arc<[PathBuf]>, GitProgram> {
        let unrecognized = || git_program("unrecognized content", &tree.join(".git"));
        let (git_dir, common_dir) = git_dirs(tree).map_err(|_| unrecognized())?;
        let mut hooks = common_dir.join("hooks");
        for file in [common_dir.join("config"), git_dir.join("config.worktree")] {
            for setting in read_config(&file)? {
                match setting.key().as_str() {
                    "core.hookspath" => {
                        hooks = safe_hooks_dir(tree, &setting.value)
                            .ok_or_else(|| git_program("core.hooksPath", &file))?;
                    }
                    "core.worktree"
                        if files::normalize_path(&git_dir.join(&setting.value))
                            != files::normalize_path(tree) =>
                    {
                        return Err(git_program("core.worktree", &file));
                    }
                    _ if setting.runs_program() => return Err(git_program(&setting.full_name(), &file)),
                    _ => {}
                }
            }
        }
        let hook = hooks.join(INDEX_HOOK);
        if is_executable(&hook) {
            return Err(git_program("a hook", &hook));
        }
        self.nested_repos(&git_dir.join("index"))
    }

    /// Nested repositories listed in an index.
    fn nested_repos(&self, index: &Path) -> Result<Arc<[PathBuf]>, GitProgram> {
        let unrecognized = || git_program("unrecognized content", index);
        let stamp = match files::file_kind(index) {
            Ok(FileKind::File(stamp)) => stamp,
            Ok(FileKind::Missing) => return Ok(Arc::default()),
            Ok(_) | Err(_) => return Err(unrecognized()),
        };
        let mut cache = self.index_cache.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((cached_stamp, nested)) = cache.get(index)
            && *cached_stamp == stamp
        {
            return nested.clone().ok_or_else(unrecognized);
        }
        let (bytes, stamp) = files::read(index, MAX_INDEX_SIZE).map_err(|_| unrecognized())?;
        let nested: NestedRepos = submodule_paths(&bytes).map(Into::into);
        cache.insert(index.to_owned(), (stamp, nested.clone()));
        nested.ok_or_else(unrecognized)
    }
}

/// Git directory of a worktree, and the common one that it shares with other worktrees.
fn git_dirs(tree: &Path) -> io::Result<(PathBuf, PathBuf)> {
    let git = tree.join(".git");
    let git_dir = match files::file_kind(&git)? {
        FileKind::Directory => git,
        FileKind::File(_) => git_dir_from_file(&git, tree)?.ok_or(io::ErrorKind::InvalidData)?,
        FileKind::Missing | FileKind::Pipe | FileKind::Socket | FileKind::Device => {
            return Err(io::ErrorKind::InvalidData.into());
        }
    };
    let common_dir = match files::read(&git_dir.join("commondir"), MAX_CONFIG_BYTES) {
        Ok((bytes, _)) => git_dir.join(String::from_utf8_lossy(&bytes).trim_end()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => git_dir.clone(),
        Err(error) => return Err(error),
    };
    Ok((git_dir, common_dir))
}

fn read_config(file: &Path) -> Result<Vec<GitSetting>, GitProgram> {
    let unrecognized = || git_program("unrecognized content", file);
    match files::read(file, MAX_CONFIG_BYTES) {
        Ok((bytes, _)) => parse_config(&String::from_utf8_lossy(&bytes)).ok_or_else(unrecognized),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(_) => Err(unrecognized()),
    }
}

/// Hooks directory that a setting names, unless an agent could write hooks there without a prompt.
fn safe_hooks_dir(tree: &Path, value: &str) -> Option<PathBuf> {
    let dir = files::normalize_path(&tree.join(value));
    let is_plain = !value.starts_with(['~', '%']);
    (is_plain && (is_protected(&dir) || !dir.starts_with(tree))).then_some(dir)
}

fn is_executable(file: &Path) -> bool {
    files::file_mode(file).is_ok_and(|mode| mode & 0o111 != 0)
}

#[cfg(test)]
mod tests;
