//! Parallel directory walk like ripgrep's: skips ignored and hidden files, and stops soon after cancellation. Shared by
//! Glob and Grep.

mod ignore_rules;
mod name_filter;
mod search_runner;
#[cfg(test)]
mod tests;
mod walk_filter;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::available_parallelism;
use std::time::SystemTime;

use ignore::{DirEntry, WalkBuilder, WalkState};
use whimbrel_os::files::{self, FileKind};

use super::file_errors;
use crate::api::ToolError;
use crate::permission::SearchFilter;
use crate::workspace::Workspace;
use ignore_rules::{IgnoreDecision, IgnoreRules};
pub(super) use name_filter::{NameFilter, is_literal};
pub(super) use search_runner::{CancelFlag, SearchOutcome, run_search};
use walk_filter::WalkFilter;

/// Handles the files of one walker thread.
pub(super) trait FileVisitor: Send {
    /// Handles a file or a symlink.
    fn visit_file(&mut self, file: DirEntry);
}

pub(super) struct DirWalk<'a> {
    pub(super) root: &'a Path,
    pub(super) name_filter: Arc<NameFilter>,
    pub(super) read_filter: SearchFilter,
    /// All levels if `None`.
    pub(super) max_depth: Option<usize>,
    pub(super) stop: &'a CancelFlag,
}

/// Result of a walk.
pub(super) struct WalkOutcome<V> {
    /// One visitor per thread.
    pub(super) visitors: Vec<V>,
    pub(super) skipped: SkippedFiles,
}

/// Files that a search skipped because it could not or must not read them.
#[derive(Debug, Default)]
pub(super) struct SkippedFiles {
    /// Number of unreadable files and directories.
    pub(super) unreadable: usize,
    /// Ignore files that were not applied.
    pub(super) skipped_ignore_files: Vec<PathBuf>,
    /// Whether a permission rule denied reading something that would have counted.
    pub(super) denied: bool,
}

impl DirWalk<'_> {
    /// Walks the directory with one visitor per thread.
    pub(super) fn run<V: FileVisitor>(self, visitor: impl Fn() -> V) -> WalkOutcome<V> {
        let finished = Mutex::new(Vec::new());
        let unreadable = AtomicUsize::new(0);
        // A symlink is followed only as the root, and only with a trailing slash.
        let root = if self.root.is_symlink() { self.root.join("") } else { self.root.to_path_buf() };
        let ignore_rules = Arc::new(IgnoreRules::for_root(&root));
        let walk_filter = Arc::new(WalkFilter::new(&root, self.read_filter.clone(), self.max_depth));
        self.builder(&root, ignore_rules.clone(), walk_filter.clone()).build_parallel().run(|| {
            let mut thread_visitor = ThreadVisitor { visitor: Some(visitor()), finished: &finished };
            let (stop, unreadable) = (self.stop, &unreadable);
            Box::new(move |entry| {
                if stop.is_cancelled() {
                    return WalkState::Quit;
                }
                match entry {
                    Ok(entry) => thread_visitor.visit(entry),
                    Err(_) => {
                        unreadable.fetch_add(1, Ordering::Relaxed);
                    }
                }
                WalkState::Continue
            })
        });
        let visitors = finished.into_inner().unwrap_or_else(PoisonError::into_inner);
        let skipped = SkippedFiles {
            unreadable: unreadable.into_inner(),
            skipped_ignore_files: ignore_rules.take_skipped_files(),
            denied: walk_filter.has_hidden(),
        };
        WalkOutcome { visitors, skipped }
    }

    fn builder(
        &self,
        root: &Path,
        ignore_rules: Arc<IgnoreRules>,
        walk_filter: Arc<WalkFilter>,
    ) -> WalkBuilder {
        let threads = match self.max_depth {
            Some(1) => 1,
            _ => available_parallelism().map_or(2, usize::from).clamp(2, 12),
        };
        let mut builder = WalkBuilder::new(root);
        // The crate's own filters would read any file with the right name.
        builder.standard_filters(false).max_depth(self.max_depth).threads(threads);
        let (names, root, stop) = (self.name_filter.clone(), root.to_path_buf(), self.stop.clone());
        builder.filter_entry(move |entry| {
            !stop.is_cancelled()
                && is_candidate(entry, &root, &names, &ignore_rules)
                && admit_entry(entry, &ignore_rules, &walk_filter)
        });
        builder
    }
}

/// Returns whether an entry matches name filter and ignore rules.
fn is_candidate(entry: &DirEntry, root: &Path, names: &NameFilter, ignore_rules: &IgnoreRules) -> bool {
    let path = entry.path();
    let Ok(below) = path.strip_prefix(root) else { return true };
    if entry.depth() == 0 {
        return true;
    }
    let is_dir = entry.file_type().is_some_and(|kind| kind.is_dir());
    let is_selected = if is_dir {
        names.may_enter(below) && !(entry.depth() == 1 && files::is_virtual_file_system(path))
    } else {
        names.matches(below)
    };
    let is_hidden = !names.includes_hidden() && entry.file_name().as_encoded_bytes().starts_with(b".");
    is_selected
        && match ignore_rules.decide(path, is_dir) {
            IgnoreDecision::Ignored => false,
            IgnoreDecision::Included => true,
            IgnoreDecision::Unmatched => !is_hidden,
        }
}

/// Returns whether a candidate may be read; loads the ignore rules of a directory that is entered.
fn admit_entry(entry: &DirEntry, ignore_rules: &IgnoreRules, walk_filter: &WalkFilter) -> bool {
    if entry.depth() == 0 {
        return true;
    }
    if walk_filter.hides(entry) {
        return false;
    }
    if entry.file_type().is_some_and(|kind| kind.is_dir()) {
        ignore_rules.enter_dir(entry.path());
    }
    true
}

/// The visitor of one thread; moves it to `finished` on drop.
struct ThreadVisitor<'a, V> {
    visitor: Option<V>,
    finished: &'a Mutex<Vec<V>>,
}

impl<V: FileVisitor> ThreadVisitor<'_, V> {
    fn visit(&mut self, entry: DirEntry) {
        let is_file = entry.file_type().is_some_and(|kind| kind.is_file() || kind.is_symlink());
        if let Some(visitor) = self.visitor.as_mut().filter(|_| is_file) {
            visitor.visit_file(entry);
        }
    }
}

impl<V> Drop for ThreadVisitor<'_, V> {
    fn drop(&mut self) {
        self.finished.lock().unwrap_or_else(PoisonError::into_inner).extend(self.visitor.take());
    }
}

/// A path of the model, or the working directory; absolute and normalized.
pub(super) fn resolve_root(path: Option<&str>, workspace: &Workspace) -> PathBuf {
    match path {
        Some(path) if !path.is_empty() => files::normalize_path(&workspace.resolve(path)),
        _ => workspace.cwd(),
    }
}

/// Checks the start of a search: a file or a directory, otherwise an error.
pub(super) fn check_start(path: &Path, cwd: &Path) -> Result<FileKind, ToolError> {
    match files::file_kind(path).map_err(|error| file_errors::read_error(path, &error))? {
        FileKind::Missing => Err(ToolError::Rejected(file_errors::missing_file_message(path, cwd))),
        found @ (FileKind::File(_) | FileKind::Directory) => Ok(found),
        other @ (FileKind::Pipe | FileKind::Socket | FileKind::Device) => {
            Err(ToolError::Rejected(file_errors::not_a_file_message(path, other)))
        }
    }
}

/// A path as shown to the model: relative if it is below the working directory.
pub(super) fn display_path(path: &Path, cwd: &Path) -> String {
    path.strip_prefix(cwd).unwrap_or(path).to_string_lossy().into_owned()
}

/// Sorts by modification time, newest first, then by path.
pub(super) fn sort_newest_first(files: &mut [(SystemTime, PathBuf)]) {
    files.sort_unstable_by(|(a, one), (b, other)| b.cmp(a).then_with(|| one.cmp(other)));
}

/// Notes on what a search could not read; empty if there is nothing.
pub(super) fn render_skipped(skipped: &SkippedFiles, timed_out: bool, cwd: &Path) -> String {
    let mut text = String::new();
    if skipped.unreadable > 0 {
        text.push_str(&format!("\n(Could not read: {}.)", skipped.unreadable));
    }
    if skipped.denied {
        text.push_str("\n(Some files were skipped because a permission rule denies reading them.)");
    }
    text.push_str(&ignore_rules::skipped_files_note(&skipped.skipped_ignore_files, cwd));
    if timed_out {
        text.push_str(
            "\n(Stopped at the time limit; there may be more results. Search a smaller directory.)",
        );
    }
    text
}
