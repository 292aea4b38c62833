//! The disk as it is for one decision: each path is looked at once.
//!
//! That is faster where a command names thousands of files, and a disk that changes while a call is judged cannot make
//! two steps see different things.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::fs::{EntryKind, FsView};

/// How many paths are remembered; further ones are looked at each time.
const MOST: usize = 50_000;

/// A view of the disk that remembers what entries are.
#[derive(Debug)]
pub(crate) struct Once<'a> {
    fs: &'a dyn FsView,
    entries: RefCell<HashMap<OsString, Option<EntryKind>>>,
}

impl<'a> Once<'a> {
    pub(crate) fn new(fs: &'a dyn FsView) -> Self {
        Self { fs, entries: RefCell::default() }
    }
}

impl FsView for Once<'_> {
    fn lstat(&self, path: &Path) -> Option<EntryKind> {
        if let Some(known) = self.entries.borrow().get(path.as_os_str()) {
            return *known;
        }
        let found = self.fs.lstat(path);
        let mut entries = self.entries.borrow_mut();
        if entries.len() < MOST {
            entries.insert(path.as_os_str().to_owned(), found);
        }
        found
    }

    fn readlink(&self, path: &Path) -> Option<PathBuf> {
        self.fs.readlink(path)
    }

    fn readdir(&self, path: &Path, limit: usize) -> Option<Vec<OsString>> {
        self.fs.readdir(path, limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_entry_is_does_not_change_while_a_call_is_judged() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let once = Once::new(&crate::fs::RealFs);
        assert_eq!(once.lstat(&path), None);
        std::fs::write(&path, "").unwrap();
        assert_eq!(once.lstat(&path), None);
        assert_eq!(Once::new(&crate::fs::RealFs).lstat(&path), Some(EntryKind::File));
    }
}
