//! The file that a call works on: resolved path, open directory and current content.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use whimbrel_os::files::{self, FileHandle, FileKind, FileStamp};
use whimbrel_policy::ResolvedFile;
use whimbrel_policy::fs::RealFs;
use whimbrel_policy::paths::resolve_physical_path;

use super::encoding::{DecodedText, TextEncoding, decode};
use super::file_errors::{not_a_file_message, read_error, write_error};
use crate::api::{ToolContext, ToolError};
use crate::workspace::{ReadState, SeenFile, Workspace, compare_with_seen};

/// A resolved path with an open directory handle.
pub(super) struct FileTarget {
    /// The path shown to model and host: absolute, normalized, symlinks not resolved.
    pub(super) path: PathBuf,
    real_path: PathBuf,
    handle: FileHandle,
}

/// State of the path that a call is about to write.
pub(super) enum TargetState {
    Missing,
    File(ExistingFile),
}

pub(super) struct ExistingFile {
    pub(super) content: FileContent,
    /// Whether the model has read this content.
    pub(super) read_state: ReadState,
}

pub(super) enum FileContent {
    Text(DecodedText),
    Binary,
    /// Larger than [`MAX_FILE_BYTES`].
    TooLarge,
}

/// Largest file that is edited or compared.
const MAX_FILE_BYTES: u64 = 32 * 1024 * 1024;
/// Longest text that is kept of a file for comparison.
const MAX_REMEMBERED_BYTES: usize = 256 * 1024;

impl FileTarget {
    /// Uses the file that the permission check resolved. Calls that bypassed the check (tests) resolve it here.
    pub(super) fn resolve(call: &ToolContext, path_text: &str) -> Result<Self, ToolError> {
        let ResolvedFile { display_path, real_path } = call.checked.file.clone().unwrap_or_else(|| {
            let display_path = files::normalize_path(&call.workspace.resolve(path_text));
            ResolvedFile { real_path: resolve_physical_path(&display_path, &RealFs), display_path }
        });
        match FileHandle::for_real_path(&real_path) {
            Ok(handle) => Ok(Self { path: display_path, real_path, handle }),
            Err(error) => Err(read_error(&display_path, &error)),
        }
    }

    pub(super) fn file_kind(&self) -> Result<FileKind, ToolError> {
        self.handle.kind().map_err(|error| read_error(&self.path, &error))
    }

    /// Returns the kind of the file to be written. An empty folder that the sandbox keeps in its place is removed.
    fn uncovered_kind(&self, workspace: &Workspace) -> Result<FileKind, ToolError> {
        let kind = self.file_kind()?;
        let sandbox = workspace.sandbox();
        if !matches!(kind, FileKind::Directory) || !sandbox.has_cover(&self.real_path) {
            return Ok(kind);
        }
        sandbox.uncover();
        match self.file_kind()? {
            FileKind::Directory => Err(ToolError::Rejected(format!(
                "{} cannot be created while a command in the sandbox runs, which could change it. Wait for the command, or \
                 stop it with TaskStop.",
                self.path.display()
            ))),
            other => Ok(other),
        }
    }

    /// Loads the content of a file that the call is about to change.
    pub(super) fn load(&self, workspace: &Workspace) -> Result<TargetState, ToolError> {
        let stamp = match self.uncovered_kind(workspace)? {
            FileKind::Missing => return Ok(TargetState::Missing),
            FileKind::File(stamp) => stamp,
            other => return Err(ToolError::Rejected(not_a_file_message(&self.path, other))),
        };
        let (content, stamp) = match self.handle.read(MAX_FILE_BYTES) {
            Ok((bytes, stamp)) => (decode(bytes).map_or(FileContent::Binary, FileContent::Text), stamp),
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => (FileContent::TooLarge, stamp),
            Err(error) => return Err(read_error(&self.path, &error)),
        };
        let text = match &content {
            FileContent::Text(decoded) => Some(decoded.text.as_str()),
            FileContent::Binary | FileContent::TooLarge => None,
        };
        let read_state = compare_with_seen(workspace.seen_file(&self.path).as_ref(), stamp, text);
        Ok(TargetState::File(ExistingFile { content, read_state }))
    }

    pub(super) fn create(&self, bytes: &[u8]) -> Result<FileStamp, ToolError> {
        self.handle.create(bytes).map_err(|error| write_error(&self.path, &error))
    }

    pub(super) fn replace(&self, bytes: &[u8]) -> Result<FileStamp, ToolError> {
        self.handle.replace(bytes).map_err(|error| write_error(&self.path, &error))
    }

    /// Records that the model knows the current content. `text` is set if the model has read or written all of it.
    pub(super) fn record_seen(&self, workspace: &Workspace, stamp: FileStamp, text: Option<&str>) {
        let text = text.filter(|text| text.len() <= MAX_REMEMBERED_BYTES).map(Arc::from);
        let seen =
            SeenFile { real_path: self.real_path.clone(), modified: stamp.modified, size: stamp.size, text };
        workspace.record_seen(&self.path, seen);
    }

    /// See [`files::is_special_path`]; checks the shown and the real path.
    pub(super) fn is_special(&self) -> bool {
        files::is_special_path_name(&self.path) || files::is_special_path_name(&self.real_path)
    }

    pub(super) fn handle(&self) -> &FileHandle {
        &self.handle
    }
}

impl ExistingFile {
    /// Returns the text if it can be edited and written back in its encoding.
    pub(super) fn require_editable(&self, path: &Path) -> Result<&DecodedText, ToolError> {
        let reject = |reason| Err(ToolError::Rejected(format!("{} {reason}", path.display())));
        match &self.content {
            FileContent::Text(DecodedText { encoding: TextEncoding::Invalid, .. }) => {
                reject("has bytes that are not valid in any known encoding. Change it with a command.")
            }
            FileContent::Text(decoded) => Ok(decoded),
            FileContent::Binary => reject("is not a text file."),
            FileContent::TooLarge => reject("is too large to edit. Change it with a command."),
        }
    }
}

pub(super) fn special_path_error(path: &Path) -> ToolError {
    ToolError::Rejected(format!("{} is a device or system file and cannot be read.", path.display()))
}
