//! Which files are ignored: what `.ignore` files say, from the folder of a file up to the root of the disk; what
//! `.gitignore` files and `.git/info/exclude` say, up to the top of the repository; and the user's own git settings.
//!
//! The walk's library knows these files too, but it opens whatever has their name and reads it to the end. Here only
//! regular files of a sensible size are read, and what was left out is remembered for the answer.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::files::{self, Kind};

/// The largest ignore file that is read.
const LARGEST: u64 = 256 * 1024;
/// How many bytes of ignore files one walk reads in all: each becomes a matcher many times its size.
const IN_ALL: u64 = 2 * 1024 * 1024;
/// How many left out files are named.
const NAMED: usize = 3;

/// What ignore files say about the files below one folder.
pub(super) struct Ignored {
    /// Where the walk begins, as it is named and as it really lies.
    root: PathBuf,
    real: PathBuf,
    /// The rules for what lies directly in each folder that the walk goes into.
    folders: RwLock<HashMap<PathBuf, Arc<Rules>>>,
    for_all: Gitignore,
    reader: Reader,
}

/// The rules of one folder, and of those above it.
#[derive(Default)]
struct Rules {
    above: Option<Arc<Rules>>,
    ignore: Option<Gitignore>,
    gitignore: Option<Gitignore>,
    exclude: Option<Gitignore>,
    /// Whether a repository begins here: what git is told above does not concern it.
    is_top: bool,
}

/// What the rules say about a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    /// Nothing.
    Nothing,
    /// It is ignored.
    Ignored,
    /// It counts, even if it is hidden.
    Wanted,
}

impl Ignored {
    /// The rules for a walk that begins at `root`.
    pub(super) fn below(root: &Path) -> Self {
        let real = files::real_path(root).unwrap_or_else(|| root.to_path_buf());
        let reader = Reader::default();
        let mut rules = Arc::new(Rules::default());
        let above: Vec<&Path> = real.ancestors().collect();
        for folder in above.into_iter().rev() {
            rules = rules.enter(folder, &reader);
        }
        let for_all = reader.for_all(root, git_settings(), ignore::gitignore::gitconfig_excludes_path);
        let folders = RwLock::new(HashMap::from([(root.to_path_buf(), rules)]));
        Self { root: root.to_path_buf(), real, folders, for_all, reader }
    }

    /// What the rules say about an entry of the walk.
    pub(super) fn word(&self, path: &Path, is_folder: bool) -> Word {
        let rules = path.parent().and_then(|folder| self.of(folder));
        let own = rules.map_or(Word::Nothing, |rules| rules.word(&self.really(path), is_folder));
        own.or(|| Word::of(&self.for_all.matched(path, is_folder)))
    }

    /// Reads the rules of a folder that the walk goes into.
    pub(super) fn enter(&self, folder: &Path) {
        let Some(above) = folder.parent().and_then(|above| self.of(above)) else { return };
        let rules = above.enter(&self.really(folder), &self.reader);
        self.folders.write().unwrap_or_else(PoisonError::into_inner).insert(folder.to_path_buf(), rules);
    }

    /// Ignore files that were not read; empty if there are none.
    pub(super) fn left_out(&self) -> Vec<PathBuf> {
        std::mem::take(&mut self.reader.left_out.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn of(&self, folder: &Path) -> Option<Arc<Rules>> {
        self.folders.read().unwrap_or_else(PoisonError::into_inner).get(folder).cloned()
    }

    fn really(&self, path: &Path) -> PathBuf {
        match path.strip_prefix(&self.root) {
            Ok(below) => self.real.join(below),
            Err(_) => path.to_path_buf(),
        }
    }
}

impl Rules {
    /// The rules for what lies in a folder below; the same if it has none of its own.
    fn enter(self: &Arc<Self>, folder: &Path, reader: &Reader) -> Arc<Self> {
        let ignore = reader.read(folder, &folder.join(".ignore"));
        let gitignore = reader.read(folder, &folder.join(".gitignore"));
        let git = folder.join(".git");
        let control = files::kind(&git).unwrap_or(Kind::Missing);
        let exclude = git_folder(folder, git, control);
        let exclude = exclude.and_then(|git| reader.read(folder, &git.join("info/exclude")));
        let is_top = control != Kind::Missing || is_there(&folder.join(".jj"));
        if ignore.is_none() && gitignore.is_none() && exclude.is_none() && !is_top {
            return self.clone();
        }
        Arc::new(Self { above: Some(self.clone()), ignore, gitignore, exclude, is_top })
    }

    /// What the nearest rule says: of all `.ignore` files, then of the repository's `.gitignore` files, then of its
    /// others.
    fn word(&self, path: &Path, is_folder: bool) -> Word {
        fn nearest<'a>(files: impl Iterator<Item = &'a Gitignore>, path: &Path, is_folder: bool) -> Word {
            let mut words = files.map(|rules| Word::of(&rules.matched(path, is_folder)));
            words.find(|word| *word != Word::Nothing).unwrap_or(Word::Nothing)
        }
        nearest(self.upwards().filter_map(|rules| rules.ignore.as_ref()), path, is_folder)
            .or(|| nearest(self.to_the_top().filter_map(|rules| rules.gitignore.as_ref()), path, is_folder))
            .or(|| nearest(self.to_the_top().filter_map(|rules| rules.exclude.as_ref()), path, is_folder))
    }

    fn upwards(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |rules| rules.above.as_deref())
    }

    fn to_the_top(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |rules| rules.above.as_deref().filter(|_| !rules.is_top))
    }
}

impl Word {
    fn of<T>(found: &Match<T>) -> Self {
        match found {
            Match::None => Self::Nothing,
            Match::Ignore(_) => Self::Ignored,
            Match::Whitelist(_) => Self::Wanted,
        }
    }

    fn or(self, other: impl FnOnce() -> Self) -> Self {
        if self == Self::Nothing { other() } else { self }
    }
}

/// Reads ignore files, within limits.
#[derive(Default)]
struct Reader {
    bytes: AtomicU64,
    left_out: Mutex<Vec<PathBuf>>,
}

impl Reader {
    /// The rules in a file about what lies below `folder`. None if there is no such file, or none that can be used.
    fn read(&self, folder: &Path, file: &Path) -> Option<Gitignore> {
        let text = self.text(file)?;
        let mut rules = GitignoreBuilder::new(folder);
        for line in text.trim_start_matches('\u{feff}').lines() {
            // A line that makes no sense says nothing.
            let _ = rules.add_line(None, line);
        }
        rules.build().ok().filter(|rules| !rules.is_empty())
    }

    fn text(&self, file: &Path) -> Option<String> {
        let size = match files::kind(file) {
            Ok(Kind::Missing) => return None,
            Ok(Kind::File(stamp)) => stamp.size,
            Ok(Kind::Folder | Kind::Pipe | Kind::Socket | Kind::Device) | Err(_) => u64::MAX,
        };
        let fits = size <= LARGEST && self.bytes.fetch_add(size, Ordering::Relaxed) + size <= IN_ALL;
        let read = fits.then(|| files::read(file, LARGEST).ok()).flatten();
        if read.is_none() {
            self.left_out.lock().unwrap_or_else(PoisonError::into_inner).push(file.to_path_buf());
        }
        read.map(|(bytes, _)| String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The rules that the user has for all repositories. `which` reads git's own settings to find the file that holds
    /// them, and reads them to the end: it is asked only if all of them are files of a sensible size.
    fn for_all(
        &self,
        root: &Path,
        settings: Vec<PathBuf>,
        which: impl FnOnce() -> Option<PathBuf>,
    ) -> Gitignore {
        let is_sane = |file: &PathBuf| match files::kind(file) {
            Ok(Kind::Missing) => true,
            Ok(Kind::File(stamp)) => stamp.size <= LARGEST,
            Ok(Kind::Folder | Kind::Pipe | Kind::Socket | Kind::Device) | Err(_) => false,
        };
        if let Some(odd) = settings.into_iter().find(|file| !is_sane(file)) {
            self.left_out.lock().unwrap_or_else(PoisonError::into_inner).push(odd);
            return Gitignore::empty();
        }
        which().and_then(|file| self.read(root, &file)).unwrap_or_else(Gitignore::empty)
    }
}

/// Where git's settings lie that are not of one repository, whether they exist or not.
fn git_settings() -> Vec<PathBuf> {
    let in_folder = |(variable, name): (&str, &str)| {
        std::env::var_os(variable).map(|folder| PathBuf::from(folder).join(name))
    };
    let usual = [("HOME", ".gitconfig"), ("HOME", ".config/git/config"), ("XDG_CONFIG_HOME", "git/config")];
    let named = ["GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"].into_iter().filter_map(std::env::var_os);
    let files = usual.into_iter().filter_map(in_folder).chain(named.map(PathBuf::from));
    files.chain([PathBuf::from("/etc/gitconfig")]).collect()
}

fn is_there(path: &Path) -> bool {
    files::kind(path).is_ok_and(|kind| kind != Kind::Missing)
}

/// Where git keeps what it knows of a folder, if the folder is the top of a working tree: `kind` is what its `.git` is.
fn git_folder(folder: &Path, git: PathBuf, kind: Kind) -> Option<PathBuf> {
    match kind {
        Kind::Folder => Some(git),
        Kind::File(_) => linked(folder, &git),
        Kind::Missing | Kind::Pipe | Kind::Socket | Kind::Device => None,
    }
}

/// The repository of a working tree whose `.git` is a file: for a linked one the repository that it belongs to, for a
/// submodule its own.
fn linked(folder: &Path, git: &Path) -> Option<PathBuf> {
    let line = |file: &Path| {
        let (bytes, _) = files::read(file, 4096).ok()?;
        String::from_utf8(bytes).ok()?.lines().next().map(|line| line.trim_end().to_owned())
    };
    let own = folder.join(line(git)?.strip_prefix("gitdir: ")?);
    Some(match line(&own.join("commondir")) {
        Some(common) => own.join(common),
        None => own,
    })
}

/// A sentence on the ignore files that were not used; empty if all were.
pub(super) fn gap(left_out: &[PathBuf], cwd: &Path) -> String {
    if left_out.is_empty() {
        return String::new();
    }
    let names: Vec<String> = left_out.iter().take(NAMED).map(|path| super::shown(path, cwd)).collect();
    let more = left_out.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!(
        "\n(Ignore files that are no regular files, cannot be read or are too large were not followed: {}{more}.)",
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
    fn the_users_own_rules_are_read_only_from_files() {
        let folder = tempfile::tempdir().unwrap();
        let (pipe, rules) = (folder.path().join("pipe"), folder.path().join("rules"));
        mkfifo(&pipe, Mode::S_IRWXU).unwrap();
        fs::write(&rules, "*.bak\n").unwrap();
        let none = folder.path().join("none");
        for (settings, file, expected, left_out) in [
            (vec![none.clone()], Some(rules.clone()), 1, vec![]),
            (vec![none.clone(), rules.clone()], Some(pipe.clone()), 0, vec![pipe.clone()]),
            (vec![none.clone()], None, 0, vec![]),
        ] {
            let reader = Reader::default();
            assert_eq!(reader.for_all(folder.path(), settings, || file).len(), expected);
            assert_eq!(reader.left_out.into_inner().unwrap(), left_out);
        }
        let reader = Reader::default();
        let never = || panic!("the settings must not be read");
        assert!(reader.for_all(folder.path(), vec![pipe.clone()], never).is_empty());
        assert_eq!(reader.left_out.into_inner().unwrap(), [pipe]);
    }
}
