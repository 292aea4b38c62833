//! Bounded read of one instruction file; never blocks on pipes or devices.

use std::io::{self, Read};
use std::path::Path;

use whimbrel_os::files::{self, FileKind};

/// Limit on one file.
pub(super) const MAX_FILE_BYTES: usize = 64 * 1024;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum ReadOutcome {
    Missing,
    Directory,
    /// Not readable, with the reason.
    Unreadable(String),
    Text(FileText),
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct FileText {
    /// The text, possibly truncated.
    pub(super) text: String,
    /// Size of the whole file, if the text is truncated.
    pub(super) full_size: Option<u64>,
}

/// Reads a file. The path must be resolved, so that the file that was checked is the one that is read.
pub(super) fn read_bounded(real_path: &Path) -> ReadOutcome {
    match files::file_kind(real_path) {
        Ok(FileKind::Missing) => ReadOutcome::Missing,
        Ok(FileKind::Directory) => ReadOutcome::Directory,
        Ok(FileKind::Pipe) => ReadOutcome::Unreadable("it is a named pipe".into()),
        Ok(FileKind::Socket) => ReadOutcome::Unreadable("it is a socket".into()),
        Ok(FileKind::Device) => ReadOutcome::Unreadable("it is a device".into()),
        Ok(FileKind::File(_)) => {
            read_start(real_path).unwrap_or_else(|error| ReadOutcome::Unreadable(error.to_string()))
        }
        Err(error) => ReadOutcome::Unreadable(error.to_string()),
    }
}

fn read_start(path: &Path) -> io::Result<ReadOutcome> {
    let (file, stamp) = files::open(path)?;
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    let is_truncated = bytes.len() > MAX_FILE_BYTES;
    bytes.truncate(MAX_FILE_BYTES);
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            // A character split by the limit is not an encoding error.
            let valid = error.utf8_error().valid_up_to();
            if !is_truncated || MAX_FILE_BYTES - valid > 3 {
                return Ok(ReadOutcome::Unreadable("it is not UTF-8 text".into()));
            }
            let mut bytes = error.into_bytes();
            bytes.truncate(valid);
            String::from_utf8(bytes).unwrap_or_default()
        }
    };
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text).trim().to_owned();
    Ok(ReadOutcome::Text(FileText { text, full_size: is_truncated.then_some(stamp.size) }))
}
