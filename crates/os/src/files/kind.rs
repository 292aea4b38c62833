//! File kind and stamp, as reported by `stat`.

use std::fs::Metadata;
use std::time::{Duration, SystemTime};

use nix::sys::stat::{FileStat, SFlag};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// No file.
    Missing,
    /// A regular file.
    File(FileStamp),
    /// A directory.
    Directory,
    /// A named pipe.
    Pipe,
    /// A socket.
    Socket,
    /// A device.
    Device,
}

impl FileKind {
    /// The kind of an entry that is not a symlink.
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

/// Modification time and size, to detect changes of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStamp {
    pub modified: SystemTime,
    /// Size in bytes.
    pub size: u64,
}

impl FileStamp {
    pub(super) fn from_metadata(metadata: &Metadata) -> Self {
        Self { modified: metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH), size: metadata.len() }
    }

    /// Equals the stamp from [`Self::from_metadata`] of the same file.
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

pub(super) fn is_symlink(found: &FileStat) -> bool {
    file_type(found) == SFlag::S_IFLNK
}

fn file_type(found: &FileStat) -> SFlag {
    SFlag::from_bits_truncate(found.st_mode) & SFlag::S_IFMT
}
