//! A name in an opened folder. The folder is opened without following links: commands that run meanwhile can swap folders
//! below the working directory, and this process is not confined.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, RenameFlags, ResolveFlags, linkat, mkdirat, openat, openat2,
    renameat, renameat_with, statat, unlinkat,
};
use rustix::io::Errno;

use super::journal::Cover;
use crate::resolve::CoverKind;

/// A name in a folder.
pub(crate) struct Place {
    pub(crate) folder: OwnedFd,
    pub(crate) name: OsString,
}

impl Place {
    /// Opens the folder of a path; `None` if it cannot be opened, or a link is on the way.
    pub(crate) fn open(path: &Path) -> Option<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = openat2(CWD, path.parent()?, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS).ok()?;
        Some(Self { folder, name: path.file_name()?.to_owned() })
    }

    pub(crate) fn exists(&self) -> bool {
        statat(&self.folder, &self.name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    /// Removes the entry with everything in it.
    pub(crate) fn remove(&self) -> io::Result<()> {
        match unlinkat(&self.folder, &self.name, AtFlags::empty()) {
            // Through the opened folder: the path to it may lead elsewhere by now.
            Err(Errno::ISDIR) => {
                let folder = format!("/proc/self/fd/{}", self.folder.as_raw_fd());
                std::fs::remove_dir_all(Path::new(&folder).join(&self.name))
            }
            removed => Ok(removed?),
        }
    }

    /// Makes an empty entry; `None` if that is not possible.
    pub(crate) fn create(&self, kind: CoverKind) -> Option<()> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        match kind {
            CoverKind::Folder => mkdirat(&self.folder, &self.name, Mode::from_raw_mode(0o755)).ok(),
            CoverKind::File => {
                openat(&self.folder, &self.name, flags, Mode::from_raw_mode(0o644)).ok().map(drop)
            }
        }
    }

    /// Returns the entry as the cover of a path.
    pub(crate) fn identify(&self, path: &Path) -> Option<Cover> {
        let stat = statat(&self.folder, &self.name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        Some(Cover { path: path.to_owned(), device: stat.st_dev, inode: stat.st_ino })
    }

    /// Gives the entry the last name of a path, which must not exist in the folder.
    pub(crate) fn rename(&self, path: &Path, kind: CoverKind) -> io::Result<()> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let (folder, own) = (&self.folder, &self.name);
        match (renameat_with(folder, own, folder, name, RenameFlags::NOREPLACE), kind) {
            // File systems over the network do not know the flag. A folder replaces nothing but an empty folder.
            (Err(Errno::INVAL | Errno::NOSYS), CoverKind::Folder) => renameat(folder, own, folder, name)?,
            (Err(Errno::INVAL | Errno::NOSYS), CoverKind::File) => {
                linkat(folder, own, folder, name, AtFlags::empty())?;
                unlinkat(folder, own, AtFlags::empty())?;
            }
            (renamed, _) => renamed?,
        }
        Ok(())
    }

    /// Removes an empty folder or an empty file; anything else stays.
    pub(crate) fn remove_empty(&self) {
        let Ok(stat) = statat(&self.folder, &self.name, AtFlags::SYMLINK_NOFOLLOW) else { return };
        // A failure leaves the entry in place; there is nothing else to do.
        let _ = match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => unlinkat(&self.folder, &self.name, AtFlags::REMOVEDIR),
            FileType::RegularFile if stat.st_size == 0 => {
                unlinkat(&self.folder, &self.name, AtFlags::empty())
            }
            _ => Ok(()),
        };
    }
}
