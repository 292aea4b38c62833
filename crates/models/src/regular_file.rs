//! Bounded reads of files named by the user. Devices, pipes and sockets are rejected because reading them may not end.

use std::io;
use std::path::Path;

use whimbrel_os::files::{self, FileKind};

/// Reads a regular file of at most `limit` bytes. The error text is a sentence with its full stop.
pub(crate) fn read(path: &Path, limit: u64) -> Result<Vec<u8>, String> {
    let kind = match files::file_kind(path) {
        Ok(FileKind::File(_) | FileKind::Missing) | Err(_) => None,
        Ok(FileKind::Directory) => Some("a directory"),
        Ok(FileKind::Device | FileKind::Pipe | FileKind::Socket) => Some("a device, pipe or socket"),
    };
    if let Some(kind) = kind {
        return Err(format!("it is {kind}; name a regular file."));
    }
    files::read(path, limit).map(|(bytes, _)| bytes).map_err(|error| match error.kind() {
        io::ErrorKind::FileTooLarge => format!("it is larger than {} MB.", limit >> 20),
        _ => format!("{error}."),
    })
}
