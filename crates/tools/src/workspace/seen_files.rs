//! Files that the model has read or written, with the content that it last saw.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use super::{Workspace, lock};

/// A file as the model last read or wrote it.
#[derive(Debug, Clone, PartialEq)]
pub struct SeenFile {
    /// Path with symlinks resolved.
    pub real_path: PathBuf,
    /// Modification time.
    pub modified: SystemTime,
    /// Size in bytes.
    pub size: u64,
    /// The text, if short enough to keep; used to show the model later changes.
    pub text: Option<Arc<str>>,
}

impl Workspace {
    /// Records the content that the model has read or written.
    pub fn record_seen(&self, path: &Path, seen: SeenFile) {
        lock(&self.seen_files).insert(path.to_path_buf(), seen);
    }

    /// The content that the model last saw.
    pub fn seen_file(&self, path: &Path) -> Option<SeenFile> {
        lock(&self.seen_files).get(path).cloned()
    }

    /// All files that the model has seen.
    pub fn seen_files(&self) -> Vec<(PathBuf, SeenFile)> {
        lock(&self.seen_files).iter().map(|(path, seen)| (path.clone(), seen.clone())).collect()
    }

    pub fn forget_seen(&self, path: &Path) {
        lock(&self.seen_files).remove(path);
    }
}
