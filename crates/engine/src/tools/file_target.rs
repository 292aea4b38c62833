//! The file that a call is about: where it lies, what stands there, and whether the model knows it as it is.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use whimbrel_policy::ResolvedFile;
use whimbrel_policy::fs::RealFs;
use whimbrel_policy::paths::physical_path;

use super::encoding::{DecodedText, TextEncoding, decode};
use super::file_errors::{not_a_file_message, read_error, write_error};
use super::{ToolContext, ToolError};
use crate::files::{self, FileKind, FileHandle, FileStamp};
use crate::workspace::{SeenFile, Workspace};

/// Where a call reads or writes.
pub(super) struct FileTarget {
    /// How the model and the host know it: absolute and without dots.
    pub(super) path: PathBuf,
    real_path: PathBuf,
    handle: FileHandle,
}

/// What stands where a call wants to write.
pub(super) enum TargetState {
    /// Nothing yet.
    Missing,
    /// A file.
    File(ExistingFile),
}

/// A file that stands there.
pub(super) struct ExistingFile {
    /// What is in it.
    pub(super) content: FileContent,
    /// Whether the model knows it.
    pub(super) read_state: ReadState,
}

/// What is in a file.
pub(super) enum FileContent {
    /// Text.
    Text(DecodedText),
    /// Bytes that are no text.
    Binary,
    /// More than can be handled as a whole.
    TooLarge,
}

/// Whether the model knows a file as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadState {
    /// It never saw it.
    Unread,
    /// It saw it, but somebody changed it since.
    Changed,
    /// It saw it as it is.
    Current,
}

/// The largest file that is edited or compared.
const MAX_FILE_BYTES: u64 = 32 * 1024 * 1024;
/// The longest text that is remembered of a file.
const MAX_REMEMBERED_BYTES: usize = 256 * 1024;

impl FileTarget {
    /// The place that the call was judged by. Only a call that nobody judged looks for it here.
    pub(super) fn resolve(call: &ToolContext, written: &str) -> Result<Self, ToolError> {
        let ResolvedFile { display_path: shown, real_path: real } = call.checked_file.clone().unwrap_or_else(|| {
            let shown = files::normalize_path(&call.workspace.resolve(written));
            ResolvedFile { real_path: physical_path(&shown, &RealFs), display_path: shown }
        });
        match FileHandle::for_real_path(&real) {
            Ok(spot) => Ok(Self { path: shown, real_path: real, handle: spot }),
            Err(error) => Err(read_error(&shown, &error)),
        }
    }

    /// Looks what stands there.
    pub(super) fn file_kind(&self) -> Result<FileKind, ToolError> {
        self.handle.kind().map_err(|error| read_error(&self.path, &error))
    }

    /// Looks at a file that the call wants to change.
    pub(super) fn load(&self, workspace: &Workspace) -> Result<TargetState, ToolError> {
        let stamp = match self.file_kind()? {
            FileKind::Missing => return Ok(TargetState::Missing),
            FileKind::File(stamp) => stamp,
            other => return Err(ToolError::Rejected(not_a_file_message(&self.path, other))),
        };
        let (body, stamp) = match self.handle.read(MAX_FILE_BYTES) {
            Ok((bytes, stamp)) => (decode(bytes).map_or(FileContent::Binary, FileContent::Text), stamp),
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => (FileContent::TooLarge, stamp),
            Err(error) => return Err(read_error(&self.path, &error)),
        };
        let text = match &body {
            FileContent::Text(decoded) => Some(decoded.text.as_str()),
            FileContent::Binary | FileContent::TooLarge => None,
        };
        let standing = compare_with_seen(workspace.seen_file(&self.path).as_ref(), stamp, text);
        Ok(TargetState::File(ExistingFile { content: body, read_state: standing }))
    }

    /// Makes the file.
    pub(super) fn create(&self, bytes: &[u8]) -> Result<FileStamp, ToolError> {
        self.handle.create(bytes).map_err(|error| write_error(&self.path, &error))
    }

    /// Replaces the file.
    pub(super) fn replace(&self, bytes: &[u8]) -> Result<FileStamp, ToolError> {
        self.handle.replace(bytes).map_err(|error| write_error(&self.path, &error))
    }

    /// Notes that the model knows the file as it is now. `text` is the whole text, if the model saw or wrote all of it.
    pub(super) fn record_seen(&self, workspace: &Workspace, stamp: FileStamp, text: Option<&str>) {
        let text = text.filter(|text| text.len() <= MAX_REMEMBERED_BYTES).map(Arc::from);
        let seen = SeenFile { real_path: self.real_path.clone(), modified: stamp.modified, size: stamp.size, text };
        workspace.record_seen(&self.path, seen);
    }

    /// Whether it is one of those places that [`is_off_limits`].
    pub(super) fn is_special(&self) -> bool {
        is_special_path_name(&self.path) || is_special_path_name(&self.real_path)
    }

    /// What is on disk there.
    pub(super) fn handle(&self) -> &FileHandle {
        &self.handle
    }
}

/// Compares a file with what the model saw of it: by its text if that was kept, otherwise by time and size.
fn compare_with_seen(seen: Option<&SeenFile>, stamp: FileStamp, text: Option<&str>) -> ReadState {
    let Some(seen) = seen else { return ReadState::Unread };
    let same = match (&seen.text, text) {
        (Some(seen), Some(text)) => **seen == *text,
        _ => seen.modified == stamp.modified && seen.size == stamp.size,
    };
    if same { ReadState::Current } else { ReadState::Changed }
}

impl ExistingFile {
    /// The text, if it can be changed and written back.
    pub(super) fn require_editable(&self, path: &Path) -> Result<&DecodedText, ToolError> {
        let refused = |why| Err(ToolError::Rejected(format!("{} {why}", path.display())));
        match &self.content {
            FileContent::Text(DecodedText { encoding: TextEncoding::Invalid, .. }) => {
                refused("has bytes that are no characters in any known encoding. Change it with a program.")
            }
            FileContent::Text(decoded) => Ok(decoded),
            FileContent::Binary => refused("is not a text file."),
            FileContent::TooLarge => refused("is too large to be edited here. Change it with a program."),
        }
    }

    /// Refuses to change what the model does not know.
    pub(super) fn require_fresh_read(&self, path: &Path) -> Result<(), ToolError> {
        match self.read_state {
            ReadState::Unread => Err(unread_error(path)),
            ReadState::Changed => Err(changed_error(path)),
            ReadState::Current => Ok(()),
        }
    }
}

/// The model has not read it.
pub(super) fn unread_error(path: &Path) -> ToolError {
    ToolError::Rejected(format!("{} has not been read yet. Read it before you change it.", path.display()))
}

/// Somebody else changed it.
pub(super) fn changed_error(path: &Path) -> ToolError {
    ToolError::Rejected(format!(
        "{} was changed since it was read. Read it again before you change it.",
        path.display()
    ))
}

/// Places where files do not end, wait, or tell about the engine's own process: links to them count too.
pub(crate) fn is_special_path(path: &Path) -> bool {
    is_special_path_name(path) || files::real_path(path).is_some_and(|real| is_special_path_name(&real))
}

fn is_special_path_name(path: &Path) -> bool {
    if let Ok(rest) = path.strip_prefix("/proc") {
        let first = rest.components().next().map(|part| part.as_os_str().to_string_lossy().into_owned());
        let first = first.unwrap_or_default();
        return matches!(first.as_str(), "self" | "thread-self" | "kmsg" | "kcore")
            || first.bytes().all(|byte| byte.is_ascii_digit());
    }
    path.starts_with("/dev") && !path.starts_with("/dev/shm")
}

/// It is not for the model to read.
pub(super) fn special_path_error(path: &Path) -> ToolError {
    ToolError::Rejected(format!("{} belongs to the system and is not read here.", path.display()))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;

    #[test]
    fn a_file_is_known_if_its_text_or_else_its_stamp_is_what_was_seen() {
        let then = SystemTime::UNIX_EPOCH;
        let later = then + Duration::from_secs(1);
        let seen = |text: Option<&str>| {
            Some(SeenFile { real_path: "/f".into(), modified: then, size: 1, text: text.map(Arc::from) })
        };
        let stamp = |modified, size| FileStamp { modified, size };
        for (name, seen, stamp, text, expected) in [
            ("never seen", None, stamp(then, 1), Some("a"), ReadState::Unread),
            ("same text, only touched", seen(Some("a")), stamp(later, 1), Some("a"), ReadState::Current),
            ("other text in the same instant", seen(Some("a")), stamp(then, 1), Some("b"), ReadState::Changed),
            ("text not kept, same stamp", seen(None), stamp(then, 1), Some("a"), ReadState::Current),
            ("text not kept, touched", seen(None), stamp(later, 1), Some("a"), ReadState::Changed),
            ("text not kept, other size", seen(None), stamp(then, 2), Some("a"), ReadState::Changed),
            ("was text, is binary, touched", seen(Some("a")), stamp(later, 1), None, ReadState::Changed),
        ] {
            assert_eq!(compare_with_seen(seen.as_ref(), stamp, text), expected, "{name}");
        }
    }
}
