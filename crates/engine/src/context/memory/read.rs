//! Reading one instruction file: bounded, and never waiting for something that is no file.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::files::{self, Kind};

/// How much of one file the model is told.
pub(super) const LONGEST: usize = 64 * 1024;

/// What came of reading a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Nothing is there.
    Nothing,
    /// A folder is there.
    Folder,
    /// Something that cannot be read, and why.
    Unreadable(String),
    /// A text.
    Text(Text),
}

/// The text of a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Text {
    /// Its beginning, or all of it.
    pub(super) text: String,
    /// How many bytes the whole file has, if that is more.
    pub(super) cut_from: Option<u64>,
}

/// Where a path really leads.
pub(super) fn real(path: &Path) -> Option<PathBuf> {
    files::real_path(path)
}

/// Reads a file. The path has no links in it, so that what was judged is what is read.
pub(super) fn read(real: &Path) -> Found {
    match files::kind(real) {
        Ok(Kind::Missing) => Found::Nothing,
        Ok(Kind::Folder) => Found::Folder,
        Ok(Kind::Pipe) => Found::Unreadable("it is a named pipe".into()),
        Ok(Kind::Socket) => Found::Unreadable("it is a socket".into()),
        Ok(Kind::Device) => Found::Unreadable("it is a device".into()),
        Ok(Kind::File(_)) => begin(real).unwrap_or_else(|error| Found::Unreadable(error.to_string())),
        Err(error) => Found::Unreadable(error.to_string()),
    }
}

fn begin(path: &Path) -> io::Result<Found> {
    let (file, stamp) = files::open(path)?;
    let mut bytes = Vec::new();
    file.take(LONGEST as u64 + 1).read_to_end(&mut bytes)?;
    let cut = bytes.len() > LONGEST;
    bytes.truncate(LONGEST);
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            // A character that the limit cuts through is no fault of the file.
            let valid = error.utf8_error().valid_up_to();
            if !cut || LONGEST - valid > 3 {
                return Ok(Found::Unreadable("it is not UTF-8 text".into()));
            }
            let mut bytes = error.into_bytes();
            bytes.truncate(valid);
            String::from_utf8(bytes).unwrap_or_default()
        }
    };
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text).trim().to_owned();
    Ok(Found::Text(Text { text, cut_from: cut.then_some(stamp.size) }))
}
