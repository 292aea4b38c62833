//! Files that a [`LineAppender`](super::line_appender::LineAppender) writes to: opened without following symlinks, or
//! replaced by a fake in tests.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use whimbrel_os::files;

use crate::partial_line::repair_tail;

/// An append-only file.
pub(super) trait AppendFile: Send {
    /// Appends bytes, possibly not all of them.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize>;
    /// End offset of our last write.
    fn position(&mut self) -> io::Result<u64>;
    /// Length of the file.
    fn length(&mut self) -> io::Result<u64>;
    /// Truncates the file.
    fn truncate(&mut self, length: u64) -> io::Result<()>;
    /// Syncs the data to disk.
    fn sync(&mut self) -> io::Result<()>;
    /// Checks whether this is the file at a path.
    fn is_at(&self, path: &Path) -> bool;
    /// Reads bytes, possibly fewer than fit.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize>;
    /// Overwrites bytes of the file, which is at this path.
    fn overwrite(&mut self, path: &Path, offset: u64, bytes: &[u8]) -> io::Result<()>;
    /// Syncs the directory entry of the file.
    fn sync_dir_entry(&mut self, path: &Path) -> io::Result<()> {
        sync_parent_dirs(path)
    }
    /// Reopens the file while keeping its lock. After an error nothing has changed.
    fn reopen(&mut self, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    /// Takes the error of a failed attempt to lock the file.
    fn take_lock_error(&mut self) -> Option<io::Error> {
        None
    }
}

impl AppendFile for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Write::write(self, bytes)
    }

    fn position(&mut self) -> io::Result<u64> {
        self.stream_position()
    }

    fn length(&mut self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }

    fn is_at(&self, path: &Path) -> bool {
        match (self.metadata(), std::fs::symlink_metadata(path)) {
            (Ok(ours), Ok(there)) => (ours.dev(), ours.ino()) == (there.dev(), there.ino()),
            _ => false,
        }
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        FileExt::read_at(self, into, offset)
    }

    fn overwrite(&mut self, path: &Path, offset: u64, bytes: &[u8]) -> io::Result<()> {
        // A descriptor in append mode writes at the end whatever the offset, so another one is needed.
        let writable = open_regular(OpenOptions::new().write(true), path)?;
        let (ours, theirs) = (self.metadata()?, writable.metadata()?);
        if (ours.dev(), ours.ino()) != (theirs.dev(), theirs.ino()) {
            return Err(io::Error::other("another file is at this path now"));
        }
        writable.write_all_at(bytes, offset)
    }
}

/// Opens a transcript for appending; creates it, private to the user, and its parent directories if missing. Symlinks
/// are rejected, pipes do not block. A partial last line is removed; a complete one without a newline gets one.
pub(super) fn open_for_append(path: &Path) -> io::Result<File> {
    if let Some(dir) = path.parent() {
        files::create_private_dir(dir)?;
    }
    let mut file = open_regular(OpenOptions::new().read(true).append(true).create(true).mode(0o600), path)?;
    repair_tail(&mut file)?;
    Ok(file)
}

/// Syncs all parent directories, each of which may be new. Directories that cannot be opened and filesystems without
/// directory sync are skipped.
fn sync_parent_dirs(path: &Path) -> io::Result<()> {
    for dir in path.ancestors().skip(1).filter(|dir| !dir.as_os_str().is_empty()) {
        match File::open(dir).and_then(|dir| dir.sync_all()) {
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::PermissionDenied
                        | io::ErrorKind::InvalidInput
                        | io::ErrorKind::Unsupported
                        | io::ErrorKind::ReadOnlyFilesystem
                ) => {}
            synced => synced?,
        }
    }
    Ok(())
}

/// Opens a transcript for reading. Symlinks are rejected, pipes do not block.
pub(super) fn open_for_reading(path: &Path) -> io::Result<File> {
    open_regular(OpenOptions::new().read(true), path)
}

/// Opens a file, rejecting symlinks and everything that is not a regular file.
pub(super) fn open_regular(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
    let file = options.custom_flags(flags.bits()).open(path).map_err(|error| match error.raw_os_error() {
        Some(code) if code == Errno::ELOOP as i32 => io::Error::new(
            io::ErrorKind::InvalidInput,
            "the transcript's path is a symbolic link, which is not followed",
        ),
        _ => error,
    })?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "the transcript's path is not a regular file",
        ));
    }
    Ok(file)
}
