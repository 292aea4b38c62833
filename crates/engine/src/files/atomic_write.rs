//! Making and replacing files.
//!
//! A file is changed by putting a finished one in its place, so that nobody ever sees half of it. Where that would
//! change more than the bytes, the bytes are changed in place: a file with several names stays one file, one that
//! belongs to somebody else stays theirs, and one in a folder where nothing can be made can still be written.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use nix::errno::Errno;
use rustix::fs::OFlags;

use super::dir_handle::DirHandle;
use super::copy_metadata::copy_metadata;
use super::file_handle::{PathChangedError, FileHandle, map_link_error};
use super::temp_file::{ReadAccess, TempFile};
use super::{FileKind, FileStamp, parent_dir, read_limited};

/// The largest file whose old bytes are held in memory while it is written in place.
const MAX_BACKUP_SIZE: u64 = 64 * 1024 * 1024;

/// Puts a new file where a path leads now: [`Spot::create`] for whoever needs no judgement.
pub fn create(path: &Path, bytes: &[u8]) -> io::Result<FileStamp> {
    FileHandle::for_path(path)?.create(bytes)
}

/// A file that is to be replaced.
struct OldFile {
    file: File,
    metadata: Metadata,
    writability: Writability,
}

/// What can be done with an old file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Writability {
    /// Other bytes can be written into it.
    Writable,
    /// It is a program that is running: it may be replaced but not overwritten.
    Running,
}

impl FileHandle {
    /// Puts a new file where nothing stands, and makes its folders; if something does stand there,
    /// [`io::ErrorKind::AlreadyExists`]. Nobody sees half of it; but like most programs this does not wait for the disk,
    /// so if the power fails soon after, a new file may be missing or empty.
    pub fn create(&self, bytes: &[u8]) -> io::Result<FileStamp> {
        let home = parent_dir(&self.real);
        let made;
        let folder = match &self.dir {
            Some(folder) => folder,
            None => {
                made = DirHandle::open_or_create(home).map_err(|error| map_link_error(home, error))?;
                &made
            }
        };
        TempFile::write(folder, home, bytes, ReadAccess::Everyone)?.persist_new(&self.name)
    }

    /// Puts new bytes in the place of a regular file that the user may write. Mode, owner and extended attributes stay,
    /// and hard links stay links to one file. The change is all or nothing, except that a file which must be written in
    /// place can be left half written by a power cut or a kill at that instant.
    pub fn replace(&self, bytes: &[u8]) -> io::Result<FileStamp> {
        let Some(folder) = &self.dir else { return Err(Errno::ENOENT.into()) };
        let old = self.open_for_replace()?;
        let successor = if old.metadata.nlink() > 1 { None } else { self.stage_replacement(folder, &old, bytes)? };
        let Some(successor) = successor else { return self.overwrite(&old, bytes) };
        if folder.stat_entry(&self.name)?.st_ino != old.metadata.ino() {
            return Err(PathChangedError.into());
        }
        match successor.replace(&self.name) {
            // A place that must not be taken, such as a single file mounted into a container.
            Err(refused) if matches!(errno(&refused), Errno::EBUSY | Errno::EXDEV) => {
                self.overwrite(&old, bytes)
            }
            taken => taken,
        }
    }

    /// Opens a file for writing without changing it: the system's own answer to whether the user may.
    fn open_for_replace(&self) -> io::Result<OldFile> {
        match self.kind()? {
            FileKind::File(_) => {}
            FileKind::Missing => return Err(Errno::ENOENT.into()),
            FileKind::Directory | FileKind::Pipe | FileKind::Socket | FileKind::Device => {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
            }
        }
        let (file, state) = match self.open_file(OFlags::WRONLY) {
            Err(busy) if errno(&busy) == Errno::ETXTBSY => {
                (self.open_file(OFlags::RDONLY).map_err(|_| busy)?, Writability::Running)
            }
            opened => (opened?, Writability::Writable),
        };
        let facts = file.metadata()?;
        // Root may write anything; that a file is read-only for everybody is meant for root too.
        if facts.mode() & 0o222 == 0 {
            return Err(Errno::EACCES.into());
        }
        Ok(OldFile { file, metadata: facts, writability: state })
    }

    /// A finished file that can take the place of the old one without anybody noticing more than new bytes. None if
    /// there cannot be one, so that the bytes must be changed in place.
    fn stage_replacement<'a>(&self, folder: &'a DirHandle, old: &OldFile, bytes: &[u8]) -> io::Result<Option<TempFile<'a>>> {
        let staged = match TempFile::write(folder, parent_dir(&self.real), bytes, ReadAccess::OwnerOnly) {
            Err(error) if matches!(errno(&error), Errno::EACCES | Errno::EPERM | Errno::EROFS) => {
                return match old.writability {
                    Writability::Writable => Ok(None),
                    Writability::Running => Err(error),
                };
            }
            staged => staged?,
        };
        let kept = copy_metadata(&old.file, &old.metadata, staged.file())?;
        Ok((kept || old.writability == Writability::Running).then_some(staged))
    }

    /// Writes new bytes into a file. What needs more room is written first: if there is none, nothing has changed.
    fn overwrite(&self, old: &OldFile, bytes: &[u8]) -> io::Result<FileStamp> {
        if old.writability == Writability::Running {
            return Err(Errno::ETXTBSY.into());
        }
        let file = &old.file;
        let size = file.metadata()?.len();
        let shared = bytes.len().min(usize::try_from(size).unwrap_or(usize::MAX));
        let before = self.read_old_bytes(old);
        let written = file
            .write_all_at(&bytes[shared..], shared as u64)
            .and_then(|()| file.write_all_at(&bytes[..shared], 0))
            .and_then(|()| file.set_len(bytes.len() as u64))
            .and_then(|()| file.sync_data());
        if let Err(error) = written {
            if let Some(before) = before {
                let _ = file.write_all_at(&before[..shared.min(before.len())], 0);
            }
            let _ = file.set_len(size);
            return Err(error);
        }
        Ok(FileStamp::from_metadata(&file.metadata()?))
    }

    /// The bytes of the old file, if they can be read and are not too many.
    fn read_old_bytes(&self, old: &OldFile) -> Option<Vec<u8>> {
        let (file, stamp) = self.open().ok()?;
        let is_old = file.metadata().is_ok_and(|facts| facts.ino() == old.metadata.ino());
        is_old.then(|| read_limited(file, stamp, MAX_BACKUP_SIZE).ok()).flatten()
    }
}

fn errno(error: &io::Error) -> Errno {
    Errno::from_raw(error.raw_os_error().unwrap_or(0))
}
