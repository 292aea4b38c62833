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

use super::folder::Folder;
use super::keep::keep;
use super::spot::{Moved, Spot, told};
use super::stage::{Reader, Staged};
use super::{Kind, Stamp, folder_of, whole};

/// The largest file whose old bytes are held in memory while it is written in place.
const HELD: u64 = 64 * 1024 * 1024;

/// Puts a new file where a path leads now: [`Spot::create`] for whoever needs no judgement.
pub fn create(path: &Path, bytes: &[u8]) -> io::Result<Stamp> {
    Spot::follow(path)?.create(bytes)
}

/// A file that is to be replaced.
struct Old {
    file: File,
    facts: Metadata,
    state: State,
}

/// What can be done with an old file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Other bytes can be written into it.
    Writable,
    /// It is a program that is running: it may be replaced but not overwritten.
    Running,
}

impl Spot {
    /// Puts a new file where nothing stands, and makes its folders; if something does stand there,
    /// [`io::ErrorKind::AlreadyExists`]. Nobody sees half of it; but like most programs this does not wait for the disk,
    /// so if the power fails soon after, a new file may be missing or empty.
    pub fn create(&self, bytes: &[u8]) -> io::Result<Stamp> {
        let home = folder_of(&self.real);
        let made;
        let folder = match &self.folder {
            Some(folder) => folder,
            None => {
                made = Folder::open_or_make(home).map_err(|error| told(home, error))?;
                &made
            }
        };
        Staged::write(folder, home, bytes, Reader::Everybody)?.take_free_place(&self.name)
    }

    /// Puts new bytes in the place of a regular file that the user may write. Mode, owner and extended attributes stay,
    /// and hard links stay links to one file. The change is all or nothing, except that a file which must be written in
    /// place can be left half written by a power cut or a kill at that instant.
    pub fn replace(&self, bytes: &[u8]) -> io::Result<Stamp> {
        let Some(folder) = &self.folder else { return Err(Errno::ENOENT.into()) };
        let old = self.open_old()?;
        let successor = if old.facts.nlink() > 1 { None } else { self.successor(folder, &old, bytes)? };
        let Some(successor) = successor else { return self.overwrite(&old, bytes) };
        if folder.look(&self.name)?.st_ino != old.facts.ino() {
            return Err(Moved.into());
        }
        match successor.take_place_of(&self.name) {
            // A place that must not be taken, such as a single file mounted into a container.
            Err(refused) if matches!(errno(&refused), Errno::EBUSY | Errno::EXDEV) => {
                self.overwrite(&old, bytes)
            }
            taken => taken,
        }
    }

    /// Opens a file for writing without changing it: the system's own answer to whether the user may.
    fn open_old(&self) -> io::Result<Old> {
        match self.kind()? {
            Kind::File(_) => {}
            Kind::Missing => return Err(Errno::ENOENT.into()),
            Kind::Folder | Kind::Pipe | Kind::Socket | Kind::Device => {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
            }
        }
        let (file, state) = match self.file(OFlags::WRONLY) {
            Err(busy) if errno(&busy) == Errno::ETXTBSY => {
                (self.file(OFlags::RDONLY).map_err(|_| busy)?, State::Running)
            }
            opened => (opened?, State::Writable),
        };
        let facts = file.metadata()?;
        // Root may write anything; that a file is read-only for everybody is meant for root too.
        if facts.mode() & 0o222 == 0 {
            return Err(Errno::EACCES.into());
        }
        Ok(Old { file, facts, state })
    }

    /// A finished file that can take the place of the old one without anybody noticing more than new bytes. None if
    /// there cannot be one, so that the bytes must be changed in place.
    fn successor<'a>(&self, folder: &'a Folder, old: &Old, bytes: &[u8]) -> io::Result<Option<Staged<'a>>> {
        let staged = match Staged::write(folder, folder_of(&self.real), bytes, Reader::Owner) {
            Err(error) if matches!(errno(&error), Errno::EACCES | Errno::EPERM | Errno::EROFS) => {
                return match old.state {
                    State::Writable => Ok(None),
                    State::Running => Err(error),
                };
            }
            staged => staged?,
        };
        let kept = keep(&old.file, &old.facts, staged.file())?;
        Ok((kept || old.state == State::Running).then_some(staged))
    }

    /// Writes new bytes into a file. What needs more room is written first: if there is none, nothing has changed.
    fn overwrite(&self, old: &Old, bytes: &[u8]) -> io::Result<Stamp> {
        if old.state == State::Running {
            return Err(Errno::ETXTBSY.into());
        }
        let file = &old.file;
        let size = file.metadata()?.len();
        let shared = bytes.len().min(usize::try_from(size).unwrap_or(usize::MAX));
        let before = self.bytes_of(old);
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
        Ok(Stamp::of(&file.metadata()?))
    }

    /// The bytes of the old file, if they can be read and are not too many.
    fn bytes_of(&self, old: &Old) -> Option<Vec<u8>> {
        let (file, stamp) = self.open().ok()?;
        let is_old = file.metadata().is_ok_and(|facts| facts.ino() == old.facts.ino());
        is_old.then(|| whole(file, stamp, HELD).ok()).flatten()
    }
}

fn errno(error: &io::Error) -> Errno {
    Errno::from_raw(error.raw_os_error().unwrap_or(0))
}
