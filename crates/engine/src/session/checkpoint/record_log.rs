//! The journal on disk: one line per record, so that a session that is resumed knows what came before.

use std::io;
use std::path::{Path, PathBuf};

use super::history::{FileHistory, CheckpointRecord};
use crate::files;
use crate::session::Durability;
use crate::session::appender::Appender;

/// The file's name in the folder of copies.
const LOG_FILE_NAME: &str = "checkpoints.jsonl";
/// How much of it is read; more than that is no journal of ours.
const MAX_LOG_SIZE: u64 = 256 * 1024 * 1024;

/// Where the journal of a folder lies.
pub(super) fn log_path(folder: &Path) -> PathBuf {
    folder.join(LOG_FILE_NAME)
}

/// Whether a file of the folder is the journal, and no copy.
pub(super) fn is_log_file(name: &str) -> bool {
    name == LOG_FILE_NAME
}

/// Copies a journal to a folder that has none; if there is no journal, there is nothing to copy.
pub(super) fn copy_log(from: &Path, to: &Path) -> io::Result<()> {
    match files::read(&log_path(from), MAX_LOG_SIZE) {
        Ok((bytes, _)) => {
            files::create_private_dir(to)?;
            files::create_with_mode(&log_path(to), &bytes, 0o600).map(drop)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// A journal that is being written.
#[derive(Debug)]
pub(super) struct CheckpointLog {
    file: Appender,
    /// Whether the file ends in the middle of a line, because its writer was killed.
    ends_torn: bool,
}

impl CheckpointLog {
    /// Reads what is there. Lines that make no sense are skipped: what is lost is a copy, not the session.
    pub(super) fn load(folder: &Path) -> (Self, FileHistory, io::Result<()>) {
        let path = log_path(folder);
        let mut history = FileHistory::default();
        let (bytes, read) = match files::read(&path, MAX_LOG_SIZE) {
            Ok((bytes, _)) => (bytes, Ok(())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => (Vec::new(), Ok(())),
            Err(error) => (Vec::new(), Err(error)),
        };
        for line in bytes.split(|byte| *byte == b'\n') {
            if let Ok(record) = serde_json::from_slice(line) {
                history.apply(record);
            }
        }
        let torn = bytes.last().is_some_and(|last| *last != b'\n');
        (Self { file: Appender::new(path, Durability::System), ends_torn: torn }, history, read)
    }

    /// Appends a record.
    pub(super) fn append(&mut self, record: &CheckpointRecord) -> io::Result<()> {
        let mut line = if self.ends_torn { vec![b'\n'] } else { Vec::new() };
        serde_json::to_writer(&mut line, record)?;
        line.push(b'\n');
        self.file.append(line)?;
        self.ends_torn = false;
        Ok(())
    }
}
