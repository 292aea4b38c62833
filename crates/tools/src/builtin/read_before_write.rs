//! Read before write: a file may be changed only if the model has read its current content.

use std::path::Path;

use super::file_target::ExistingFile;
use crate::api::ToolError;
use crate::workspace::ReadState;

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
