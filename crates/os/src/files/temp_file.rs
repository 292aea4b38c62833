//! Temporary files that are renamed to their final name, and removal of those that killed processes left.

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

use crate::files::dir_handle::DirHandle;
use crate::files::kind::{FileKind, FileStamp};
use crate::ids;

/// Prefix and suffix of temporary file names.
const TEMP_PREFIX: &str = ".whimbrel-";
const TEMP_SUFFIX: &str = ".part";
/// Random characters between them.
const RANDOM_LEN: usize = 12;
/// Older temporary files belong to a killed process.
const STALE_AGE: Duration = Duration::from_hours(1);
/// Limit on directory entries checked for stale files.
const MAX_SWEPT_ENTRIES: usize = 10_000;
/// Limit on remembered directories; then the set is cleared.
const MAX_SWEPT_DIRS: usize = 10_000;

/// Directories that this process has checked for stale files.
static SWEPT_DIRS: LazyLock<Mutex<HashSet<PathBuf>>> = LazyLock::new(Mutex::default);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadAccess {
    /// The default mode of a new file.
    Everyone,
    /// Mode 0600, until the mode of the old file is set.
    OwnerOnly,
}

/// A temporary file in the directory of its target. Removed on drop unless it was renamed.
#[derive(Debug)]
pub struct TempFile<'a> {
    dir: &'a DirHandle,
    name: OsString,
    file: File,
}

impl<'a> TempFile<'a> {
    /// Creates an empty file.
    pub fn create(dir: &'a DirHandle, name: OsString, reader: ReadAccess) -> io::Result<Self> {
        let mode = match reader {
            ReadAccess::Everyone => 0o666,
            ReadAccess::OwnerOnly => 0o600,
        };
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        let file = dir.open_file(&name, flags, Mode::from_raw_mode(mode))?;
        Ok(Self { dir, name, file })
    }

    /// Writes a temporary file. The first one in a directory also removes stale files there; `real` is the path of the
    /// directory.
    pub(super) fn write(
        dir: &'a DirHandle,
        real: &Path,
        bytes: &[u8],
        reader: ReadAccess,
    ) -> io::Result<Self> {
        let name = OsString::from(format!(
            "{TEMP_PREFIX}{}{TEMP_SUFFIX}",
            &ids::new_uuid().replace('-', "")[..RANDOM_LEN]
        ));
        let mut temp = Self::create(dir, name, reader)?;
        if mark_swept(real) {
            remove_stale(dir, &temp.file);
        }
        temp.file.write_all(bytes)?;
        if needs_sync(&temp.file) {
            temp.file.sync_data()?;
        }
        Ok(temp)
    }

    pub fn file(&self) -> &File {
        &self.file
    }

    /// Renames the file over an existing one.
    pub fn replace(&self, name: &OsStr) -> io::Result<FileStamp> {
        let stamp = FileStamp::from_metadata(&self.file.metadata()?);
        renameat(self.dir, &self.name, self.dir, name)?;
        Ok(stamp)
    }

    /// Renames the file; an existing target is an error.
    pub(super) fn persist_new(&self, name: &OsStr) -> io::Result<FileStamp> {
        let stamp = FileStamp::from_metadata(&self.file.metadata()?);
        match self.rename_no_replace(name) {
            // Filesystem without `RENAME_NOREPLACE`: a hard link fails on an existing target as well.
            Err(rustix::io::Errno::NOSYS | rustix::io::Errno::INVAL) => {
                linkat(self.dir, &self.name, self.dir, name, AtFlags::empty())?;
            }
            moved => moved?,
        }
        Ok(stamp)
    }

    #[cfg(target_os = "linux")]
    fn rename_no_replace(&self, name: &OsStr) -> rustix::io::Result<()> {
        use rustix::fs::{RenameFlags, renameat_with};
        renameat_with(self.dir, &self.name, self.dir, name, RenameFlags::NOREPLACE)
    }

    #[cfg(not(target_os = "linux"))]
    fn rename_no_replace(&self, _: &OsStr) -> rustix::io::Result<()> {
        Err(rustix::io::Errno::NOSYS)
    }
}

/// Creates a temporary file for writing in pieces, to be persisted by the caller. Removes stale files like
/// `TempFile::write`.
pub fn new_temp_file_in(dir: &Path) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    let temp = builder
        .prefix(TEMP_PREFIX)
        .suffix(TEMP_SUFFIX)
        .rand_bytes(RANDOM_LEN)
        .append(true)
        .tempfile_in(dir)?;
    if mark_swept(dir)
        && let Ok(dir) = DirHandle::open(dir)
    {
        remove_stale(&dir, temp.as_file());
    }
    Ok(temp)
}

/// Removes stale temporary files of the same user.
fn remove_stale(dir: &DirHandle, ours: &File) {
    let Ok(ours) = ours.metadata() else { return };
    let Some(limit) = ours.modified().ok().and_then(|now| now.checked_sub(STALE_AGE)) else { return };
    let is_stale = |found: &FileStat| {
        (found.st_uid, found.st_nlink) == (ours.uid(), 1)
            && matches!(FileKind::from_stat(found), FileKind::File(stamp) if stamp.modified < limit)
    };
    for entry in dir.entries().into_iter().flatten().take(MAX_SWEPT_ENTRIES).flatten() {
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if is_temp_name(name) && dir.stat_entry(name).is_ok_and(|found| is_stale(&found)) {
            let _ = unlinkat(dir, name, AtFlags::empty());
        }
    }
}

impl Drop for TempFile<'_> {
    /// After a rename the temporary name no longer exists.
    fn drop(&mut self) {
        let _ = unlinkat(self.dir, &self.name, AtFlags::empty());
    }
}

/// True on the first call for a directory, because listing a large one takes longer than writing a file.
fn mark_swept(dir: &Path) -> bool {
    let mut swept = SWEPT_DIRS.lock().unwrap_or_else(PoisonError::into_inner);
    if swept.contains(dir) {
        return false;
    }
    if swept.len() >= MAX_SWEPT_DIRS {
        swept.clear();
    }
    swept.insert(dir.to_path_buf())
}

fn is_temp_name(name: &OsStr) -> bool {
    name.to_str().and_then(|name| name.strip_prefix(TEMP_PREFIX)?.strip_suffix(TEMP_SUFFIX)).is_some_and(
        |random| random.len() == RANDOM_LEN && random.bytes().all(|byte| byte.is_ascii_alphanumeric()),
    )
}

/// True if a crash after a rename could lose both old and new content. The listed filesystems flush the data of a file
/// that is renamed over another one. They do not for new names, but there is no old content to lose then.
#[cfg(target_os = "linux")]
fn needs_sync(file: &File) -> bool {
    use nix::sys::statfs::{
        BTRFS_SUPER_MAGIC, EXT4_SUPER_MAGIC, OVERLAYFS_SUPER_MAGIC, TMPFS_MAGIC, fstatfs,
    };
    let flushing = [BTRFS_SUPER_MAGIC, EXT4_SUPER_MAGIC, OVERLAYFS_SUPER_MAGIC, TMPFS_MAGIC];
    !fstatfs(file).is_ok_and(|system| flushing.contains(&system.filesystem_type()))
}

#[cfg(not(target_os = "linux"))]
fn needs_sync(_: &File) -> bool {
    true
}
