//! A finished file beside the one whose place it takes, and the traces of those that never did.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

use nix::sys::stat::FileStat;
use rustix::fs::{AtFlags, Mode, OFlags, linkat, renameat, unlinkat};
use tempfile::NamedTempFile;

use super::dir_handle::DirHandle;
use super::kind::{FileKind, FileStamp};
use crate::ids;

/// How the name of a staged file begins and ends.
const TEMP_PREFIX: &str = ".whimbrel-";
const TEMP_SUFFIX: &str = ".part";
/// How many random letters stand between them.
const RANDOM_LEN: usize = 12;
/// A staged file that was not changed for so long belongs to nobody any more.
const STALE_AGE: Duration = Duration::from_hours(1);
/// How many names of a folder are looked at in search of forgotten files.
const MAX_SWEPT_ENTRIES: usize = 10_000;
/// How many folders are remembered as cleared; then it begins anew.
const MAX_SWEPT_DIRS: usize = 10_000;

/// The folders that this process has cleared of forgotten files.
static SWEPT_DIRS: LazyLock<Mutex<HashSet<PathBuf>>> = LazyLock::new(Mutex::default);

/// Who may read a staged file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadAccess {
    /// Whoever may read a new file.
    Everyone,
    /// Only the owner, until the mode of the old file is set.
    OwnerOnly,
}

/// A finished file in the folder of the one whose place it takes. It goes away unless it is put there.
#[derive(Debug)]
pub(crate) struct TempFile<'a> {
    dir: &'a DirHandle,
    name: OsString,
    file: File,
}

impl<'a> TempFile<'a> {
    /// Makes an empty file of this name.
    pub(crate) fn create(folder: &'a DirHandle, name: OsString, reader: ReadAccess) -> io::Result<Self> {
        let mode = match reader {
            ReadAccess::Everyone => 0o666,
            ReadAccess::OwnerOnly => 0o600,
        };
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        let file = folder.open_file(&name, flags, Mode::from_raw_mode(mode))?;
        Ok(Self { dir: folder, name, file })
    }

    /// Writes the file. With the first one in a folder, those that a killed process left there are cleared away; `real`
    /// is where the folder lies.
    pub(super) fn write(folder: &'a DirHandle, real: &Path, bytes: &[u8], reader: ReadAccess) -> io::Result<Self> {
        let name = OsString::from(format!("{TEMP_PREFIX}{}{TEMP_SUFFIX}", &ids::new_uuid().replace('-', "")[..RANDOM_LEN]));
        let mut staged = Self::create(folder, name, reader)?;
        if mark_swept(real) {
            remove_stale(folder, &staged.file);
        }
        staged.file.write_all(bytes)?;
        if may_lose_bytes(&staged.file) {
            staged.file.sync_data()?;
        }
        Ok(staged)
    }

    /// The file.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Puts the file in the place of another.
    pub(crate) fn replace(&self, name: &OsStr) -> io::Result<FileStamp> {
        let stamp = FileStamp::from_metadata(&self.file.metadata()?);
        renameat(self.dir, &self.name, self.dir, name)?;
        Ok(stamp)
    }

    /// Puts the file where nothing stands.
    pub(super) fn persist_new(&self, name: &OsStr) -> io::Result<FileStamp> {
        let stamp = FileStamp::from_metadata(&self.file.metadata()?);
        match self.move_to_free_place(name) {
            // Not every file system can; with two names for an instant, all that have links can.
            Err(rustix::io::Errno::NOSYS | rustix::io::Errno::INVAL) => {
                linkat(self.dir, &self.name, self.dir, name, AtFlags::empty())?;
            }
            moved => moved?,
        }
        Ok(stamp)
    }

    #[cfg(target_os = "linux")]
    fn move_to_free_place(&self, name: &OsStr) -> rustix::io::Result<()> {
        use rustix::fs::{RenameFlags, renameat_with};
        renameat_with(self.dir, &self.name, self.dir, name, RenameFlags::NOREPLACE)
    }

    #[cfg(not(target_os = "linux"))]
    fn move_to_free_place(&self, _: &OsStr) -> rustix::io::Result<()> {
        Err(rustix::io::Errno::NOSYS)
    }
}

/// Begins a file in a folder that gets its name when it is finished, for whoever appends to it piece by piece. What a killed
/// process left there is cleared away as for any other.
pub(crate) fn new_temp_file_in(folder: &Path) -> io::Result<NamedTempFile> {
    let mut unnamed = tempfile::Builder::new();
    let fresh = unnamed.prefix(TEMP_PREFIX).suffix(TEMP_SUFFIX).rand_bytes(RANDOM_LEN).append(true).tempfile_in(folder)?;
    if mark_swept(folder)
        && let Ok(folder) = DirHandle::open(folder)
    {
        remove_stale(&folder, fresh.as_file());
    }
    Ok(fresh)
}

/// Removes what a killed process left behind: staged files of the same user that are much older than ours.
fn remove_stale(folder: &DirHandle, ours: &File) {
    let Ok(ours) = ours.metadata() else { return };
    let Some(limit) = ours.modified().ok().and_then(|now| now.checked_sub(STALE_AGE)) else { return };
    let forgotten = |found: &FileStat| {
        (found.st_uid, found.st_nlink) == (ours.uid(), 1)
            && matches!(FileKind::from_stat(found), FileKind::File(stamp) if stamp.modified < limit)
    };
    for entry in folder.entries().into_iter().flatten().take(MAX_SWEPT_ENTRIES).flatten() {
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if is_temp_name(name) && folder.stat_entry(name).is_ok_and(|found| forgotten(&found)) {
            let _ = unlinkat(folder, name, AtFlags::empty());
        }
    }
}

impl Drop for TempFile<'_> {
    /// Once the file has taken its place, nothing has the name of before.
    fn drop(&mut self) {
        let _ = unlinkat(self.dir, &self.name, AtFlags::empty());
    }
}

/// Whether this process has not cleared the folder yet. To list a large folder takes longer than to write a file.
fn mark_swept(folder: &Path) -> bool {
    let mut cleared = SWEPT_DIRS.lock().unwrap_or_else(PoisonError::into_inner);
    if cleared.contains(folder) {
        return false;
    }
    if cleared.len() >= MAX_SWEPT_DIRS {
        cleared.clear();
    }
    cleared.insert(folder.to_path_buf())
}

/// Whether only staged files have such names.
fn is_temp_name(name: &OsStr) -> bool {
    name.to_str().and_then(|name| name.strip_prefix(TEMP_PREFIX)?.strip_suffix(TEMP_SUFFIX)).is_some_and(|random| {
        random.len() == RANDOM_LEN && random.bytes().all(|byte| byte.is_ascii_alphanumeric())
    })
}

/// Whether the file system may lose the old bytes and the new ones when the machine or the network fails. The usual
/// local ones write the bytes of a file first when it takes the place of another. When it takes nobody's place they do
/// not, but then there is nothing old to lose.
#[cfg(target_os = "linux")]
fn may_lose_bytes(file: &File) -> bool {
    use nix::sys::statfs::{
        BTRFS_SUPER_MAGIC, EXT4_SUPER_MAGIC, OVERLAYFS_SUPER_MAGIC, TMPFS_MAGIC, fstatfs,
    };
    let safe = [BTRFS_SUPER_MAGIC, EXT4_SUPER_MAGIC, OVERLAYFS_SUPER_MAGIC, TMPFS_MAGIC];
    !fstatfs(file).is_ok_and(|system| safe.contains(&system.filesystem_type()))
}

#[cfg(not(target_os = "linux"))]
fn may_lose_bytes(_: &File) -> bool {
    true
}
