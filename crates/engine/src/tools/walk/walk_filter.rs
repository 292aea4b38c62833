//! Leaves out of a walk what a rule denies reading, and remembers that it did.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use ignore::DirEntry;

use crate::files;
use crate::permission::SearchFilter;

/// What a walk may see.
pub(super) struct WalkFilter {
    read_filter: SearchFilter,
    /// Whether links lead to where the walk begins, so that what lies below has more than one name.
    is_linked: bool,
    /// How many levels the walk goes down.
    max_depth: Option<usize>,
    has_hidden: AtomicBool,
}

impl WalkFilter {
    /// For a walk that begins here and goes down so far.
    pub(super) fn new(root: &Path, read_filter: SearchFilter, max_depth: Option<usize>) -> Self {
        let is_linked = files::real_path(root).is_none_or(|real| real != root);
        Self { read_filter, is_linked, max_depth, has_hidden: AtomicBool::new(false) }
    }

    /// Whether an entry must not be seen. A folder hides all that lies below it.
    pub(super) fn hides(&self, entry: &DirEntry) -> bool {
        let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
        if is_folder && self.max_depth == Some(entry.depth()) {
            // The walk would not go in anyway.
            return false;
        }
        let hides = if self.is_linked || entry.path_is_symlink() {
            self.read_filter.hides(entry.path())
        } else {
            self.read_filter.hides_unlinked(entry.path())
        };
        if hides {
            self.has_hidden.store(true, Ordering::Relaxed);
        }
        hides
    }

    /// Whether anything was hidden.
    pub(super) fn has_hidden(&self) -> bool {
        self.has_hidden.load(Ordering::Relaxed)
    }
}
