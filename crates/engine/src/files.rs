//! Disk: looking at files, reading and replacing them. Only this file and the session log open files for the engine.
//!
//! Nothing here waits for a file that never ends: only regular files are opened, and every read has a limit. A file
//! is changed by putting a finished one in its place, so that nobody ever sees half of it.

use std::fs::{self, Metadata, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Component, Path, PathBuf};
use std::time::SystemTime;

use nix::fcntl::OFlag;
use tempfile::NamedTempFile;
use tokio_util::task::AbortOnDropHandle;

/// What stands at a path. Symbolic links are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Nothing.
    Missing,
    /// A regular file.
    File(Stamp),
    /// A folder.
    Folder,
    /// A named pipe.
    Pipe,
    /// A socket.
    Socket,
    /// A device.
    Device,
}

/// By what a change of a file is noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// When it was changed last.
    pub modified: SystemTime,
    /// How many bytes it has.
    pub size: u64,
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        Self { modified: metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH), size: metadata.len() }
    }
}

/// Does disk work beside the async threads. Dropping the future drops work that has not begun; work that has is short
/// and ends by itself.
pub async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    AbortOnDropHandle::new(tokio::task::spawn_blocking(work)).await.map_err(io::Error::other)
}

/// Takes `.` and `..` out of a path, by name only.
pub fn tidy(path: &Path) -> PathBuf {
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

/// Looks what stands at a path, without opening it.
pub fn kind(path: &Path) -> io::Result<Kind> {
    match fs::metadata(path) {
        Ok(metadata) => Ok(kind_of(&metadata)),
        Err(error) if is_missing(&error) => Ok(Kind::Missing),
        Err(error) => Err(error),
    }
}

fn kind_of(metadata: &Metadata) -> Kind {
    let kind = metadata.file_type();
    if kind.is_file() {
        Kind::File(Stamp::of(metadata))
    } else if kind.is_dir() {
        Kind::Folder
    } else if kind.is_fifo() {
        Kind::Pipe
    } else if kind.is_socket() {
        Kind::Socket
    } else {
        Kind::Device
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

/// The names in a folder, at most `limit` of them, in no order. Empty if the folder cannot be read.
pub fn names(folder: &Path, limit: usize) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.take(limit).map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// Opens a regular file for reading. Should it have become a pipe meanwhile, this neither waits nor reads.
pub fn open(path: &Path) -> io::Result<(impl Read + use<>, Stamp)> {
    let flags = OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits()).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    Ok((file, Stamp::of(&metadata)))
}

/// Reads a whole file of at most `limit` bytes; a larger one is [`io::ErrorKind::FileTooLarge`]. The stamp is older
/// than the bytes, so a change during the read is noticed later.
pub fn read(path: &Path, limit: u64) -> io::Result<(Vec<u8>, Stamp)> {
    let (file, stamp) = open(path)?;
    if stamp.size > limit {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let mut bytes = Vec::with_capacity(usize::try_from(stamp.size).unwrap_or(0) + 1);
    file.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok((bytes, stamp))
}

/// Puts a new file at a path where nothing stands, and makes its folders; if something does stand there,
/// [`io::ErrorKind::AlreadyExists`].
pub fn create(path: &Path, bytes: &[u8]) -> io::Result<Stamp> {
    let target = follow(path)?;
    fs::create_dir_all(folder_of(&target)).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => io::ErrorKind::NotADirectory.into(),
        _ => error,
    })?;
    let staged = stage(&target, bytes)?;
    let stamp = Stamp::of(&staged.as_file().metadata()?);
    staged.persist_noclobber(&target).map_err(|error| error.error)?;
    Ok(stamp)
}

/// Puts new bytes in the place of a regular file: all of them or none. Keeps the mode and, where allowed, the owner;
/// a symbolic link stays a link. Other hard links to the file keep the old bytes.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<Stamp> {
    let target = follow(path)?;
    let old = fs::metadata(&target)?;
    if !old.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    let staged = stage(&target, bytes)?;
    let new = staged.as_file().metadata()?;
    if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
        // Only root may give a file away; whoever may not, owns the new file.
        let _ = fchown(staged.as_file(), Some(old.uid()), Some(old.gid()));
    }
    if new.mode() != old.mode() {
        staged.as_file().set_permissions(Permissions::from_mode(old.mode() & 0o7777))?;
    }
    staged.persist(&target).map_err(|error| error.error)?;
    Ok(Stamp::of(&new))
}

/// A finished file beside the target. It goes away unless it is put in the target's place.
fn stage(target: &Path, bytes: &[u8]) -> io::Result<NamedTempFile> {
    let mode = Permissions::from_mode(0o666);
    let mut staged =
        tempfile::Builder::new().prefix(".whimbrel-").permissions(mode).tempfile_in(folder_of(target))?;
    staged.write_all(bytes)?;
    Ok(staged)
}

/// Where a path leads if its last part is a symbolic link, even to something that does not exist yet.
fn follow(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_path_buf();
    for _ in 0..40 {
        match fs::read_link(&path) {
            Ok(to) => path = folder_of(&path).join(to),
            Err(_) => return Ok(path),
        }
    }
    Err(nix::errno::Errno::ELOOP.into())
}

fn folder_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("/"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use tempfile::TempDir;

    use super::*;

    fn folder() -> TempDir {
        TempDir::new().unwrap()
    }

    #[test]
    fn each_kind_of_thing_is_told_apart_without_opening_it() {
        let folder = folder();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("file"), "abc").unwrap();
        nix::unistd::mkfifo(&at("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let _socket = UnixListener::bind(at("socket")).unwrap();
        symlink("pipe", at("link")).unwrap();
        assert!(matches!(kind(&at("file")).unwrap(), Kind::File(stamp) if stamp.size == 3));
        assert_eq!(kind(folder.path()).unwrap(), Kind::Folder);
        assert_eq!(kind(&at("pipe")).unwrap(), Kind::Pipe);
        assert_eq!(kind(&at("link")).unwrap(), Kind::Pipe);
        assert_eq!(kind(&at("socket")).unwrap(), Kind::Socket);
        assert_eq!(kind(Path::new("/dev/zero")).unwrap(), Kind::Device);
        assert_eq!(kind(&at("none")).unwrap(), Kind::Missing);
        assert_eq!(kind(&at("file/below")).unwrap(), Kind::Missing);
    }

    #[test]
    fn a_pipe_is_refused_at_once_even_if_nobody_looked_first() {
        let folder = folder();
        let pipe = folder.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert_eq!(read(&pipe, 10).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        assert_eq!(replace(&pipe, b"x").unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn a_read_never_takes_more_than_its_limit() {
        let folder = folder();
        let path = folder.path().join("f");
        fs::write(&path, "12345").unwrap();
        assert_eq!(read(&path, 5).unwrap().0, b"12345");
        assert_eq!(read(&path, 4).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
    }

    #[test]
    fn replacing_keeps_the_mode_and_leaves_nothing_beside_the_file() {
        let folder = folder();
        let path = folder.path().join("f");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o751)).unwrap();
        let stamp = replace(&path, b"newer").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"newer");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o751);
        assert_eq!(kind(&path).unwrap(), Kind::File(stamp));
        assert_eq!(names(folder.path(), 9), ["f"]);
    }

    #[test]
    fn a_write_that_fails_leaves_the_old_file_and_no_other() {
        let folder = folder();
        let path = folder.path().join("f");
        fs::write(&path, "old").unwrap();
        let failed = stage(&path, b"new").and_then(|_staged| Err::<(), _>(io::Error::other("power cut")));
        assert!(failed.is_err());
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(names(folder.path(), 9), ["f"]);
        fs::create_dir(folder.path().join("d")).unwrap();
        assert!(replace(&folder.path().join("d"), b"new").is_err());
        assert!(create(&folder.path().join("d"), b"new").is_err());
        assert_eq!(names(folder.path(), 9).len(), 2);
    }

    #[test]
    fn creating_never_overwrites() {
        let folder = folder();
        let path = folder.path().join("f");
        create(&path, b"first").unwrap();
        assert_eq!(create(&path, b"second").unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&path).unwrap(), b"first");
        assert_eq!(names(folder.path(), 9), ["f"]);
    }

    #[test]
    fn a_link_stays_a_link_and_its_target_changes() {
        let folder = folder();
        fs::write(folder.path().join("real"), "old").unwrap();
        let link = folder.path().join("link");
        symlink("real", &link).unwrap();
        replace(&link, b"new").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(folder.path().join("real")).unwrap(), b"new");
        let dangling = folder.path().join("dangling");
        symlink("later", &dangling).unwrap();
        create(&dangling, b"made").unwrap();
        assert_eq!(fs::read(folder.path().join("later")).unwrap(), b"made");
        symlink("round", folder.path().join("round")).unwrap();
        assert!(create(&folder.path().join("round"), b"x").is_err());
    }

    #[test]
    fn dots_are_taken_out_of_paths_by_name() {
        assert_eq!(tidy(Path::new("/a/./b/../c")), Path::new("/a/c"));
        assert_eq!(tidy(Path::new("/../a")), Path::new("/a"));
    }
}
