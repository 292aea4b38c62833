//! File access of the engine: inspecting, reading and replacing files. Apart from this module only transcripts open
//! files.
//!
//! Nothing here blocks on special files: only regular files are opened, and every read has a size limit.
//!
//! The file tools use a [`FileHandle`]: a file name in a directory that is held open. `dir_handle` opens directories
//! without following symlinks, so that a checked path cannot be redirected afterwards (TOCTOU). `atomic_write` creates
//! and replaces files by way of `temp_file`, `replace_dir` replaces directories, `restore` is used by checkpoints,
//! `head_tail` reads both ends of long files, `special_paths` recognizes devices and the like. The functions of this
//! module take paths and follow symlinks; they are for paths that need no permission check.

mod atomic_write;
mod dir_handle;
mod file_handle;
mod head_tail;
mod kind;
mod replace_dir;
mod restore;
mod special_paths;
mod temp_file;
#[cfg(test)]
mod tests;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

use nix::fcntl::OFlag;
use nix::sys::stat::stat;
use tokio_util::task::AbortOnDropHandle;

pub use atomic_write::create;
pub use dir_handle::DirHandle;
pub use file_handle::{FileHandle, PathChangedError};
pub use head_tail::{HeadTail, read_head_tail, read_range};
pub use kind::{FileKind, FileStamp};
pub use replace_dir::replace_dir;
pub use restore::{
    create_private_dir, create_with_mode, file_mode, link_or_copy, remove_empty_dirs, remove_file,
};
pub use special_paths::{is_special_path, is_special_path_name, is_virtual_file_system};
pub use temp_file::{ReadAccess, TempFile, new_temp_file_in};

/// Maximum number of links to follow in a path, as in the kernel.
pub(crate) const MAX_LINKS: usize = 40;

/// Runs blocking disk work on a separate thread. Dropping the future cancels work that has not started; started work is
/// short and runs to its end.
pub async fn run_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    AbortOnDropHandle::new(tokio::task::spawn_blocking(work)).await.map_err(io::Error::other)
}

/// Resolves `.` and `..` lexically.
pub fn normalize_path(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                normal.pop();
            }
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => normal.push(part),
        }
    }
    normal
}

/// The kind of file at a path, without opening it. Follows symlinks.
pub fn file_kind(path: &Path) -> io::Result<FileKind> {
    match stat(path).map_err(io::Error::from) {
        Ok(found) => Ok(FileKind::from_stat(&found)),
        Err(error) if is_missing(&error) => Ok(FileKind::Missing),
        Err(error) => Err(error),
    }
}

fn not_a_regular_file() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// A path with all symlinks resolved; `None` if it does not exist.
pub fn real_path(path: &Path) -> Option<PathBuf> {
    fs::canonicalize(path).ok()
}

/// Target of a symlink, which need not exist; `None` if the path is not a symlink.
pub fn link_target(path: &Path) -> Option<PathBuf> {
    fs::read_link(path).ok()
}

/// Uid of the file's owner. Follows symlinks.
pub fn owner_uid(path: &Path) -> Option<u32> {
    fs::metadata(path).ok().map(|metadata| metadata.uid())
}

/// Names in a directory, at most `limit`, unordered. Empty if it cannot be read.
pub fn entry_names(dir: &Path, limit: usize) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.take(limit).map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// Opens a regular file for reading. Does not block if the file has become a pipe meanwhile; that is an error.
pub fn open(path: &Path) -> io::Result<(File, FileStamp)> {
    let flags = OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits()).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(not_a_regular_file());
    }
    Ok((file, FileStamp::from_metadata(&metadata)))
}

/// Reads a whole file of at most `limit` bytes; a larger one is [`io::ErrorKind::FileTooLarge`]. The stamp is taken
/// before the bytes, so that a change during the read is detected later.
pub fn read(path: &Path, limit: u64) -> io::Result<(Vec<u8>, FileStamp)> {
    let (file, stamp) = open(path)?;
    Ok((read_limited(file, stamp, limit)?, stamp))
}

/// Reads a file that the user named, of at most `limit` bytes. The error text says what is wrong with the file.
pub fn read_user_file(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let special = match file_kind(path) {
        Ok(FileKind::File(_) | FileKind::Missing) | Err(_) => None,
        Ok(FileKind::Directory) => Some("a directory"),
        Ok(FileKind::Device | FileKind::Pipe | FileKind::Socket) => Some("a device, pipe or socket"),
    };
    if let Some(kind) = special {
        let text = format!("it is {kind}; name a regular file");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    read(path, limit).map(|(bytes, _)| bytes).map_err(|error| match error.kind() {
        kind @ io::ErrorKind::FileTooLarge => {
            io::Error::new(kind, format!("it is larger than {} MB", limit >> 20))
        }
        _ => error,
    })
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

/// Removes a directory recursively. A missing one is not an error.
pub fn remove_dir(dir: &Path) -> io::Result<()> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The nearest existing ancestor of a path, if it is not a directory: nothing can be created below it.
pub fn non_directory_ancestor(path: &Path) -> Option<&Path> {
    let ancestor = path.ancestors().skip(1).find(|ancestor| fs::metadata(ancestor).is_ok())?;
    (!ancestor.is_dir()).then_some(ancestor)
}

fn parent_dir(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("/"))
}
