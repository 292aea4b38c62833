//! What is seen of a file without reading it.

use std::fs::Metadata;
use std::time::{Duration, SystemTime};

use nix::sys::stat::{FileStat, SFlag};

/// What stands somewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Nothing.
    Missing,
    /// A regular file.
    File(Stamp),
    /// A folder.
    Folder,
    /// A named pipe.
    Pipe,
    /// A socket.
    Socket,
    /// A device.
    Device,
}

impl Kind {
    /// What an entry is that is no link.
    pub(super) fn of(found: &FileStat) -> Self {
        match format(found) {
            SFlag::S_IFREG => Self::File(Stamp::of_entry(found)),
            SFlag::S_IFDIR => Self::Folder,
            SFlag::S_IFIFO => Self::Pipe,
            SFlag::S_IFSOCK => Self::Socket,
            _ => Self::Device,
        }
    }
}

/// By what a change of a file is noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// When it was changed last.
    pub modified: SystemTime,
    /// How many bytes it has.
    pub size: u64,
}

impl Stamp {
    /// The stamp of an open file.
    pub(super) fn of(metadata: &Metadata) -> Self {
        Self { modified: metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH), size: metadata.len() }
    }

    /// The stamp of an entry: the same that the file has when it is open.
    pub(super) fn of_entry(found: &FileStat) -> Self {
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
pub(super) fn is_link(found: &FileStat) -> bool {
    format(found) == SFlag::S_IFLNK
}

fn format(found: &FileStat) -> SFlag {
    SFlag::from_bits_truncate(found.st_mode) & SFlag::S_IFMT
}
