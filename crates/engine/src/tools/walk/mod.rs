//! Walking a folder the way ripgrep does, on several threads: ignored and hidden files are left out, and the walk ends
//! soon after nobody waits for it any more. Glob and Grep share it; what they do with a file is theirs.

mod names;

use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::available_parallelism;
use std::time::{Duration, SystemTime};

use ignore::{DirEntry, WalkBuilder, WalkState};
use tokio_util::sync::CancellationToken;

use super::Trouble;
use crate::workspace::Workspace;

pub(super) use names::{Names, is_plain};

/// How long a search may take before it is answered with what was found so far.
const PATIENCE: Duration = Duration::from_mins(1);

/// Folders that hold no files but a picture of the running system. Reading them can block forever.
const NOT_ON_DISK: [&str; 3] = ["/dev", "/proc", "/sys"];

/// Says that a search should end. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(super) struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Asks the search to end.
    pub(super) fn ask(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the search should end.
    pub(super) fn asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Ends the search when its caller goes away.
struct StopOnDrop(Stop);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.ask();
    }
}

/// What a search brought.
#[derive(Debug)]
pub(super) struct Searched<T> {
    /// The findings.
    pub(super) found: T,
    /// Whether it was ended for lack of time.
    pub(super) out_of_time: bool,
}

/// Runs a search off the async threads. It is told to stop when the call is cancelled, when the future is dropped, and
/// when it takes too long; in the last case what it found so far is the answer.
pub(super) async fn on_threads<T: Send + 'static>(
    cancel: &CancellationToken,
    search: impl FnOnce(&Stop) -> T + Send + 'static,
) -> Result<Searched<T>, Trouble> {
    let stop = Stop::default();
    let _guard = StopOnDrop(stop.clone());
    let told = stop.clone();
    let mut job = tokio::task::spawn_blocking(move || search(&told));
    let wait = async {
        let in_time = tokio::time::timeout(PATIENCE, &mut job).await;
        let out_of_time = in_time.is_err();
        stop.ask();
        let ended = match in_time {
            Ok(ended) => ended,
            Err(_) => job.await,
        };
        ended
            .map(|found| Searched { found, out_of_time })
            .map_err(|error| Trouble::Failed(format!("The search broke off: {error}.")))
    };
    cancel
        .run_until_cancelled(wait)
        .await
        .unwrap_or_else(|| Err(Trouble::Failed("The search was interrupted.".into())))
}

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
    /// How many levels it goes down; all of them if not said.
    pub(super) depth: Option<usize>,
    /// Ends it early.
    pub(super) stop: &'a Stop,
}

/// A walk that has ended.
pub(super) struct Walked<V> {
    /// The visitors, one per thread.
    pub(super) visitors: Vec<V>,
    /// How many files and folders could not be read.
    pub(super) unreadable: usize,
}

impl Walk<'_> {
    /// Goes through the folder with one visitor per thread.
    pub(super) fn run<V: Visit>(self, visitor: impl Fn() -> V) -> Walked<V> {
        let home = Mutex::new(Vec::new());
        let unreadable = AtomicUsize::new(0);
        self.builder().build_parallel().run(|| {
            let mut tour = Tour { visitor: Some(visitor()), home: &home };
            let (stop, unreadable) = (self.stop, &unreadable);
            Box::new(move |entry| {
                if stop.asked() {
                    return WalkState::Quit;
                }
                match entry {
                    Ok(entry) => tour.visit(entry),
                    Err(error) if error.io_error().is_some() => {
                        unreadable.fetch_add(1, Ordering::Relaxed);
                    }
                    // A line of an ignore file that makes no sense.
                    Err(_) => {}
                }
                WalkState::Continue
            })
        });
        let visitors = home.into_inner().unwrap_or_else(PoisonError::into_inner);
        Walked { visitors, unreadable: unreadable.into_inner() }
    }

    fn builder(&self) -> WalkBuilder {
        // A link is walked through only when it is the root itself, and then only with a slash behind it.
        let root = if self.root.is_symlink() { self.root.join("") } else { self.root.to_path_buf() };
        let threads = match self.depth {
            Some(1) => 1,
            _ => available_parallelism().map_or(2, usize::from).clamp(2, 12),
        };
        let mut builder = WalkBuilder::new(&root);
        builder
            .current_dir(&root)
            .hidden(!self.names.name_hidden())
            .require_git(false)
            .max_depth(self.depth)
            .threads(threads);
        let names = self.names.clone();
        builder.filter_entry(move |entry| counts(entry, &root, &names));
        builder
    }
}

/// Whether an entry of the walk is worth a visit.
fn counts(entry: &DirEntry, root: &Path, names: &Names) -> bool {
    let Ok(below) = entry.path().strip_prefix(root) else { return true };
    if entry.file_type().is_some_and(|kind| kind.is_dir()) {
        names.lead_into(below) && !(entry.depth() == 1 && is_not_on_disk(entry.path()))
    } else {
        names.include(below)
    }
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
        Some(path) if !path.is_empty() => normal(&workspace.resolve(path)),
        _ => workspace.cwd(),
    }
}

/// The trouble with a path at which there is nothing.
pub(super) fn nothing_at(path: &Path, cwd: &Path) -> Trouble {
    Trouble::Refused(format!("{} does not exist. The current folder is {}.", path.display(), cwd.display()))
}

/// A path without `.` and `..`, purely by name.
pub(super) fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                normal.pop();
            }
            Component::Normal(_) | Component::RootDir | Component::Prefix(_) => normal.push(part),
        }
    }
    normal
}

/// A path as the model reads it: short if it lies below the current folder.
pub(super) fn shown(path: &Path, cwd: &Path) -> String {
    path.strip_prefix(cwd).unwrap_or(path).to_string_lossy().into_owned()
}

/// Sorts files by when they were last changed, newest first; files of the same moment by name.
pub(super) fn newest_first(files: &mut [(SystemTime, PathBuf)]) {
    files.sort_unstable_by(|(a, one), (b, other)| b.cmp(a).then_with(|| one.cmp(other)));
}

/// A sentence on what a search could not look at; empty if there is nothing to say.
pub(super) fn gaps(unreadable: usize, out_of_time: bool) -> String {
    let mut text = String::new();
    if unreadable > 0 {
        text.push_str(&format!("\n(Files or folders that could not be read: {unreadable}.)"));
    }
    if out_of_time {
        text.push_str("\n(Ended for lack of time; there may be more. Search a smaller folder.)");
    }
    text
}

#[cfg(test)]
mod tests {
    use std::thread::yield_now;

    use tokio::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn a_cancelled_search_ends() {
        let cancel = CancellationToken::new();
        cancel.cancel();
        let trouble = on_threads(&cancel, |_| ()).await.unwrap_err();
        assert_eq!(trouble, Trouble::Failed("The search was interrupted.".into()));
    }

    #[tokio::test]
    async fn a_search_that_nobody_waits_for_stops() {
        let (started, mut seen) = mpsc::channel(1);
        let (ended, mut end) = mpsc::channel(1);
        let cancel = CancellationToken::new();
        let search = on_threads(&cancel, move |stop| {
            started.blocking_send(()).unwrap();
            while !stop.asked() {
                yield_now();
            }
            ended.blocking_send(()).unwrap();
        });
        tokio::select! {
            _ = search => panic!("it waits for the stop"),
            began = seen.recv() => assert_eq!(began, Some(())),
        }
        assert_eq!(end.recv().await, Some(()));
    }

    #[test]
    fn a_walk_that_should_stop_visits_nothing() {
        struct Never;
        impl Visit for Never {
            fn file(&mut self, file: DirEntry) {
                panic!("visited {}", file.path().display());
            }
        }
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a"), "").unwrap();
        let stop = Stop::default();
        stop.ask();
        Walk { root: folder.path(), names: Arc::default(), depth: None, stop: &stop }.run(|| Never);
    }

    #[test]
    fn paths_lose_their_dots() {
        assert_eq!(normal(Path::new("/a/./b/../c")), Path::new("/a/c"));
        assert_eq!(normal(Path::new("/../a")), Path::new("/a"));
    }
}
