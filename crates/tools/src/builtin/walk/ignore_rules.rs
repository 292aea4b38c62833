//! Ignore rules of a walk: `.ignore` files from each directory up to the file system root; `.gitignore` files and
//! `.git/info/exclude` up to the repository root; and the user's global git excludes.
//!
//! The `ignore` crate could read these files itself, but it opens anything of that name and reads it to the end. Here
//! only regular files of limited size are read, and skipped ones are reported.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use whimbrel_os::files::{self, FileKind};

/// Largest ignore file that is read.
const MAX_IGNORE_FILE_BYTES: u64 = 256 * 1024;
/// Total bytes of ignore files per walk: a compiled matcher is many times larger than its file.
const MAX_TOTAL_BYTES: u64 = 2 * 1024 * 1024;
/// Number of skipped files named in the result.
const MAX_NAMED_FILES: usize = 3;

/// Ignore rules of one walk.
pub(super) struct IgnoreRules {
    /// Root of the walk, as named and with symlinks resolved.
    root: PathBuf,
    real: PathBuf,
    /// Rules for the direct entries of each visited directory.
    dirs: RwLock<HashMap<PathBuf, Arc<DirRules>>>,
    global_rules: Gitignore,
    reader: IgnoreFileReader,
}

/// Rules of one directory, linked to those of its parents.
#[derive(Default)]
struct DirRules {
    parent: Option<Arc<DirRules>>,
    ignore: Option<Gitignore>,
    gitignore: Option<Gitignore>,
    exclude: Option<Gitignore>,
    /// Whether a repository begins here: git rules of parent directories do not apply.
    is_repository_root: bool,
}

/// Decision of the rules about a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IgnoreDecision {
    Unmatched,
    Ignored,
    /// Included explicitly, even if hidden.
    Included,
}

impl IgnoreRules {
    /// Reads the rules that apply to a walk from `root`.
    pub(super) fn for_root(root: &Path) -> Self {
        let real = files::real_path(root).unwrap_or_else(|| root.to_path_buf());
        let reader = IgnoreFileReader::default();
        let mut rules = Arc::new(DirRules::default());
        let parents: Vec<&Path> = real.ancestors().collect();
        for dir in parents.into_iter().rev() {
            rules = rules.for_child(dir, &reader);
        }
        let global_rules =
            reader.read_global_rules(root, git_config_files(), ignore::gitignore::gitconfig_excludes_path);
        let dirs = RwLock::new(HashMap::from([(root.to_path_buf(), rules)]));
        Self { root: root.to_path_buf(), real, dirs, global_rules, reader }
    }

    /// Decides about an entry of the walk.
    pub(super) fn decide(&self, path: &Path, is_dir: bool) -> IgnoreDecision {
        let rules = path.parent().and_then(|dir| self.rules_for(dir));
        let own =
            rules.map_or(IgnoreDecision::Unmatched, |rules| rules.decide(&self.real_path(path), is_dir));
        own.or(|| IgnoreDecision::from_match(&self.global_rules.matched(path, is_dir)))
    }

    /// Reads the rules of a directory that the walk enters.
    pub(super) fn enter_dir(&self, dir: &Path) {
        let Some(parents) = dir.parent().and_then(|parents| self.rules_for(parents)) else { return };
        let rules = parents.for_child(&self.real_path(dir), &self.reader);
        self.dirs.write().unwrap_or_else(PoisonError::into_inner).insert(dir.to_path_buf(), rules);
    }

    /// Ignore files that were not read.
    pub(super) fn take_skipped_files(&self) -> Vec<PathBuf> {
        std::mem::take(&mut self.reader.skipped_files.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn rules_for(&self, dir: &Path) -> Option<Arc<DirRules>> {
        self.dirs.read().unwrap_or_else(PoisonError::into_inner).get(dir).cloned()
    }

    fn real_path(&self, path: &Path) -> PathBuf {
        match path.strip_prefix(&self.root) {
            Ok(below) => self.real.join(below),
            Err(_) => path.to_path_buf(),
        }
    }
}

impl DirRules {
    /// Rules for the entries of a child directory; the same object if it has none of its own.
    fn for_child(self: &Arc<Self>, dir: &Path, reader: &IgnoreFileReader) -> Arc<Self> {
        let ignore = reader.read_rules(dir, &dir.join(".ignore"));
        let gitignore = reader.read_rules(dir, &dir.join(".gitignore"));
        let git = dir.join(".git");
        let git_kind = files::file_kind(&git).unwrap_or(FileKind::Missing);
        let exclude = git_dir(dir, git, git_kind);
        let exclude = exclude.and_then(|git| reader.read_rules(dir, &git.join("info/exclude")));
        let is_repository_root = git_kind != FileKind::Missing || exists(&dir.join(".jj"));
        if ignore.is_none() && gitignore.is_none() && exclude.is_none() && !is_repository_root {
            return self.clone();
        }
        Arc::new(Self { parent: Some(self.clone()), ignore, gitignore, exclude, is_repository_root })
    }

    /// Decision of the nearest matching rule: first all `.ignore` files, then the repository's `.gitignore` files, then
    /// its excludes.
    fn decide(&self, path: &Path, is_dir: bool) -> IgnoreDecision {
        fn nearest<'a>(
            files: impl Iterator<Item = &'a Gitignore>,
            path: &Path,
            is_dir: bool,
        ) -> IgnoreDecision {
            let mut decisions = files.map(|rules| IgnoreDecision::from_match(&rules.matched(path, is_dir)));
            decisions
                .find(|decision| *decision != IgnoreDecision::Unmatched)
                .unwrap_or(IgnoreDecision::Unmatched)
        }
        nearest(self.ancestors().filter_map(|rules| rules.ignore.as_ref()), path, is_dir)
            .or(|| {
                nearest(
                    self.ancestors_in_repository().filter_map(|rules| rules.gitignore.as_ref()),
                    path,
                    is_dir,
                )
            })
            .or(|| {
                nearest(
                    self.ancestors_in_repository().filter_map(|rules| rules.exclude.as_ref()),
                    path,
                    is_dir,
                )
            })
    }

    fn ancestors(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |rules| rules.parent.as_deref())
    }

    fn ancestors_in_repository(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |rules| {
            rules.parent.as_deref().filter(|_| !rules.is_repository_root)
        })
    }
}

impl IgnoreDecision {
    fn from_match<T>(found: &Match<T>) -> Self {
        match found {
            Match::None => Self::Unmatched,
            Match::Ignore(_) => Self::Ignored,
            Match::Whitelist(_) => Self::Included,
        }
    }

    fn or(self, other: impl FnOnce() -> Self) -> Self {
        if self == Self::Unmatched { other() } else { self }
    }
}

/// Reads ignore files within limits.
#[derive(Default)]
struct IgnoreFileReader {
    bytes: AtomicU64,
    skipped_files: Mutex<Vec<PathBuf>>,
}

impl IgnoreFileReader {
    /// Rules of a file for paths below `dir`. `None` if there is no such file or it cannot be used.
    fn read_rules(&self, dir: &Path, file: &Path) -> Option<Gitignore> {
        let text = self.read_text(file)?;
        let mut rules = GitignoreBuilder::new(dir);
        for line in text.trim_start_matches('\u{feff}').lines() {
            // Invalid lines are skipped.
            let _ = rules.add_line(None, line);
        }
        rules.build().ok().filter(|rules| !rules.is_empty())
    }

    fn read_text(&self, file: &Path) -> Option<String> {
        let size = match files::file_kind(file) {
            Ok(FileKind::Missing) => return None,
            Ok(FileKind::File(stamp)) => stamp.size,
            Ok(FileKind::Directory | FileKind::Pipe | FileKind::Socket | FileKind::Device) | Err(_) => {
                u64::MAX
            }
        };
        let fits = size <= MAX_IGNORE_FILE_BYTES
            && self.bytes.fetch_add(size, Ordering::Relaxed) + size <= MAX_TOTAL_BYTES;
        let read = fits.then(|| files::read(file, MAX_IGNORE_FILE_BYTES).ok()).flatten();
        if read.is_none() {
            self.skipped_files.lock().unwrap_or_else(PoisonError::into_inner).push(file.to_path_buf());
        }
        read.map(|(bytes, _)| String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The user's global excludes. `find_file` finds their file by reading git's config files to the end, so it is called
    /// only if all of those are regular files of limited size.
    fn read_global_rules(
        &self,
        root: &Path,
        settings: Vec<PathBuf>,
        find_file: impl FnOnce() -> Option<PathBuf>,
    ) -> Gitignore {
        let is_readable = |file: &PathBuf| match files::file_kind(file) {
            Ok(FileKind::Missing) => true,
            Ok(FileKind::File(stamp)) => stamp.size <= MAX_IGNORE_FILE_BYTES,
            Ok(FileKind::Directory | FileKind::Pipe | FileKind::Socket | FileKind::Device) | Err(_) => false,
        };
        if let Some(unreadable) = settings.into_iter().find(|file| !is_readable(file)) {
            self.skipped_files.lock().unwrap_or_else(PoisonError::into_inner).push(unreadable);
            return Gitignore::empty();
        }
        find_file().and_then(|file| self.read_rules(root, &file)).unwrap_or_else(Gitignore::empty)
    }
}

/// Paths of git's global and system config files, existing or not.
fn git_config_files() -> Vec<PathBuf> {
    let in_dir =
        |(variable, name): (&str, &str)| std::env::var_os(variable).map(|dir| PathBuf::from(dir).join(name));
    let default_files =
        [("HOME", ".gitconfig"), ("HOME", ".config/git/config"), ("XDG_CONFIG_HOME", "git/config")];
    let from_env = ["GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"].into_iter().filter_map(std::env::var_os);
    let files = default_files.into_iter().filter_map(in_dir).chain(from_env.map(PathBuf::from));
    files.chain([PathBuf::from("/etc/gitconfig")]).collect()
}

fn exists(path: &Path) -> bool {
    files::file_kind(path).is_ok_and(|kind| kind != FileKind::Missing)
}

/// The git directory of a working tree root; `kind` is the kind of its `.git`.
fn git_dir(dir: &Path, git: PathBuf, kind: FileKind) -> Option<PathBuf> {
    match kind {
        FileKind::Directory => Some(git),
        FileKind::File(_) => linked_git_dir(dir, &git),
        FileKind::Missing | FileKind::Pipe | FileKind::Socket | FileKind::Device => None,
    }
}

/// The git directory of a working tree whose `.git` is a file: for a linked worktree that of the main repository, for a
/// submodule its own.
fn linked_git_dir(dir: &Path, git: &Path) -> Option<PathBuf> {
    let line = |file: &Path| {
        let (bytes, _) = files::read(file, 4096).ok()?;
        String::from_utf8(bytes).ok()?.lines().next().map(|line| line.trim_end().to_owned())
    };
    let own = dir.join(line(git)?.strip_prefix("gitdir: ")?);
    Some(match line(&own.join("commondir")) {
        Some(common) => own.join(common),
        None => own,
    })
}

/// A note on skipped ignore files; empty if there are none.
pub(super) fn skipped_files_note(skipped: &[PathBuf], cwd: &Path) -> String {
    if skipped.is_empty() {
        return String::new();
    }
    let names: Vec<String> =
        skipped.iter().take(MAX_NAMED_FILES).map(|path| super::display_path(path, cwd)).collect();
    let more = skipped.len().saturating_sub(MAX_NAMED_FILES);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!(
        "\n(Skipped ignore files that are too large, unreadable or not regular files: {}{more}.)",
        names.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use std::fs;

    use nix::sys::stat::Mode;
    use nix::unistd::mkfifo;

    use super::*;

    #[test]
    fn global_excludes_are_read_only_from_regular_files() {
        let dir = tempfile::tempdir().unwrap();
        let (pipe, rules) = (dir.path().join("pipe"), dir.path().join("rules"));
        mkfifo(&pipe, Mode::S_IRWXU).unwrap();
        fs::write(&rules, "*.bak\n").unwrap();
        let none = dir.path().join("none");
        for (settings, file, expected, skipped) in [
            (vec![none.clone()], Some(rules.clone()), 1, vec![]),
            (vec![none.clone(), rules.clone()], Some(pipe.clone()), 0, vec![pipe.clone()]),
            (vec![none.clone()], None, 0, vec![]),
        ] {
            let reader = IgnoreFileReader::default();
            assert_eq!(reader.read_global_rules(dir.path(), settings, || file).len(), expected);
            assert_eq!(reader.skipped_files.into_inner().unwrap(), skipped);
        }
        let reader = IgnoreFileReader::default();
        let never = || panic!("the settings must not be read");
        assert!(reader.read_global_rules(dir.path(), vec![pipe.clone()], never).is_empty());
        assert_eq!(reader.skipped_files.into_inner().unwrap(), [pipe]);
    }
}
