//! Walking a folder the way ripgrep does, on several threads: ignored and hidden files are left out, and the walk ends
//! soon after nobody waits for it any more. Glob and Grep share it; what they do with a file is theirs.

mod guard;
mod ignored;
mod names;
mod stop;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::available_parallelism;
use std::time::SystemTime;

use ignore::{DirEntry, WalkBuilder, WalkState};

use super::{Trouble, fault};
use crate::files::{self, Kind};
use crate::permission::Sight;
use crate::workspace::Workspace;
use guard::Guard;
use ignored::{Ignored, Word};

pub(super) use names::{Names, is_plain};
pub(super) use stop::{Searched, Stop, on_threads};

/// Folders that hold no files but a picture of the running system. Reading them can block forever.
const NOT_ON_DISK: [&str; 3] = ["/dev", "/proc", "/sys"];

/// What a thread of a walk does with the files it meets.
pub(super) trait Visit: Send {
    /// Takes one file, or a link to something.
    fn file(&mut self, file: DirEntry);
}

/// A walk through a folder.
pub(super) struct Walk<'a> {
    /// Where it begins.
    pub(super) root: &'a Path,
    /// Which files count.
    pub(super) names: Arc<Names>,
    /// Which files may be seen.
    pub(super) sight: Sight,
    /// How many levels it goes down; all of them if not said.
    pub(super) depth: Option<usize>,
    /// Ends it early.
    pub(super) stop: &'a Stop,
}

/// A walk that has ended.
pub(super) struct Walked<V> {
    /// The visitors, one per thread.
    pub(super) visitors: Vec<V>,
    /// What it could not look at.
    pub(super) gaps: Gaps,
}

/// What a search could not look at.
#[derive(Debug, Default)]
pub(super) struct Gaps {
    /// How many files and folders could not be read.
    pub(super) unreadable: usize,
    /// Ignore files that were not followed.
    pub(super) rules: Vec<PathBuf>,
    /// Whether a rule denies reading something that would have counted.
    pub(super) hidden: bool,
}

impl Walk<'_> {
    /// Goes through the folder with one visitor per thread.
    pub(super) fn run<V: Visit>(self, visitor: impl Fn() -> V) -> Walked<V> {
        let home = Mutex::new(Vec::new());
        let unreadable = AtomicUsize::new(0);
        // A link is walked through only when it is the root itself, and then only with a slash behind it.
        let root = if self.root.is_symlink() { self.root.join("") } else { self.root.to_path_buf() };
        let ignored = Arc::new(Ignored::below(&root));
        let guard = Arc::new(Guard::new(&root, self.sight.clone(), self.depth));
        self.builder(&root, ignored.clone(), guard.clone()).build_parallel().run(|| {
            let mut tour = Tour { visitor: Some(visitor()), home: &home };
            let (stop, unreadable) = (self.stop, &unreadable);
            Box::new(move |entry| {
                if stop.asked() {
                    return WalkState::Quit;
                }
                match entry {
                    Ok(entry) => tour.visit(entry),
                    Err(_) => {
                        unreadable.fetch_add(1, Ordering::Relaxed);
                    }
                }
                WalkState::Continue
            })
        });
        let visitors = home.into_inner().unwrap_or_else(PoisonError::into_inner);
        let gaps = Gaps {
            unreadable: unreadable.into_inner(),
            rules: ignored.left_out(),
            hidden: guard.has_hidden(),
        };
        Walked { visitors, gaps }
    }

    fn builder(&self, root: &Path, ignored: Arc<Ignored>, guard: Arc<Guard>) -> WalkBuilder {
        let threads = match self.depth {
            Some(1) => 1,
            _ => available_parallelism().map_or(2, usize::from).clamp(2, 12),
        };
        let mut builder = WalkBuilder::new(root);
        // The library's own filters would read any file that has the right name.
        builder.standard_filters(false).max_depth(self.depth).threads(threads);
        let (names, root, stop) = (self.names.clone(), root.to_path_buf(), self.stop.clone());
        builder.filter_entry(move |entry| {
            !stop.asked() && counts(entry, &root, &names, &ignored) && enters(entry, &ignored, &guard)
        });
        builder
    }
}

/// Whether an entry of the walk is worth a visit.
fn counts(entry: &DirEntry, root: &Path, names: &Names, ignored: &Ignored) -> bool {
    let path = entry.path();
    let Ok(below) = path.strip_prefix(root) else { return true };
    if entry.depth() == 0 {
        return true;
    }
    let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
    let is_named = if is_folder {
        names.lead_into(below) && !(entry.depth() == 1 && is_not_on_disk(path))
    } else {
        names.include(below)
    };
    let is_hidden = !names.name_hidden() && entry.file_name().as_encoded_bytes().starts_with(b".");
    is_named
        && match ignored.word(path, is_folder) {
            Word::Ignored => false,
            Word::Wanted => true,
            Word::Nothing => !is_hidden,
        }
}

/// Whether an entry that counts may be seen; a folder is then prepared for.
fn enters(entry: &DirEntry, ignored: &Ignored, guard: &Guard) -> bool {
    if entry.depth() == 0 {
        return true;
    }
    if guard.hides(entry) {
        return false;
    }
    if entry.file_type().is_some_and(|kind| kind.is_dir()) {
        ignored.enter(entry.path());
    }
    true
}

fn is_not_on_disk(folder: &Path) -> bool {
    NOT_ON_DISK.iter().any(|name| folder == Path::new(name))
}

/// A visitor on its way; it is handed back when its thread is done.
struct Tour<'a, V> {
    visitor: Option<V>,
    home: &'a Mutex<Vec<V>>,
}

impl<V: Visit> Tour<'_, V> {
    fn visit(&mut self, entry: DirEntry) {
        let is_file = entry.file_type().is_some_and(|kind| kind.is_file() || kind.is_symlink());
        if let Some(visitor) = self.visitor.as_mut().filter(|_| is_file) {
            visitor.file(entry);
        }
    }
}

impl<V> Drop for Tour<'_, V> {
    fn drop(&mut self) {
        self.home.lock().unwrap_or_else(PoisonError::into_inner).extend(self.visitor.take());
    }
}

/// A path as the model wrote it, or the current folder; absolute, and without `.` and `..`.
pub(super) fn resolve(path: Option<&str>, workspace: &Workspace) -> PathBuf {
    match path {
        Some(path) if !path.is_empty() => files::tidy(&workspace.resolve(path)),
        _ => workspace.cwd(),
    }
}

/// Looks what stands where a search is to begin: a file or a folder; anything else is trouble.
pub(super) fn begin_at(path: &Path, cwd: &Path) -> Result<Kind, Trouble> {
    match files::kind(path).map_err(|error| fault::unreadable(path, &error))? {
        Kind::Missing => Err(Trouble::Refused(fault::nothing_at(path, cwd))),
        found @ (Kind::File(_) | Kind::Folder) => Ok(found),
        other @ (Kind::Pipe | Kind::Socket | Kind::Device) => {
            Err(Trouble::Refused(fault::not_a_file(path, other)))
        }
    }
}

/// A path as the model reads it: short if it lies below the current folder.
pub(super) fn shown(path: &Path, cwd: &Path) -> String {
    path.strip_prefix(cwd).unwrap_or(path).to_string_lossy().into_owned()
}

/// Sorts files by when they were last changed, newest first; files of the same moment by name.
pub(super) fn newest_first(files: &mut [(SystemTime, PathBuf)]) {
    files.sort_unstable_by(|(a, one), (b, other)| b.cmp(a).then_with(|| one.cmp(other)));
}

/// Sentences on what a search could not look at; empty if there is nothing to say.
pub(super) fn gaps(gaps: &Gaps, out_of_time: bool, cwd: &Path) -> String {
    let mut text = String::new();
    if gaps.unreadable > 0 {
        text.push_str(&format!("\n(Files or folders that could not be read: {}.)", gaps.unreadable));
    }
    if gaps.hidden {
        text.push_str("\n(Something was left out because a permission rule denies reading it.)");
    }
    text.push_str(&ignored::gap(&gaps.rules, cwd));
    if out_of_time {
        text.push_str("\n(Ended for lack of time; there may be more. Search a smaller folder.)");
    }
    text
}
