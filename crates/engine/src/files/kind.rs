//! What is seen of a file without reading it.

use std::fs::Metadata;
use std::time::{Duration, SystemTime};

use nix::sys::stat::{FileStat, SFlag};

/// What stands somewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// Nothing.
    Missing,
    /// A regular file.
    File(FileStamp),
    /// A folder.
    Directory,
    /// A named pipe.
    Pipe,
    /// A socket.
    Socket,
    /// A device.
    Device,
}

impl FileKind {
    /// What an entry is that is no link.
    pub(super) fn from_stat(found: &FileStat) -> Self {
        match file_type(found) {
            SFlag::S_IFREG => Self::File(FileStamp::from_stat(found)),
            SFlag::S_IFDIR => Self::Directory,
            SFlag::S_IFIFO => Self::Pipe,
            SFlag::S_IFSOCK => Self::Socket,
            _ => Self::Device,
        }
    }
}

/// By what a change of a file is noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStamp {
    /// When it was changed last.
    pub modified: SystemTime,
    /// How many bytes it has.
    pub size: u64,
}

impl FileStamp {
    /// The stamp of an open file.
    pub(super) fn from_metadata(metadata: &Metadata) -> Self {
        Self { modified: metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH), size: metadata.len() }
    }

    /// The stamp of an entry: the same that the file has when it is open.
    pub(super) fn from_stat(found: &FileStat) -> Self {
        let part = Duration::from_nanos(u64::try_from(found.st_mtime_nsec).unwrap_or(0));
        let whole = Duration::from_secs(found.st_mtime.unsigned_abs());
        let modified = match found.st_mtime {
            0.. => SystemTime::UNIX_EPOCH + whole + part,
            _ => SystemTime::UNIX_EPOCH - whole + part,
        };
        Self { modified, size: u64::try_from(found.st_size).unwrap_or(0) }
    }
}

/// Whether an entry is a symbolic link.
pub(super) fn is_symlink(found: &FileStat) -> bool {
    file_type(found) == SFlag::S_IFLNK
}

fn file_type(found: &FileStat) -> SFlag {
    SFlag::from_bits_truncate(found.st_mode) & SFlag::S_IFMT
}
