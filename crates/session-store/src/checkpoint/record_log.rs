//! Checkpoint log: one JSON line per record, read by resumed sessions.

use std::io;
use std::path::{Path, PathBuf};

use whimbrel_os::files;

use crate::Durability;
use crate::checkpoint::history::{CheckpointRecord, FileHistory};
use crate::line_appender::LineAppender;

const LOG_FILE_NAME: &str = "checkpoints.jsonl";
/// Larger files are not read.
const MAX_LOG_SIZE: u64 = 256 * 1024 * 1024;

/// Path of the log in a checkpoint directory.
pub(super) fn log_path(dir: &Path) -> PathBuf {
    dir.join(LOG_FILE_NAME)
}

/// Distinguishes the log from saved contents.
pub(super) fn is_log_file(name: &str) -> bool {
    name == LOG_FILE_NAME
}

/// Copies a log, if there is one, to a directory without one.
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

/// A log open for appending.
#[derive(Debug)]
pub(super) struct CheckpointLog {
    file: LineAppender,
    /// The file ends in a partial line because its writer was killed.
    ends_partial: bool,
}

impl CheckpointLog {
    /// Reads the log. Invalid lines are skipped: they cost a checkpoint, not the session.
    pub(super) fn load(dir: &Path) -> (Self, FileHistory, io::Result<()>) {
        let path = log_path(dir);
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
        let partial = bytes.last().is_some_and(|last| *last != b'\n');
        (Self { file: LineAppender::new(path, Durability::System), ends_partial: partial }, history, read)
    }

    pub(super) fn append(&mut self, record: &CheckpointRecord) -> io::Result<()> {
        let mut line = if self.ends_partial { vec![b'\n'] } else { Vec::new() };
        serde_json::to_writer(&mut line, record)?;
        line.push(b'\n');
        self.file.append(line)?;
        self.ends_partial = false;
        Ok(())
    }
}
