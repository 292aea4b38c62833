//! What was found below directories, so that each is walked through once for every question.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::OsString;
use std::path::Path;

use super::scope::Obstacle;
use crate::below::{Below, look_below};
use crate::fs::{EntryKind, FsView};
use crate::protected::is_protected;

/// The answers so far. Paths are kept as text, which is told apart faster than components are.
#[derive(Debug, Default)]
pub(super) struct Walked {
    links: RefCell<HashMap<OsString, Below>>,
    protected: RefCell<HashMap<OsString, Below>>,
    away: RefCell<HashMap<OsString, Option<Obstacle>>>,
}

impl Walked {
    /// Whether there is a link at or below a path.
    pub(super) fn links(&self, path: &Path, fs: &dyn FsView) -> Below {
        once(&self.links, path, || look_below(path, fs, |_, kind| kind == EntryKind::Link))
    }

    /// Whether something protected lies at or below a path.
    pub(super) fn protected(&self, path: &Path, fs: &dyn FsView) -> Below {
        once(&self.protected, path, || look_below(path, fs, |path, _| is_protected(path)))
    }

    /// What was said of where the links below a directory lead.
    pub(super) fn away(&self, path: &Path, look: impl FnOnce() -> Option<Obstacle>) -> Option<Obstacle> {
        once(&self.away, path, look)
    }
}

fn once<T: Clone>(known: &RefCell<HashMap<OsString, T>>, path: &Path, look: impl FnOnce() -> T) -> T {
    if let Some(known) = known.borrow().get(path.as_os_str()) {
        return known.clone();
    }
    let found = look();
    known.borrow_mut().insert(path.as_os_str().to_owned(), found.clone());
    found
}
