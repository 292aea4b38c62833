//! Files that the model has read or written, with the content that it last saw, and whether a file has changed since.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use whimbrel_os::files::FileStamp;

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

/// Whether the model knows the current content of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadState {
    /// Never read.
    Unread,
    /// Changed since the last read.
    Changed,
    /// Unchanged since the last read.
    Current,
}

/// Compares a file with what the model last saw: by text if that was kept, otherwise by modification time and size.
pub(crate) fn compare_with_seen(seen: Option<&SeenFile>, stamp: FileStamp, text: Option<&str>) -> ReadState {
    let Some(seen) = seen else { return ReadState::Unread };
    let is_same = match (&seen.text, text) {
        (Some(seen), Some(text)) => **seen == *text,
        _ => seen.modified == stamp.modified && seen.size == stamp.size,
    };
    if is_same { ReadState::Current } else { ReadState::Changed }
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn read_state_compares_text_then_stamp() {
        let earlier = SystemTime::UNIX_EPOCH;
        let later = earlier + Duration::from_secs(1);
        let seen = |text: Option<&str>| {
            Some(SeenFile { real_path: "/f".into(), modified: earlier, size: 1, text: text.map(Arc::from) })
        };
        let stamp = |modified, size| FileStamp { modified, size };
        for (name, seen, stamp, text, expected) in [
            ("never seen", None, stamp(earlier, 1), Some("a"), ReadState::Unread),
            ("same text, only touched", seen(Some("a")), stamp(later, 1), Some("a"), ReadState::Current),
            (
                "other text in the same instant",
                seen(Some("a")),
                stamp(earlier, 1),
                Some("b"),
                ReadState::Changed,
            ),
            ("text not kept, same stamp", seen(None), stamp(earlier, 1), Some("a"), ReadState::Current),
            ("text not kept, touched", seen(None), stamp(later, 1), Some("a"), ReadState::Changed),
            ("text not kept, other size", seen(None), stamp(earlier, 2), Some("a"), ReadState::Changed),
            ("was text, is binary, touched", seen(Some("a")), stamp(later, 1), None, ReadState::Changed),
        ] {
            assert_eq!(compare_with_seen(seen.as_ref(), stamp, text), expected, "{name}");
        }
    }
}
