//! Reading one instruction file: bounded, and never waiting for something that is no file.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::files::{self, FileKind};

/// How much of one file the model is told.
pub(super) const MAX_FILE_BYTES: usize = 64 * 1024;

/// What came of reading a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ReadOutcome {
    /// Nothing is there.
    Missing,
    /// A folder is there.
    Directory,
    /// Something that cannot be read, and why.
    Unreadable(String),
    /// A text.
    Text(FileText),
}

/// The text of a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FileText {
    /// Its beginning, or all of it.
    pub(super) text: String,
    /// How many bytes the whole file has, if that is more.
    pub(super) full_size: Option<u64>,
}

/// Where a path really leads.
pub(super) fn resolve(path: &Path) -> Option<PathBuf> {
    files::real_path(path)
}

/// Reads a file. The path has no links in it, so that what was judged is what is read.
pub(super) fn read(real: &Path) -> ReadOutcome {
    match files::file_kind(real) {
        Ok(FileKind::Missing) => ReadOutcome::Missing,
        Ok(FileKind::Directory) => ReadOutcome::Directory,
        Ok(FileKind::Pipe) => ReadOutcome::Unreadable("it is a named pipe".into()),
        Ok(FileKind::Socket) => ReadOutcome::Unreadable("it is a socket".into()),
        Ok(FileKind::Device) => ReadOutcome::Unreadable("it is a device".into()),
        Ok(FileKind::File(_)) => read_start(real).unwrap_or_else(|error| ReadOutcome::Unreadable(error.to_string())),
        Err(error) => ReadOutcome::Unreadable(error.to_string()),
    }
}

fn read_start(path: &Path) -> io::Result<ReadOutcome> {
    let (file, stamp) = files::open(path)?;
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    let cut = bytes.len() > MAX_FILE_BYTES;
    bytes.truncate(MAX_FILE_BYTES);
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            // A character that the limit cuts through is no fault of the file.
            let valid = error.utf8_error().valid_up_to();
            if !cut || MAX_FILE_BYTES - valid > 3 {
                return Ok(ReadOutcome::Unreadable("it is not UTF-8 text".into()));
            }
            let mut bytes = error.into_bytes();
            bytes.truncate(valid);
            String::from_utf8(bytes).unwrap_or_default()
        }
    };
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text).trim().to_owned();
    Ok(ReadOutcome::Text(FileText { text, full_size: cut.then_some(stamp.size) }))
}
