//! Creates and replaces files.
//!
//! A file is replaced by renaming a finished temporary file, so that readers never see a partial one. Where that would
//! change more than the content, the file is overwritten in place: files with several hard links, files of another
//! owner, and files in directories where the user cannot create any.

use std::fs::{File, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, fchown};
use std::path::Path;

use nix::errno::Errno;
use rustix::fs::{OFlags, XattrFlags, fgetxattr, flistxattr, fsetxattr};

use crate::files::dir_handle::DirHandle;
use crate::files::file_handle::{FileHandle, PathChangedError, map_link_error};
use crate::files::temp_file::{ReadAccess, TempFile};
use crate::files::{FileKind, FileStamp, not_a_regular_file, parent_dir, read_limited};

/// Larger files are overwritten without a backup of the old content.
const MAX_BACKUP_SIZE: u64 = 64 * 1024 * 1024;
/// Attribute that the system sets on every file by its own rules.
const SYSTEM_ATTRIBUTE: &[u8] = b"security.selinux";
/// Kernel limit on attribute values and on the list of names.
const MAX_ATTRIBUTE_SIZE: usize = 64 * 1024;

/// Creates a file. [`FileHandle::create`] for paths that need no permission check; follows symlinks.
pub fn create(path: &Path, bytes: &[u8]) -> io::Result<FileStamp> {
    FileHandle::for_path(path)?.create(bytes)
}

/// The file to replace.
struct OldFile {
    file: File,
    metadata: Metadata,
    writability: Writability,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Writability {
    /// The content can be overwritten.
    Writable,
    /// A running program: it can be replaced, but not overwritten.
    Running,
}

impl FileHandle {
    /// Creates a file and its parent directories; an existing file is [`io::ErrorKind::AlreadyExists`]. Readers never
    /// see a partial file. The data is not synced, so after a power failure the file may be missing or empty.
    pub fn create(&self, bytes: &[u8]) -> io::Result<FileStamp> {
        let parent = parent_dir(&self.real);
        let created;
        let dir = match &self.dir {
            Some(dir) => dir,
            None => {
                created = DirHandle::open_or_create(parent).map_err(|error| map_link_error(parent, error))?;
                &created
            }
        };
        TempFile::write(dir, parent, bytes, ReadAccess::Everyone)?.persist_new(&self.name)
    }

    /// Replaces the content of a regular file that the user may write. Mode, owner, extended attributes and hard links
    /// are kept. Atomic, except that a file that must be overwritten in place can be left partial by a kill or a power
    /// failure.
    pub fn replace(&self, bytes: &[u8]) -> io::Result<FileStamp> {
        let Some(dir) = &self.dir else { return Err(Errno::ENOENT.into()) };
        let old = self.open_for_replace()?;
        let successor =
            if old.metadata.nlink() > 1 { None } else { self.stage_replacement(dir, &old, bytes)? };
        let Some(successor) = successor else { return self.overwrite(&old, bytes) };
        if dir.stat_entry(&self.name)?.st_ino != old.metadata.ino() {
            return Err(PathChangedError.into());
        }
        match successor.replace(&self.name) {
            // The file cannot be renamed over, for example because it is a mount point in a container.
            Err(error) if matches!(errno(&error), Errno::EBUSY | Errno::EXDEV) => self.overwrite(&old, bytes),
            replaced => replaced,
        }
    }

    /// Opens the file for writing without changing it, so that the system checks the user's permission.
    fn open_for_replace(&self) -> io::Result<OldFile> {
        match self.kind()? {
            FileKind::File(_) => {}
            FileKind::Missing => return Err(Errno::ENOENT.into()),
            FileKind::Directory | FileKind::Pipe | FileKind::Socket | FileKind::Device => {
                return Err(not_a_regular_file());
            }
        }
        let (file, writability) = match self.open_file(OFlags::WRONLY) {
            Err(busy) if errno(&busy) == Errno::ETXTBSY => {
                (self.open_file(OFlags::RDONLY).map_err(|_| busy)?, Writability::Running)
            }
            opened => (opened?, Writability::Writable),
        };
        let metadata = file.metadata()?;
        // Root may write to any file; files that are read-only for everyone are protected from root as well.
        if metadata.mode() & 0o222 == 0 {
            return Err(Errno::EACCES.into());
        }
        Ok(OldFile { file, metadata, writability })
    }

    /// Writes a temporary file with the metadata of the old one. `None` if the metadata cannot be kept, so that the
    /// file must be overwritten in place.
    fn stage_replacement<'a>(
        &self,
        dir: &'a DirHandle,
        old: &OldFile,
        bytes: &[u8],
    ) -> io::Result<Option<TempFile<'a>>> {
        let staged = match TempFile::write(dir, parent_dir(&self.real), bytes, ReadAccess::OwnerOnly) {
            Err(error) if matches!(errno(&error), Errno::EACCES | Errno::EPERM | Errno::EROFS) => {
                return match old.writability {
                    Writability::Writable => Ok(None),
                    Writability::Running => Err(error),
                };
            }
            staged => staged?,
        };
        let is_complete = copy_metadata(&old.file, &old.metadata, staged.file())?;
        Ok((is_complete || old.writability == Writability::Running).then_some(staged))
    }

    /// Overwrites the file in place. Writes the part beyond the old length first: if the disk is full, nothing has
    /// changed.
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

    /// Reads the old content as a backup, if it can be read and is not too large.
    fn read_old_bytes(&self, old: &OldFile) -> Option<Vec<u8>> {
        let (file, stamp) = self.open().ok()?;
        let is_old = file.metadata().is_ok_and(|metadata| metadata.ino() == old.metadata.ino());
        is_old.then(|| read_limited(file, stamp, MAX_BACKUP_SIZE).ok()).flatten()
    }
}

/// Copies owner, mode and extended attributes (including ACLs) of a file to its replacement. False if the system does not permit all of it.
fn copy_metadata(old: &File, metadata: &Metadata, new: &File) -> io::Result<bool> {
    let now = new.metadata()?;
    let same_owner = (now.uid(), now.gid()) == (metadata.uid(), metadata.gid())
        || fchown(new, Some(metadata.uid()), Some(metadata.gid())).is_ok();
    let same_attributes = copy_attributes(old, new);
    // Without the same owner, setuid and setgid bits must not be copied.
    let mode = if same_owner { metadata.mode() & 0o7777 } else { metadata.mode() & 0o777 };
    new.set_permissions(Permissions::from_mode(mode))?;
    Ok(same_owner && same_attributes)
}

/// Copies the extended attributes; false if one could not be copied. A filesystem without attributes has none to copy.
fn copy_attributes(old: &File, new: &File) -> bool {
    let mut names = Vec::with_capacity(256);
    let names = match flistxattr(old, rustix::buffer::spare_capacity(&mut names)) {
        Ok(_) => names,
        Err(rustix::io::Errno::RANGE) => {
            let mut all = Vec::with_capacity(MAX_ATTRIBUTE_SIZE);
            match flistxattr(old, rustix::buffer::spare_capacity(&mut all)) {
                Ok(_) => all,
                Err(_) => return false,
            }
        }
        Err(_) => return true,
    };
    let mut names =
        names.split(|byte| *byte == 0).filter(|name| !name.is_empty() && *name != SYSTEM_ATTRIBUTE);
    names.all(|name| {
        let mut value = Vec::with_capacity(MAX_ATTRIBUTE_SIZE);
        fgetxattr(old, name, rustix::buffer::spare_capacity(&mut value)).is_ok()
            && fsetxattr(new, name, &value, XattrFlags::empty()).is_ok()
    })
}

fn errno(error: &io::Error) -> Errno {
    Errno::from_raw(error.raw_os_error().unwrap_or(0))
}
