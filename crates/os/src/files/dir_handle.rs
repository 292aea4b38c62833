//! Directories held open, reached without following any symlink.
//!
//! Permissions are checked for a resolved path. Opening that path by name afterwards could follow a symlink created in
//! between. Here a symlink on the way is an error, and operations apply to the opened directory, even if its name
//! points elsewhere by then.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path};

use nix::errno::Errno;
use nix::fcntl::AtFlags;
use nix::sys::stat::{FileStat, fstatat};
use rustix::fs::{CWD, Dir, Mode, OFlags, mkdirat, openat};

use crate::files::kind::is_symlink;

/// `O_PATH`: the directory need not be readable.
#[cfg(target_os = "linux")]
const DIR_FLAGS: OFlags =
    OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
#[cfg(not(target_os = "linux"))]
const DIR_FLAGS: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// An open directory.
#[derive(Debug)]
pub struct DirHandle(OwnedFd);

impl From<File> for DirHandle {
    /// Takes over a directory opened elsewhere.
    fn from(dir: File) -> Self {
        Self(dir.into())
    }
}

impl AsFd for DirHandle {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl DirHandle {
    /// Opens a directory by its resolved path. A symlink on the way is `ELOOP`.
    pub(super) fn open(real: &Path) -> io::Result<Self> {
        match open_in_kernel(real) {
            Err(error) if is_unsupported(&error) => open_componentwise(real),
            opened => opened,
        }
    }

    /// Opens a directory by its resolved path, and creates it and its parents if missing.
    pub(super) fn open_or_create(real: &Path) -> io::Result<Self> {
        let mut missing = Vec::new();
        let mut above = real;
        let mut dir = loop {
            match Self::open(above) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                opened => break opened?,
            }
            let (Some(dir), Some(name)) = (above.parent(), above.file_name()) else {
                return Err(io::ErrorKind::NotFound.into());
            };
            missing.push(name);
            above = dir;
        };
        for name in missing.into_iter().rev() {
            match mkdirat(&dir, name, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(rustix::io::Errno::EXIST) => dir = dir.open_subdir(name)?,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(dir)
    }

    /// Opens a file in the directory without blocking. A symlink is `ELOOP`.
    pub fn open_file(&self, name: &OsStr, flags: OFlags, mode: Mode) -> io::Result<File> {
        let always = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        Ok(File::from(openat(self, name, flags | always, mode)?))
    }

    /// Stats an entry without following symlinks.
    pub(super) fn stat_entry(&self, name: &OsStr) -> io::Result<FileStat> {
        Ok(fstatat(self, name, AtFlags::AT_SYMLINK_NOFOLLOW)?)
    }

    /// Entries of the directory; `None` if it cannot be read.
    pub(super) fn entries(&self) -> Option<Dir> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Dir::new(openat(self, ".", flags, Mode::empty()).ok()?).ok()
    }

    fn open_subdir(&self, name: &OsStr) -> io::Result<Self> {
        match openat(self, name, DIR_FLAGS, Mode::empty()) {
            Ok(dir) => Ok(Self(dir)),
            // Systems differ in the error for a symlink in place of a directory.
            Err(rustix::io::Errno::NOTDIR) if self.stat_entry(name).is_ok_and(|found| is_symlink(&found)) => {
                Err(Errno::ELOOP.into())
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Opens the whole path in one system call (`openat2`).
#[cfg(target_os = "linux")]
fn open_in_kernel(real: &Path) -> io::Result<DirHandle> {
    use rustix::fs::{ResolveFlags, openat2};
    let no_links = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    // With `O_NOFOLLOW | O_PATH` a symlink at the end would be opened itself.
    Ok(DirHandle(openat2(CWD, real, DIR_FLAGS.difference(OFlags::NOFOLLOW), Mode::empty(), no_links)?))
}

#[cfg(not(target_os = "linux"))]
fn open_in_kernel(_: &Path) -> io::Result<DirHandle> {
    Err(Errno::ENOSYS.into())
}

/// True if `openat2` is not available: an old kernel, or forbidden in a container.
fn is_unsupported(error: &io::Error) -> bool {
    matches!(error.raw_os_error().map(Errno::from_raw), Some(Errno::ENOSYS | Errno::EPERM))
}

/// Opens the path one component at a time.
pub(super) fn open_componentwise(real: &Path) -> io::Result<DirHandle> {
    let mut dir = DirHandle(openat(CWD, "/", DIR_FLAGS, Mode::empty())?);
    for part in real.components() {
        match part {
            Component::RootDir | Component::CurDir => {}
            Component::Normal(name) => dir = dir.open_subdir(name)?,
            // Resolved paths are absolute and contain no `..`.
            Component::ParentDir | Component::Prefix(_) => return Err(Errno::EINVAL.into()),
        }
    }
    Ok(dir)
}
