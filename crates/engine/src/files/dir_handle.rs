//! Folders that are held open, and how they are reached: without following a single link.
//!
//! A path is judged by where it really leads. Whoever then opens that real path by its name trusts that nobody has put a
//! link on the way meanwhile. Here a link on the way is an error, and what is done in a folder is done in the folder
//! that was opened, whatever its name leads to by then.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path};

use nix::errno::Errno;
use nix::fcntl::AtFlags;
use nix::sys::stat::{FileStat, fstatat};
use rustix::fs::{CWD, Dir, Mode, OFlags, mkdirat, openat};

use super::kind::is_symlink;

/// How a folder is held. Its names need not be readable for that.
#[cfg(target_os = "linux")]
const HELD: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
#[cfg(not(target_os = "linux"))]
const HELD: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// A folder that is held open.
#[derive(Debug)]
pub(crate) struct DirHandle(OwnedFd);

impl From<File> for DirHandle {
    /// A folder that was opened elsewhere.
    fn from(folder: File) -> Self {
        Self(folder.into())
    }
}

impl AsFd for DirHandle {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl DirHandle {
    /// Opens the folder at a real path. A link on the way is `ELOOP`.
    pub(super) fn open(real: &Path) -> io::Result<Self> {
        match at_once(real) {
            Err(error) if is_unsupported(&error) => open_componentwise(real),
            opened => opened,
        }
    }

    /// Opens the folder at a real path, and makes it and those above it if they are missing.
    pub(super) fn open_or_create(real: &Path) -> io::Result<Self> {
        let mut missing = Vec::new();
        let mut above = real;
        let mut folder = loop {
            match Self::open(above) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                opened => break opened?,
            }
            let (Some(folder), Some(name)) = (above.parent(), above.file_name()) else {
                return Err(io::ErrorKind::NotFound.into());
            };
            missing.push(name);
            above = folder;
        };
        for name in missing.into_iter().rev() {
            match mkdirat(&folder, name, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(rustix::io::Errno::EXIST) => folder = folder.open_subdir(name)?,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(folder)
    }

    /// Opens a file in the folder. A link is `ELOOP`. Nothing is waited for.
    pub(crate) fn open_file(&self, name: &OsStr, flags: OFlags, mode: Mode) -> io::Result<File> {
        let always = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        Ok(File::from(openat(self, name, flags | always, mode)?))
    }

    /// Looks at an entry without opening it or following it.
    pub(super) fn stat_entry(&self, name: &OsStr) -> io::Result<FileStat> {
        Ok(fstatat(self, name, AtFlags::AT_SYMLINK_NOFOLLOW)?)
    }

    /// The names in the folder. None if they cannot be read.
    pub(super) fn entries(&self) -> Option<Dir> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Dir::new(openat(self, ".", flags, Mode::empty()).ok()?).ok()
    }

    /// The folder with this name in the folder.
    fn open_subdir(&self, name: &OsStr) -> io::Result<Self> {
        match openat(self, name, HELD, Mode::empty()) {
            Ok(folder) => Ok(Self(folder)),
            // Systems differ in what they call a link where there should be a folder.
            Err(rustix::io::Errno::NOTDIR) if self.stat_entry(name).is_ok_and(|found| is_symlink(&found)) => {
                Err(Errno::ELOOP.into())
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Has the kernel walk the whole path.
#[cfg(target_os = "linux")]
fn at_once(real: &Path) -> io::Result<DirHandle> {
    use rustix::fs::{ResolveFlags, openat2};
    let no_links = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    // With NOFOLLOW, a link at the end would be taken for what is wanted.
    Ok(DirHandle(openat2(CWD, real, HELD.difference(OFlags::NOFOLLOW), Mode::empty(), no_links)?))
}

#[cfg(not(target_os = "linux"))]
fn at_once(_: &Path) -> io::Result<DirHandle> {
    Err(Errno::ENOSYS.into())
}

/// Whether it is the call itself that is not there: the kernel is too old for it, or a container forbids it.
fn is_unsupported(error: &io::Error) -> bool {
    matches!(error.raw_os_error().map(Errno::from_raw), Some(Errno::ENOSYS | Errno::EPERM))
}

/// Walks the path one folder at a time.
pub(super) fn open_componentwise(real: &Path) -> io::Result<DirHandle> {
    let mut folder = DirHandle(openat(CWD, "/", HELD, Mode::empty())?);
    for part in real.components() {
        match part {
            Component::RootDir | Component::CurDir => {}
            Component::Normal(name) => folder = folder.open_subdir(name)?,
            // A real path is absolute and has no way back.
            Component::ParentDir | Component::Prefix(_) => return Err(Errno::EINVAL.into()),
        }
    }
    Ok(folder)
}
