//! Cache of the disk for one decision, with a budget for reading directories.
//!
//! It saves time if a command names thousands of files. It gives no guarantees about a disk that changes meanwhile.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::fs::{DirEntry, FileType, FsView};

/// Cached paths; further ones are looked up each time.
const MAX_CACHED_PATHS: usize = 50_000;

/// Budget: names looked up, singly or in directories, before directories are no longer read.
const MAX_NAMES: usize = 80_000;

/// Cost in names of looking up a single entry, and of opening a directory.
const LSTAT_COST: usize = 2;
const OPEN_DIR_COST: usize = 8;

/// Names read again from the cache that cost as much as one, and the cost of opening a directory again, in the same
/// unit.
const REREAD_DISCOUNT: usize = 8;
const REOPEN_COST: usize = 8;

/// Directory listings by path and limit.
type DirCache = HashMap<(OsString, usize), Option<Rc<[DirEntry]>>>;

/// Caching view of the disk. Paths are kept as text, which hashes faster than components.
#[derive(Debug)]
pub(crate) struct CachedFs<'a> {
    fs: &'a dyn FsView,
    entries: RefCell<HashMap<OsString, Option<FileType>>>,
    links: RefCell<HashMap<OsString, Option<PathBuf>>>,
    directories: RefCell<DirCache>,
    /// Spent budget, in fractions of a name.
    spent: Cell<usize>,
}

impl<'a> CachedFs<'a> {
    pub(crate) fn new(fs: &'a dyn FsView) -> Self {
        Self {
            fs,
            entries: RefCell::default(),
            links: RefCell::default(),
            directories: RefCell::default(),
            spent: Cell::new(0),
        }
    }

    fn spend_names(&self, names: usize) {
        self.spent.set(self.spent.get() + names * REREAD_DISCOUNT);
    }

    fn spend_reread_names(&self, names: usize) {
        self.spent.set(self.spent.get() + names + REOPEN_COST);
    }
}

impl FsView for CachedFs<'_> {
    fn lstat(&self, path: &Path) -> Option<FileType> {
        if let Some(known) = self.entries.borrow().get(path.as_os_str()) {
            return *known;
        }
        let found = self.fs.lstat(path);
        self.spend_names(LSTAT_COST);
        let mut entries = self.entries.borrow_mut();
        if entries.len() < MAX_CACHED_PATHS {
            entries.insert(path.as_os_str().to_owned(), found);
        }
        found
    }

    fn readlink(&self, path: &Path) -> Option<PathBuf> {
        if let Some(known) = self.links.borrow().get(path.as_os_str()) {
            return known.clone();
        }
        let found = self.fs.readlink(path);
        let mut links = self.links.borrow_mut();
        if links.len() < MAX_CACHED_PATHS {
            links.insert(path.as_os_str().to_owned(), found.clone());
        }
        found
    }

    fn readdir(&self, path: &Path, limit: usize) -> Option<Vec<OsString>> {
        Some(self.read_entries(path, limit)?.iter().map(|entry| entry.name.clone()).collect())
    }

    fn read_entries(&self, path: &Path, limit: usize) -> Option<Rc<[DirEntry]>> {
        if self.is_budget_exhausted() {
            return None;
        }
        let key = (path.as_os_str().to_owned(), limit);
        if let Some(known) = self.directories.borrow().get(&key) {
            self.spend_reread_names(known.as_ref().map_or(0, |known| known.len()));
            return known.clone();
        }
        let found = self.fs.read_entries(path, limit);
        self.spend_names(OPEN_DIR_COST + found.as_ref().map_or(0, |found| found.len()));
        self.directories.borrow_mut().insert(key, found.clone());
        found
    }

    fn is_budget_exhausted(&self) -> bool {
        self.spent.get() >= MAX_NAMES * REREAD_DISCOUNT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entry_is_looked_up_once_per_decision() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let seen = CachedFs::new(&crate::fs::RealFs);
        assert_eq!(seen.lstat(&path), None);
        std::fs::write(&path, "").unwrap();
        assert_eq!(seen.lstat(&path), None);
        assert_eq!(CachedFs::new(&crate::fs::RealFs).lstat(&path), Some(FileType::File));
    }
}
