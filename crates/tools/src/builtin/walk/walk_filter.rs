//! Skips paths of a walk that a permission rule denies reading, and records that it did.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use ignore::DirEntry;
use whimbrel_os::files;

use crate::permission::SearchFilter;

/// Filter of one walk.
pub(super) struct WalkFilter {
    read_filter: SearchFilter,
    /// Whether the root is reached through symlinks, so that paths below it have more than one name.
    is_linked: bool,
    max_depth: Option<usize>,
    has_hidden: AtomicBool,
}

impl WalkFilter {
    pub(super) fn new(root: &Path, read_filter: SearchFilter, max_depth: Option<usize>) -> Self {
        let is_linked = files::real_path(root).is_none_or(|real| real != root);
        Self { read_filter, is_linked, max_depth, has_hidden: AtomicBool::new(false) }
    }

    /// Returns whether an entry must be skipped, with everything below it, and records that.
    pub(super) fn hides(&self, entry: &DirEntry) -> bool {
        let is_dir = entry.file_type().is_some_and(|kind| kind.is_dir());
        if is_dir && self.max_depth == Some(entry.depth()) {
            // The walk does not enter it anyway.
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

    pub(super) fn has_hidden(&self) -> bool {
        self.has_hidden.load(Ordering::Relaxed)
    }
}
