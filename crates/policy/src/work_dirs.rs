//! The directories that the session may work in.

use std::path::{Path, PathBuf};

use crate::fs::FsView;
use crate::paths::{ResolvedPath, WorkDir, is_inside};
use crate::ruleset::RuleSource;

/// Where the session began, and what was added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkDirs {
    /// Where the session began.
    pub primary: WorkDir,
    /// What was added, and by whom.
    pub extra: Vec<(WorkDir, RuleSource)>,
}

impl WorkDirs {
    /// With one directory.
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

    /// Takes out a directory that this source has added.
    pub fn remove(&mut self, directory: &Path, source: RuleSource, fs: &dyn FsView) {
        let entry = (WorkDir::new(directory, fs), source);
        self.extra.retain(|other| *other != entry);
    }

    /// All of them, the primary one first.
    pub fn all(&self) -> impl Iterator<Item = &WorkDir> + Clone {
        std::iter::once(&self.primary).chain(self.extra.iter().map(|(dir, _)| dir))
    }

    /// Whether a path lies inside one of them, as written and in truth.
    pub fn contains(&self, path: &ResolvedPath) -> bool {
        is_inside(path, self.all())
    }

    /// The real paths of all of them.
    pub fn real_paths(&self) -> Vec<PathBuf> {
        self.all().map(|dir| dir.physical.clone()).collect()
    }
}
