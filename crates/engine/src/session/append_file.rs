//! What an appender writes to: a file that is opened with care, or something that fails on demand.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use memchr::memrchr;
use nix::errno::Errno;
use nix::fcntl::OFlag;
use serde::de::IgnoredAny;

/// How much of a file's end is looked at at once.
const TAIL_CHUNK_SIZE: usize = 64 * 1024;

/// Something that bytes are added to at the end.
pub(super) trait AppendFile: Send {
    /// Adds bytes, perhaps not all.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize>;
    /// Where the last bytes that we added end.
    fn position(&mut self) -> io::Result<u64>;
    /// Where all bytes end.
    fn length(&mut self) -> io::Result<u64>;
    /// Takes away what lies beyond a length.
    fn truncate(&mut self, length: u64) -> io::Result<()>;
    /// Forces everything onto the disk.
    fn sync(&mut self) -> io::Result<()>;
    /// Whether this is what lies at a path.
    fn is_at(&self, path: &Path) -> bool;
    /// Reads bytes back, perhaps fewer than fit.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize>;
    /// Forces the name that it has onto the disk, which is the folders' business.
    fn sync_dir_entry(&mut self, path: &Path) -> io::Result<()> {
        sync_parent_dirs(path)
    }
    /// Opens the file at a path anew without letting go of it. An error leaves everything as it is.
    fn reopen(&mut self, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    /// Why nobody is kept from writing there too, though somebody should be; told once.
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
}

/// Opens a transcript for appending, and makes it and its folders if need be. Only the user can read it; a link at the
/// path is not followed, and a pipe is not waited for. A line that somebody left half is taken away, one that only
/// lacks its end gets it.
pub(super) fn open_for_append(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    let mut file = open_regular(OpenOptions::new().read(true).append(true).create(true).mode(0o600), path)?;
    repair_tail(&mut file)?;
    Ok(file)
}

/// Forces the folders above a file onto the disk: any of them may be new. Those that we may not open are not, and some disks
/// do not know what is asked of them.
fn sync_parent_dirs(path: &Path) -> io::Result<()> {
    for folder in path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty()) {
        match File::open(folder).and_then(|folder| folder.sync_all()) {
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

/// Takes away a line that somebody left half at the end of a transcript, and ends one that only lacks its end.
pub(super) fn repair_tail(file: &mut File) -> io::Result<()> {
    let length = file.metadata()?.len();
    let whole = if length == 0 { 0 } else { last_line_end(file, length)? };
    if whole < length {
        file.seek(SeekFrom::Start(whole))?;
        let is_line = serde_json::from_reader::<_, IgnoredAny>(io::BufReader::new(&*file)).is_ok();
        if is_line { file.write_all(b"\n")? } else { file.set_len(whole)? }
    }
    Ok(())
}

/// Opens a transcript for reading. A link is not followed, and a pipe is not waited for.
pub(super) fn open_for_reading(path: &Path) -> io::Result<File> {
    open_regular(OpenOptions::new().read(true), path)
}

/// Opens a regular file, and nothing else.
pub(super) fn open_regular(how: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
    let file = how.custom_flags(flags.bits()).open(path).map_err(|error| match error.raw_os_error() {
        Some(code) if code == Errno::ELOOP as i32 => io::Error::new(
            io::ErrorKind::InvalidInput,
            "the transcript's path is a link, and links are refused",
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

/// Where the last line that has an end ends.
fn last_line_end(file: &mut File, length: u64) -> io::Result<u64> {
    let mut end = length;
    let mut piece = vec![0; TAIL_CHUNK_SIZE];
    while end > 0 {
        let begin = end.saturating_sub(TAIL_CHUNK_SIZE as u64);
        let piece = &mut piece[..usize::try_from(end - begin).unwrap_or(TAIL_CHUNK_SIZE)];
        file.seek(SeekFrom::Start(begin))?;
        file.read_exact(piece)?;
        if let Some(at) = memrchr(b'\n', piece) {
            return Ok(begin + at as u64 + 1);
        }
        end = begin;
    }
    Ok(0)
}
