//! Calls that make and place mounts. Every path is opened without following links, and a mount is placed on the opened
//! folder, not on its name: swapping a folder meanwhile changes nothing.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, fsconfig_create,
    fsconfig_set_string, fsmount, fsopen, move_mount, open_tree,
};

use crate::plan::{Placeholder, PlaceholderKind};
use crate::sys::{MountChange, change_mounts};

/// Largest number of attempts to open a path while the tree changes.
const MAX_ATTEMPTS: usize = 64;

pub(crate) const READ_ONLY: u64 = libc::MOUNT_ATTR_RDONLY;
pub(crate) const NO_SETUID: u64 = libc::MOUNT_ATTR_NOSUID;
pub(crate) const NO_DEVICES: u64 = libc::MOUNT_ATTR_NODEV;

/// Opens an absolute path that has no links.
pub(crate) fn open_path(path: &Path) -> io::Result<OwnedFd> {
    open_retrying(CWD, path, OFlags::empty(), ResolveFlags::NO_SYMLINKS)
}

/// Opens a folder below another one.
pub(crate) fn open_folder_below(folder: impl AsFd, path: &Path) -> io::Result<OwnedFd> {
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH;
    open_retrying(folder.as_fd(), path, OFlags::DIRECTORY, resolve)
}

/// The kernel asks for another attempt if folders were renamed meanwhile.
fn open_retrying(
    folder: BorrowedFd<'_>,
    path: &Path,
    flags: OFlags,
    resolve: ResolveFlags,
) -> io::Result<OwnedFd> {
    let flags = flags | OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    for _ in 1..MAX_ATTEMPTS {
        match openat2(folder, path, flags, Mode::empty(), resolve) {
            Err(Errno::AGAIN | Errno::INTR) => {}
            opened => return Ok(opened?),
        }
    }
    Ok(openat2(folder, path, flags, Mode::empty(), resolve)?)
}

/// Returns a copy of the mounts at and below an opened path, attached to nothing.
pub(crate) fn copy_tree(path: impl AsFd) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH
        | OpenTreeFlags::AT_RECURSIVE;
    Ok(open_tree(path, c"", flags)?)
}

/// Sets attributes of a mount and of all below it, and cuts the propagation of mounts.
pub(crate) fn restrict(mount: impl AsFd, attributes: u64) -> io::Result<()> {
    change_mounts(mount.as_fd(), MountChange { set: attributes, clear: 0, propagation: libc::MS_PRIVATE })
}

/// Places a mount on an opened path.
pub(crate) fn attach(mount: impl AsFd, target: impl AsFd) -> io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    Ok(move_mount(mount, c"", target, c"", flags)?)
}

/// Makes a file system of the kernel, attached to nothing.
pub(crate) fn make_file_system(
    name: &str,
    options: &[(&str, &str)],
    attributes: MountAttrFlags,
) -> io::Result<OwnedFd> {
    let context = fsopen(name, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (key, value) in options {
        fsconfig_set_string(context.as_fd(), *key, *value)?;
    }
    fsconfig_create(context.as_fd())?;
    Ok(fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
}

/// Makes a file system in memory.
pub(crate) fn make_memory_folder(mode: &str) -> io::Result<OwnedFd> {
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    make_file_system("tmpfs", &[("mode", mode)], attributes)
}

/// Makes the empty entries on which other mounts are placed. Folders on the way get `folder_mode`.
pub(crate) fn make_placeholders(
    folder: impl AsFd,
    placeholders: &[Placeholder],
    folder_mode: Mode,
) -> io::Result<()> {
    for Placeholder { path, kind } in placeholders {
        let mut names = path.components().filter_map(|component| match component {
            Component::Normal(name) => Some(name),
            _ => None,
        });
        let Some(last) = names.next_back() else { continue };
        let mut current = rustix::io::fcntl_dupfd_cloexec(folder.as_fd(), 3)?;
        for name in names {
            make_folder(&current, Path::new(name), folder_mode)?;
            current = open_folder_below(&current, Path::new(name))?;
        }
        match kind {
            PlaceholderKind::Folder => make_folder(&current, Path::new(last), folder_mode)?,
            PlaceholderKind::File => make_file(&current, Path::new(last), Mode::empty())?,
        }
    }
    Ok(())
}

pub(crate) fn make_folder(folder: impl AsFd, name: &Path, mode: Mode) -> io::Result<()> {
    match rustix::fs::mkdirat(folder, name, mode) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

pub(crate) fn make_file(folder: impl AsFd, name: &Path, mode: Mode) -> io::Result<()> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    rustix::fs::openat(folder, name, flags, mode)?;
    Ok(())
}
