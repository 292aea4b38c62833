//! Working directories of the session.

use std::path::{Path, PathBuf};

use crate::fs::FsView;
use crate::paths::{ResolvedPath, WorkDir, is_inside};
use crate::rules::rule_set::RuleSource;

/// The primary working directory and the additional ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkDirs {
    /// Directory in which the session started.
    pub primary: WorkDir,
    /// Additional directories, each with the source that added it.
    pub extra: Vec<(WorkDir, RuleSource)>,
}

impl WorkDirs {
    pub fn new(primary: &Path, fs: &dyn FsView) -> Self {
        Self { primary: WorkDir::new(primary, fs), extra: Vec::new() }
    }

    /// Adds a directory, unless this source has added it before.
    pub fn add(&mut self, directory: &Path, source: RuleSource, fs: &dyn FsView) {
        let entry = (WorkDir::new(directory, fs), source);
        if !self.extra.contains(&entry) {
            self.extra.push(entry);
        }
    }

    /// Removes a directory that this source has added.
    pub fn remove(&mut self, directory: &Path, source: RuleSource, fs: &dyn FsView) {
        let entry = (WorkDir::new(directory, fs), source);
        self.extra.retain(|other| *other != entry);
    }

    /// All directories, the primary one first.
    pub fn all(&self) -> impl Iterator<Item = &WorkDir> + Clone {
        std::iter::once(&self.primary).chain(self.extra.iter().map(|(dir, _)| dir))
    }

    /// Returns true if both the lexical and the physical path lie in a working directory.
    pub fn contains(&self, path: &ResolvedPath) -> bool {
        is_inside(path, self.all())
    }

    /// Physical paths of all directories.
    pub fn real_paths(&self) -> Vec<PathBuf> {
        self.all().map(|dir| dir.physical.clone()).collect()
    }
}
