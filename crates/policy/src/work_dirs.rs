//! Working directories of the session.

use std::path::{Path, PathBuf};

use crate::fs::FsView;
use crate::paths::{ResolvedPath, normalize_lexically, resolve_physical_path};
use crate::rules::rule_set::RuleSource;

/// A working directory, in both forms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkDir {
    /// Path as given, normalized.
    pub lexical: PathBuf,
    /// Path with links resolved.
    pub physical: PathBuf,
}

impl WorkDir {
    pub fn new(path: &Path, fs: &dyn FsView) -> Self {
        Self { lexical: normalize_lexically(path), physical: resolve_physical_path(path, fs) }
    }

    /// Returns true if a path lies in the directory, in either form.
    pub fn contains(&self, path: &Path) -> bool {
        path.starts_with(&self.lexical) || path.starts_with(&self.physical)
    }
}

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

    /// Returns true if both the lexical and the physical path lie in a working directory. Compares components, not
    /// text. A path through `/proc` never does.
    pub fn contains(&self, path: &ResolvedPath) -> bool {
        let holds = |path: &Path| self.all().any(|dir| dir.contains(path));
        !path.via_proc && holds(&path.physical) && holds(&path.lexical)
    }

    /// Physical paths of all directories.
    pub fn real_paths(&self) -> Vec<PathBuf> {
        self.all().map(|dir| dir.physical.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::FakeFs;
    use crate::paths::{PathContext, resolve};

    #[test]
    fn paths_inside_working_directories() {
        let fs = FakeFs::with_files(["/fx/proj/src/app.ts", "/fx/outside/data.txt"])
            .with_link("/fx/proj/out", "/fx/outside")
            .with_link("/fx/proj/nowhere", "/fx/outside/new")
            .with_link("/there", "/fx/proj");
        let dirs = WorkDirs::new(Path::new("/there"), &fs);
        let context = PathContext { cwd: Path::new("/fx/proj"), home: Path::new("/home/me"), fs: &fs };
        let rows = [
            ("src/app.ts", true),
            ("/there/src/app.ts", true),
            ("out/data.txt", false),
            ("/fx/proj-evil/x", false),
            ("/proc/self/cwd/src", false),
            ("nowhere", false),
            ("new", true),
            ("/fx", false),
            ("/fx/proj", true),
        ];
        for (written, expected) in rows {
            assert_eq!(dirs.contains(&resolve(written, &context)), expected, "{written}");
        }
    }
}
