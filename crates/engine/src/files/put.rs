//! Making and replacing files.
//!
//! A file is changed by putting a finished one in its place, so that nobody ever sees half of it. Where that would
//! change more than the bytes, the bytes are changed in place: a file with several names stays one file, one that
//! belongs to somebody else stays theirs, and one in a folder where nothing can be made can still be written.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use tempfile::NamedTempFile;

use super::keep::keep;
use super::stage::{Reader, stage};
use super::{Stamp, folder_of, read};

/// The largest file whose old bytes are held in memory while it is written in place.
const HELD: u64 = 64 * 1024 * 1024;

/// Puts a new file at a path where nothing stands, and makes its folders; if something does stand there,
/// [`io::ErrorKind::AlreadyExists`]. Nobody sees half of it; but like most programs this does not wait for the disk, so
/// if the power fails soon after, a new file may be missing or empty.
pub fn create(path: &Path, bytes: &[u8]) -> io::Result<Stamp> {
    let target = follow(path)?;
    fs::create_dir_all(folder_of(&target)).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => Errno::ENOTDIR.into(),
        _ => error,
    })?;
    let staged = stage(&target, bytes, Reader::Everybody)?;
    let stamp = Stamp::of(&staged.as_file().metadata()?);
    staged.persist_noclobber(&target).map_err(|error| error.error)?;
    Ok(stamp)
}

/// Puts new bytes in the place of a regular file that the user may write. Mode, owner and extended attributes stay; a
/// symbolic link stays a link, and hard links stay links to one file. The change is all or nothing, except that a file
/// which must be written in place can be left half written by a power cut or a kill at that instant.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<Stamp> {
    let target = follow(path)?;
    let (file, old) = open_to_write(&target)?;
    let successor = if old.nlink() > 1 { None } else { successor(&target, file.as_ref(), &old, bytes)? };
    let Some(successor) = successor else { return overwrite(&target, file, bytes) };
    let stamp = Stamp::of(&successor.as_file().metadata()?);
    match successor.persist(&target) {
        Ok(_) => Ok(stamp),
        // A place that must not be taken, such as a single file mounted into a container.
        Err(refused) if matches!(errno(&refused.error), Errno::EBUSY | Errno::EXDEV) => {
            overwrite(&target, file, bytes)
        }
        Err(refused) => Err(refused.error),
    }
}

/// Opens a file for writing without changing it: the system's own answer to whether the user may. A running program
/// has no open file here: it may be replaced but not overwritten.
fn open_to_write(target: &Path) -> io::Result<(Option<File>, Metadata)> {
    let seen = fs::metadata(target)?;
    if !seen.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    // Root may write anything; that a file is read-only for everybody is meant for root too.
    if seen.mode() & 0o222 == 0 {
        return Err(Errno::EACCES.into());
    }
    let flags = OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_NOFOLLOW;
    match OpenOptions::new().write(true).custom_flags(flags.bits()).open(target) {
        Ok(file) => {
            let metadata = file.metadata()?;
            Ok((Some(file), metadata))
        }
        Err(error) if errno(&error) == Errno::ETXTBSY => Ok((None, seen)),
        Err(error) => Err(error),
    }
}

/// A finished file that can take the place of the old one without anybody noticing more than new bytes. None if there
/// cannot be one, so that the bytes must be changed in place.
fn successor(
    target: &Path,
    file: Option<&File>,
    old: &Metadata,
    bytes: &[u8],
) -> io::Result<Option<NamedTempFile>> {
    let staged = match stage(target, bytes, Reader::Owner) {
        Ok(staged) => staged,
        Err(error) if matches!(errno(&error), Errno::EACCES | Errno::EPERM | Errno::EROFS) => {
            return if file.is_some() { Ok(None) } else { Err(error) };
        }
        Err(error) => return Err(error),
    };
    let kept = keep(target, old, staged.as_file())?;
    Ok((kept || file.is_none()).then_some(staged))
}

/// Writes new bytes into a file. What needs more room is written first: if there is none, nothing has changed.
fn overwrite(target: &Path, file: Option<File>, bytes: &[u8]) -> io::Result<Stamp> {
    let Some(file) = file else { return Err(Errno::ETXTBSY.into()) };
    let size = file.metadata()?.len();
    let shared = bytes.len().min(usize::try_from(size).unwrap_or(usize::MAX));
    let before = read(target, HELD).map(|(before, _)| before);
    let written = file
        .write_all_at(&bytes[shared..], shared as u64)
        .and_then(|()| file.write_all_at(&bytes[..shared], 0))
        .and_then(|()| file.set_len(bytes.len() as u64))
        .and_then(|()| file.sync_data());
    if let Err(error) = written {
        if let Ok(before) = before {
            let _ = file.write_all_at(&before[..shared.min(before.len())], 0);
        }
        let _ = file.set_len(size);
        return Err(error);
    }
    Ok(Stamp::of(&file.metadata()?))
}

/// Where a path leads if its last part is a symbolic link, even to something that does not exist yet.
fn follow(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_path_buf();
    for _ in 0..40 {
        match fs::read_link(&path) {
            Ok(to) => path = folder_of(&path).join(to),
            Err(_) => return Ok(path),
        }
    }
    Err(Errno::ELOOP.into())
}

fn errno(error: &io::Error) -> Errno {
    Errno::from_raw(error.raw_os_error().unwrap_or(0))
}
