//! Handle of a file that need not exist: its open directory and its name.
//!
//! All operations apply to that directory. A symlink in a resolved path was created after the permission check: it is
//! never followed, and reported as [`PathChangedError`].

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::path::{Component, Path, PathBuf};

use nix::errno::Errno;
use rustix::fs::{Mode, OFlags};

use crate::files::dir_handle::DirHandle;
use crate::files::kind::is_symlink;
use crate::files::{
    FileKind, FileStamp, MAX_LINKS, is_missing, link_target, not_a_regular_file, parent_dir, read_limited,
};

/// A file name in an open directory.
#[derive(Debug)]
pub struct FileHandle {
    pub(super) real: PathBuf,
    /// `None` if the directory does not exist yet.
    pub(super) dir: Option<DirHandle>,
    pub(super) name: OsString,
}

/// The file or a directory above it was replaced after the permission check.
#[derive(Debug, thiserror::Error)]
#[error("it was replaced after the permission check")]
pub struct PathChangedError;

impl PathChangedError {
    /// Checks whether an I/O error wraps this error.
    pub fn is_source_of(error: &io::Error) -> bool {
        matches!(error.get_ref(), Some(inner) if inner.is::<Self>())
    }
}

impl From<PathChangedError> for io::Error {
    fn from(error: PathChangedError) -> Self {
        Self::other(error)
    }
}

impl FileHandle {
    /// Opens the directory of a resolved path. A missing directory is not an error here.
    pub fn for_real_path(real: &Path) -> io::Result<Self> {
        let dir = match DirHandle::open(parent_dir(real)) {
            Ok(dir) => Some(dir),
            Err(error) if is_missing(&error) => None,
            Err(error) => return Err(map_link_error(real, error)),
        };
        // `/` has no file name; `.` stands for it.
        let name = real.file_name().unwrap_or(OsStr::new("."));
        Ok(Self { dir, name: name.to_owned(), real: real.to_path_buf() })
    }

    /// Resolves a path and opens its directory; for paths that need no permission check.
    pub fn for_path(path: &Path) -> io::Result<Self> {
        Self::for_real_path(&resolve_physical(path))
    }

    /// The kind of the file, without opening it.
    pub fn kind(&self) -> io::Result<FileKind> {
        let Some(dir) = &self.dir else { return Ok(FileKind::Missing) };
        match dir.stat_entry(&self.name) {
            Ok(found) if is_symlink(&found) => Err(map_link_error(&self.real, Errno::ELOOP.into())),
            Ok(found) => Ok(FileKind::from_stat(&found)),
            Err(error) if is_missing(&error) => Ok(FileKind::Missing),
            Err(error) => Err(error),
        }
    }

    /// Opens a regular file for reading.
    pub fn open(&self) -> io::Result<(File, FileStamp)> {
        let file = self.open_file(OFlags::RDONLY)?;
        let stamp = FileStamp::from_metadata(&file.metadata()?);
        Ok((file, stamp))
    }

    /// Reads a whole file of at most `limit` bytes; a larger one is [`io::ErrorKind::FileTooLarge`]. The stamp is taken
    /// before the bytes, so that a change during the read is detected later.
    pub fn read(&self, limit: u64) -> io::Result<(Vec<u8>, FileStamp)> {
        let (file, stamp) = self.open()?;
        Ok((read_limited(file, stamp, limit)?, stamp))
    }

    /// Names in the directory, at most `limit`, unordered.
    pub fn sibling_names(&self, limit: usize) -> Vec<String> {
        let listed = self.dir.as_ref().and_then(DirHandle::entries).into_iter().flatten().flatten();
        let names = listed.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.filter(|name| name != "." && name != "..").take(limit).collect()
    }

    /// Opens a regular file with these flags.
    pub(super) fn open_file(&self, flags: OFlags) -> io::Result<File> {
        let Some(dir) = &self.dir else { return Err(Errno::ENOENT.into()) };
        let file = dir
            .open_file(&self.name, flags, Mode::empty())
            .map_err(|error| map_link_error(&self.real, error))?;
        if !file.metadata()?.is_file() {
            return Err(not_a_regular_file());
        }
        Ok(file)
    }
}

/// Turns the error about a symlink in a resolved path into [`PathChangedError`], unless the path is a symlink cycle.
pub(super) fn map_link_error(real: &Path, error: io::Error) -> io::Error {
    let is_cycle = |error: &io::Error| error.raw_os_error() == Some(Errno::ELOOP as i32);
    if is_cycle(&error) && !fs::metadata(real).is_err_and(|error| is_cycle(&error)) {
        return PathChangedError.into();
    }
    error
}

/// Resolves every link in an absolute path like the kernel: `..` is the parent of the resolved directory. Dangling links
/// are followed too.
fn resolve_physical(path: &Path) -> PathBuf {
    let mut resolved = PathBuf::from("/");
    let mut remaining = name_components(path);
    let mut followed = 0;
    while let Some(name) = remaining.pop_front() {
        if name == ".." {
            resolved.pop();
            continue;
        }
        let next = resolved.join(name);
        match link_target(&next).filter(|_| followed < MAX_LINKS) {
            None => resolved = next,
            Some(target) => {
                followed += 1;
                if target.is_absolute() {
                    resolved = PathBuf::from("/");
                }
                let mut rest = name_components(&target);
                rest.append(&mut remaining);
                remaining = rest;
            }
        }
    }
    resolved
}

/// The names and `..` of a path.
fn name_components(path: &Path) -> VecDeque<OsString> {
    let is_name = |part: &Component<'_>| matches!(part, Component::Normal(_) | Component::ParentDir);
    path.components().filter(is_name).map(|part| part.as_os_str().to_owned()).collect()
}

#[cfg(test)]
mod tests;
