//! Disk: looking at files, reading and replacing them. Only this room and the session log open files for the engine.
//!
//! Nothing here waits for a file that never ends: only regular files are opened, and every read has a limit.
//!
//! The file tools work on a [`Spot`]: a name in a folder that is held open. `folder` opens folders without following a
//! link, so that nobody can lead a judged path elsewhere; `put` makes and replaces files, `stage` holds a finished file
//! beside the one whose place it takes, `restore` puts files back as they were, `ends` reads the two ends of long ones,
//! and `keep` carries over what belongs to a file beside its bytes. The functions in this file take paths by name,
//! links included: they are for what needs no judgement.

mod head_tail;
mod dir_handle;
mod copy_metadata;
mod kind;
mod atomic_write;
mod restore;
mod file_handle;
mod temp_file;
#[cfg(test)]
mod tests;

use std::fs::{self, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

use nix::fcntl::OFlag;
use nix::sys::stat::stat;
use tokio_util::task::AbortOnDropHandle;

pub use head_tail::{HeadTail, read_head_tail, open_regular, read_range};
pub(crate) use dir_handle::DirHandle;
pub use kind::{FileKind, FileStamp};
pub use atomic_write::create;
pub use restore::{create_with_mode, link_or_copy, file_mode, create_private_dir, remove_file, remove_empty_dirs};
pub use file_handle::{PathChangedError, FileHandle};
pub(crate) use temp_file::{ReadAccess, TempFile, new_temp_file_in};

/// Does disk work beside the async threads. Dropping the future drops work that has not begun; work that has is short
/// and ends by itself.
pub async fn run_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    AbortOnDropHandle::new(tokio::task::spawn_blocking(work)).await.map_err(io::Error::other)
}

/// Takes `.` and `..` out of a path, by name only.
pub fn normalize_path(path: &Path) -> PathBuf {
    let mut tidy = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                tidy.pop();
            }
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => tidy.push(part),
        }
    }
    tidy
}

/// Looks what stands at a path, without opening it. Symbolic links are followed.
pub fn file_kind(path: &Path) -> io::Result<FileKind> {
    match stat(path).map_err(io::Error::from) {
        Ok(found) => Ok(FileKind::from_stat(&found)),
        Err(error) if is_missing(&error) => Ok(FileKind::Missing),
        Err(error) => Err(error),
    }
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// A path with every symbolic link followed, if it leads somewhere.
pub fn real_path(path: &Path) -> Option<PathBuf> {
    fs::canonicalize(path).ok()
}

/// Where a symbolic link points, if the path is one. The target need not exist.
pub fn link_target(path: &Path) -> Option<PathBuf> {
    fs::read_link(path).ok()
}

/// The user who owns what a path leads to.
pub fn owner_uid(path: &Path) -> Option<u32> {
    fs::metadata(path).ok().map(|metadata| metadata.uid())
}

/// The names in a folder, at most `limit` of them, in no order. Empty if the folder cannot be read.
pub fn entry_names(folder: &Path, limit: usize) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.take(limit).map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// Opens a regular file for reading. Should it have become a pipe meanwhile, this neither waits nor reads.
pub fn open(path: &Path) -> io::Result<(impl Read + use<>, FileStamp)> {
    let flags = OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits()).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    Ok((file, FileStamp::from_metadata(&metadata)))
}

/// Reads a whole file of at most `limit` bytes; a larger one is [`io::ErrorKind::FileTooLarge`]. The stamp is older
/// than the bytes, so a change during the read is noticed later.
pub fn read(path: &Path, limit: u64) -> io::Result<(Vec<u8>, FileStamp)> {
    let (file, stamp) = open(path)?;
    Ok((read_limited(file, stamp, limit)?, stamp))
}

/// Reads an open file to its end.
fn read_limited(file: impl Read, stamp: FileStamp, limit: u64) -> io::Result<Vec<u8>> {
    if stamp.size > limit {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let mut bytes = Vec::with_capacity(usize::try_from(stamp.size).unwrap_or(0) + 1);
    file.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(bytes)
}

/// Removes a folder with all that is in it. One that is not there is removed already.
pub fn remove_dir(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The nearest thing above a path that is no folder, so that nothing can lie below it.
pub fn non_directory_ancestor(path: &Path) -> Option<&Path> {
    let above = path.ancestors().skip(1).find(|above| fs::metadata(above).is_ok())?;
    (!above.is_dir()).then_some(above)
}

fn parent_dir(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("/"))
}
