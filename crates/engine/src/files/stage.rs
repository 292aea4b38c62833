//! A finished file beside the one whose place it takes, and the traces of those that never did.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

use tempfile::NamedTempFile;

use super::folder_of;

/// How the name of a staged file begins and ends.
const BEGIN: &str = ".whimbrel-";
const END: &str = ".part";
/// How many random letters stand between them.
const RANDOM: usize = 12;
/// A staged file that was not changed for so long belongs to nobody any more.
const FORGOTTEN: Duration = Duration::from_hours(1);
/// How many names of a folder are looked at in search of forgotten files.
const LOOKED_AT: usize = 10_000;
/// How many folders are remembered as cleared; then it begins anew.
const REMEMBERED: usize = 10_000;

/// The folders that this process has cleared of forgotten files.
static CLEARED: LazyLock<Mutex<HashSet<PathBuf>>> = LazyLock::new(Mutex::default);

/// Who may read a staged file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reader {
    /// Whoever may read a new file.
    Everybody,
    /// Only the owner, until the mode of the old file is set.
    Owner,
}

/// A finished file beside the target. It goes away unless it is put in the target's place. With the first one in a
/// folder, those that a killed process left there are cleared away.
pub(super) fn stage(target: &Path, bytes: &[u8], reader: Reader) -> io::Result<NamedTempFile> {
    let mode = match reader {
        Reader::Everybody => 0o666,
        Reader::Owner => 0o600,
    };
    let folder = folder_of(target);
    let open = |path: &Path| OpenOptions::new().read(true).write(true).create_new(true).mode(mode).open(path);
    let mut staged =
        tempfile::Builder::new().prefix(BEGIN).suffix(END).rand_bytes(RANDOM).make_in(folder, open)?;
    if is_first_in(folder) {
        sweep(folder, &staged.as_file().metadata()?);
    }
    staged.as_file_mut().write_all(bytes)?;
    if may_lose_bytes(staged.as_file()) {
        staged.as_file().sync_data()?;
    }
    Ok(staged)
}

/// Whether this process has not cleared the folder yet. To list a large folder takes longer than to write a file.
fn is_first_in(folder: &Path) -> bool {
    let mut cleared = CLEARED.lock().unwrap_or_else(PoisonError::into_inner);
    if cleared.contains(folder) {
        return false;
    }
    if cleared.len() >= REMEMBERED {
        cleared.clear();
    }
    cleared.insert(folder.to_path_buf())
}

/// Removes what a killed process left behind: staged files of the same user that are much older than ours.
fn sweep(folder: &Path, ours: &Metadata) {
    let Some(limit) = ours.modified().ok().and_then(|now| now.checked_sub(FORGOTTEN)) else { return };
    let forgotten = |metadata: &Metadata| {
        metadata.is_file()
            && (metadata.uid(), metadata.nlink()) == (ours.uid(), 1)
            && metadata.modified().is_ok_and(|modified| modified < limit)
    };
    for entry in fs::read_dir(folder).into_iter().flatten().take(LOOKED_AT).flatten() {
        if is_staged(&entry.file_name()) && entry.metadata().is_ok_and(|metadata| forgotten(&metadata)) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Whether only [`stage`] gives such names.
fn is_staged(name: &OsStr) -> bool {
    name.to_str().and_then(|name| name.strip_prefix(BEGIN)?.strip_suffix(END)).is_some_and(|random| {
        random.len() == RANDOM && random.bytes().all(|byte| byte.is_ascii_alphanumeric())
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
