//! Cache of directory walks, one walk per directory and kind of search.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::OsString;
use std::path::Path;

use super::blocking_paths::BlockingPath;
use crate::dir_walk::{WalkResult, find_below};
use crate::fs::{FileType, FsView};
use crate::paths::protected::is_protected;

/// Cached results. Paths are kept as text, which hashes faster than components.
#[derive(Debug, Default)]
pub(super) struct WalkCache {
    links: RefCell<HashMap<OsString, WalkResult>>,
    protected: RefCell<HashMap<OsString, WalkResult>>,
    link_obstacles: RefCell<HashMap<OsString, Option<BlockingPath>>>,
}

impl WalkCache {
    /// Looks for a link at or below a path.
    pub(super) fn find_links(&self, path: &Path, fs: &dyn FsView) -> WalkResult {
        get_or_insert(&self.links, path, || find_below(path, fs, |_, kind| kind == FileType::Link))
    }

    /// Looks for a protected path at or below a path.
    pub(super) fn find_protected(&self, path: &Path, fs: &dyn FsView) -> WalkResult {
        get_or_insert(&self.protected, path, || find_below(path, fs, |path, _| is_protected(path)))
    }

    /// Finds a blocking path among the links below a directory, using the cache.
    pub(super) fn find_blocking_link(
        &self,
        path: &Path,
        search: impl FnOnce() -> Option<BlockingPath>,
    ) -> Option<BlockingPath> {
        get_or_insert(&self.link_obstacles, path, search)
    }
}

fn get_or_insert<T: Clone>(
    cache: &RefCell<HashMap<OsString, T>>,
    path: &Path,
    search: impl FnOnce() -> T,
) -> T {
    if let Some(cache) = cache.borrow().get(path.as_os_str()) {
        return cache.clone();
    }
    let found = search();
    cache.borrow_mut().insert(path.as_os_str().to_owned(), found.clone());
    found
}
