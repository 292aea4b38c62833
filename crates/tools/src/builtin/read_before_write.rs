//! Read before write: a file may be changed only if the model has read its current content.

use std::path::Path;

use whimbrel_os::files::FileStamp;

use super::file_target::ExistingFile;
use crate::api::ToolError;
use crate::workspace::SeenFile;

/// Whether the model knows the current content of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadState {
    /// Never read.
    Unread,
    /// Changed since the last read.
    Changed,
    /// Unchanged since the last read.
    Current,
}

/// Compares a file with what the model last saw: by text if that was kept, otherwise by modification time and size.
pub(super) fn compare_with_seen(seen: Option<&SeenFile>, stamp: FileStamp, text: Option<&str>) -> ReadState {
    let Some(seen) = seen else { return ReadState::Unread };
    let is_same = match (&seen.text, text) {
        (Some(seen), Some(text)) => **seen == *text,
        _ => seen.modified == stamp.modified && seen.size == stamp.size,
    };
    if is_same { ReadState::Current } else { ReadState::Changed }
}

impl ExistingFile {
    /// Fails unless the model has read the current content.
    pub(super) fn require_fresh_read(&self, path: &Path) -> Result<(), ToolError> {
        match self.read_state {
            ReadState::Unread => Err(unread_error(path)),
            ReadState::Changed => Err(changed_error(path)),
            ReadState::Current => Ok(()),
        }
    }
}

pub(super) fn unread_error(path: &Path) -> ToolError {
    ToolError::Rejected(format!("{} has not been read yet. Read it before changing it.", path.display()))
}

pub(super) fn changed_error(path: &Path) -> ToolError {
    ToolError::Rejected(format!(
        "{} has changed since it was read. Read it again before changing it.",
        path.display()
    ))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::{Duration, SystemTime};

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
