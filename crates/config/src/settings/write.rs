//! Changes a settings file on disk without losing data to crashes or concurrent writers.
//!
//! The directory is locked (`flock`) while a file in it is changed; the kernel releases the lock with the process. The
//! new text is written to a temporary file, synced and renamed. Writers that ignore the lock are detected: if the file
//! differs from what was read, the change is applied again. Symlinks are not followed, because a repository could
//! redirect the write.

use std::fs::{DirBuilder, File, Permissions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::Mode;
use nix::unistd::{UnlinkatFlags, unlinkat};
use whimbrel_os::files::{self, DirHandle, FileKind, ReadAccess, TempFile};
use whimbrel_os::ids;

use crate::settings::edit::{self, SettingsChange};
use crate::settings::error::{SettingsError, display_path};
use crate::settings::read::{self, MAX_FILE_SIZE};

/// Access mode of the file, and whose directory it is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileAccess {
    /// Private to the user. The directory may be a symlink.
    User,
    /// Private to the user, in a project directory, which may not be a symlink.
    UserInProject,
    /// Readable like other files of the project.
    Project,
}

/// Time to wait for another writer.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);

/// Attempts when other programs change the file.
const MAX_ATTEMPTS: usize = 100;

const TEMP_PREFIX: &str = ".whimbrel-settings-";
const LINK_REMEDY: &str = "Links are not followed when settings are changed: edit the file that it leads to, or replace the link by a file.";

/// Content of a file before and after a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplacedText {
    /// None if the file did not exist.
    pub old: Option<String>,
    pub new: String,
}

/// Changes the file at `path`; creates it and its directory if missing. None if nothing changes.
pub fn change_file(
    path: &Path,
    readers: FileAccess,
    change: &SettingsChange,
) -> Result<Option<ReplacedText>, SettingsError> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else {
        return Err(SettingsError::not_written(path, "this is no file name", "Choose another folder."));
    };
    // Does not create a file if the change has no effect.
    if matches!(files::file_kind(path), Ok(FileKind::Missing)) && edited_text(path, None, change)?.is_none() {
        return Ok(None);
    }
    let failed = |error: io::Error| not_written(path, &error);
    let place = TargetFile { dir: open_dir(folder, readers).map_err(failed)?, name, access: readers };
    if lock_dir(&place.dir).map_err(failed)? == LockState::Held {
        remove_stale(folder, &place.dir);
    }
    for _ in 0..MAX_ATTEMPTS {
        let old = place.read().map_err(failed)?;
        let Some(new) = edited_text(path, old.as_ref(), change)? else { return Ok(None) };
        if place.replace(old.as_ref(), new.as_bytes()).map_err(failed)? {
            let old = old.map(|old| String::from_utf8_lossy(&old.bytes).into_owned());
            return Ok(Some(ReplacedText { old, new }));
        }
    }
    let cause = "another program changes it all the time";
    Err(SettingsError::not_written(path, cause, "End that program, and try again."))
}

/// Applies the change to the text; none if nothing changes.
fn edited_text(
    path: &Path,
    old: Option<&OldFile>,
    change: &SettingsChange,
) -> Result<Option<String>, SettingsError> {
    let remedy = "Correct the file first; it was left as it is.";
    let bytes = old.map_or(b"{}\n".as_slice(), |old| old.bytes.as_slice());
    let whole = std::str::from_utf8(bytes)
        .map_err(|_| SettingsError::not_written(path, "it is not UTF-8", remedy))?;
    let text = whole.strip_prefix('\u{feff}').unwrap_or(whole);
    read::parse_document(text, &display_path(path))?;
    let refused = |cause: String| SettingsError::not_written(path, cause, remedy);
    let Some(new) = edit::apply_change(text, change).map_err(refused)? else { return Ok(None) };
    let new = format!("{}{new}", &whole[..whole.len() - text.len()]);
    if new.len() as u64 > MAX_FILE_SIZE {
        let cause = "it would have more than 2 MiB";
        return Err(SettingsError::not_written(path, cause, "Remove what is no longer needed."));
    }
    // The new text must be valid at the next start.
    read::parse_document(&new, &display_path(path))?;
    Ok(Some(new))
}

fn not_written(path: &Path, error: &io::Error) -> SettingsError {
    if error.raw_os_error() == Some(Errno::ELOOP as i32) {
        return SettingsError::not_written(path, "it is, or lies behind, a link", LINK_REMEDY);
    }
    let remedy = match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => "Make the folder writable.",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "Make room on the disk.",
        io::ErrorKind::TimedOut => "End the program that holds the folder locked, or try again later.",
        _ => "Look at the folder and try again.",
    };
    SettingsError::not_written(path, error.to_string(), remedy)
}

/// Opens the directory, and creates it if missing.
fn open_dir(folder: &Path, readers: FileAccess) -> io::Result<File> {
    let made = match readers {
        FileAccess::User => DirBuilder::new().recursive(true).mode(0o700).create(folder),
        FileAccess::UserInProject | FileAccess::Project => DirBuilder::new().create(folder),
    };
    match made {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let no_link = match readers {
        FileAccess::User => OFlag::empty(),
        FileAccess::UserInProject | FileAccess::Project => OFlag::O_NOFOLLOW,
    };
    let flags = OFlag::O_DIRECTORY | no_link;
    let opened = File::options().read(true).custom_flags(flags.bits()).open(folder);
    // Systems differ in the error for a symlink in place of a directory.
    opened.map_err(|error| match files::link_target(folder) {
        Some(_) if !no_link.is_empty() => Errno::ELOOP.into(),
        _ => error,
    })
}

#[derive(Debug, PartialEq, Eq)]
enum LockState {
    /// Other writers wait until the directory is closed.
    Held,
    /// The filesystem has no locks. Changes by others are still detected before the rename.
    Unsupported,
}

fn lock_dir(folder: &File) -> io::Result<LockState> {
    match folder.try_lock() {
        Ok(()) => return Ok(LockState::Held),
        Err(TryLockError::WouldBlock) => {}
        Err(TryLockError::Error(error)) => return lock_unsupported(error),
    }
    // A lock belongs to the open file description, so locking the duplicate locks the original.
    let waiting = folder.try_clone()?;
    let (locked, outcome) = mpsc::channel();
    std::thread::Builder::new().name("settings-lock".into()).spawn(move || {
        // After a timeout the lock is released with the last descriptor.
        let _ = locked.send(waiting.lock());
    })?;
    match outcome.recv_timeout(LOCK_TIMEOUT) {
        Ok(Ok(())) => Ok(LockState::Held),
        Ok(Err(error)) => lock_unsupported(error),
        Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "another program holds the folder locked")),
    }
}

fn lock_unsupported(error: io::Error) -> io::Result<LockState> {
    match error.raw_os_error().map(Errno::from_raw) {
        Some(Errno::ENOLCK | Errno::EBADF | Errno::EINVAL | Errno::EOPNOTSUPP) => Ok(LockState::Unsupported),
        _ if error.kind() == io::ErrorKind::Unsupported => Ok(LockState::Unsupported),
        _ => Err(error),
    }
}

/// Removes temporary files of killed writers; no other writer is active while the lock is held.
fn remove_stale(path: &Path, folder: &File) {
    const MAX_ENTRIES: usize = 10_000;
    for name in files::entry_names(path, MAX_ENTRIES).iter().filter(|name| name.starts_with(TEMP_PREFIX)) {
        let _ = unlinkat(folder, name.as_str(), UnlinkatFlags::NoRemoveDir);
    }
}

/// A file in an open directory.
struct TargetFile<'a> {
    dir: File,
    name: &'a str,
    access: FileAccess,
}

/// The file as it was read.
struct OldFile {
    bytes: Vec<u8>,
    mode: u32,
    owner: (u32, u32),
}

impl TargetFile<'_> {
    /// Reads the current file; none if it does not exist.
    fn read(&self) -> io::Result<Option<OldFile>> {
        let flags =
            OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
        let file = match openat(&self.dir, self.name, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::ENOENT) => return Ok(None),
            Err(errno) => return Err(errno.into()),
        };
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
        }
        let mut bytes = Vec::new();
        file.take(MAX_FILE_SIZE + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > MAX_FILE_SIZE {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it has more than 2 MiB"));
        }
        Ok(Some(OldFile { bytes, mode: metadata.mode() & 0o7777, owner: (metadata.uid(), metadata.gid()) }))
    }

    fn read_access(&self) -> ReadAccess {
        match self.access {
            FileAccess::User | FileAccess::UserInProject => ReadAccess::OwnerOnly,
            FileAccess::Project => ReadAccess::Everyone,
        }
    }

    /// Replaces the file. False if it has changed since `old` was read.
    fn replace(&self, old: Option<&OldFile>, new: &[u8]) -> io::Result<bool> {
        let held = DirHandle::from(self.dir.try_clone()?);
        let staged =
            TempFile::create(&held, format!("{TEMP_PREFIX}{}", ids::new_uuid()).into(), self.read_access())?;
        let mut file = staged.file();
        match (self.access, old) {
            (FileAccess::User | FileAccess::UserInProject, _) | (FileAccess::Project, None) => {}
            (FileAccess::Project, Some(old)) => file.set_permissions(Permissions::from_mode(old.mode))?,
        }
        copy_owner(file, &self.dir, old)?;
        file.write_all(new)?;
        file.sync_all()?;
        let now = self.read()?;
        if now.as_ref().map(|now| &now.bytes) != old.map(|old| &old.bytes) {
            return Ok(false);
        }
        staged.replace(self.name.as_ref())?;
        // Some filesystems cannot sync a directory; the file itself is synced.
        let _ = self.dir.sync_all();
        Ok(true)
    }
}

/// Gives the new file the owner of the old one, or of the directory, so that files written by root stay readable for
/// their owner.
fn copy_owner(new: &File, folder: &File, old: Option<&OldFile>) -> io::Result<()> {
    let home = folder.metadata()?;
    let (user, group) = old.map_or((home.uid(), home.gid()), |old| old.owner);
    let mine = new.metadata()?;
    if (mine.uid(), mine.gid()) != (user, group) {
        // Only root may change the owner; otherwise the current user keeps the file.
        let _ = fchown(new, Some(user), Some(group));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
