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

use crate::settings::change::edit::{self, SettingsChange};
use crate::settings::document::{self, MAX_FILE_SIZE};
use crate::settings::error::{SettingsError, display_path};

/// Access mode of the file, and whose directory it is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileOwnership {
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
const LINK_REMEDY: &str = "Links are not followed when settings are changed: edit the file that it points to, or replace the link by a file.";

/// Content of a file before and after a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplacedText {
    /// `None` if the file did not exist.
    pub old: Option<String>,
    pub new: String,
}

/// Changes the file at `path`; creates it and its directory if missing. `None` if nothing changes.
pub fn change_file(
    path: &Path,
    access: FileOwnership,
    change: &SettingsChange,
) -> Result<Option<ReplacedText>, SettingsError> {
    let (Some(dir), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else {
        return Err(SettingsError::not_written(path, "it is not a file name", "Choose another path."));
    };
    // Does not create a file if the change has no effect.
    if matches!(files::file_kind(path), Ok(FileKind::Missing)) && edited_text(path, None, change)?.is_none() {
        return Ok(None);
    }
    let failed = |error: io::Error| not_written(path, &error);
    let target = TargetFile { dir: open_dir(dir, access).map_err(failed)?, name, access };
    if lock_dir(&target.dir).map_err(failed)? == LockState::Held {
        remove_stale(dir, &target.dir);
    }
    for _ in 0..MAX_ATTEMPTS {
        let old = target.read().map_err(failed)?;
        let Some(new) = edited_text(path, old.as_ref(), change)? else { return Ok(None) };
        if target.replace(old.as_ref(), new.as_bytes()).map_err(failed)? {
            let old = old.map(|old| String::from_utf8_lossy(&old.bytes).into_owned());
            return Ok(Some(ReplacedText { old, new }));
        }
    }
    let cause = "another program keeps changing it";
    Err(SettingsError::not_written(path, cause, "End that program, and try again."))
}

/// Applies the change to the text; `None` if nothing changes.
fn edited_text(
    path: &Path,
    old: Option<&OldFile>,
    change: &SettingsChange,
) -> Result<Option<String>, SettingsError> {
    let remedy = "Correct the file first; it was not changed.";
    let bytes = old.map_or(b"{}\n".as_slice(), |old| old.bytes.as_slice());
    let whole = std::str::from_utf8(bytes)
        .map_err(|_| SettingsError::not_written(path, "it is not UTF-8", remedy))?;
    let text = whole.strip_prefix('\u{feff}').unwrap_or(whole);
    document::parse_document(text, &display_path(path))?;
    let not_applied = |cause: String| SettingsError::not_written(path, cause, remedy);
    let Some(new) = edit::apply_change(text, change).map_err(not_applied)? else { return Ok(None) };
    let new = format!("{}{new}", &whole[..whole.len() - text.len()]);
    if new.len() as u64 > MAX_FILE_SIZE {
        let cause = "it would have more than 2 MiB";
        return Err(SettingsError::not_written(path, cause, "Remove what is no longer needed."));
    }
    // The new text must be valid at the next start.
    document::parse_document(&new, &display_path(path))?;
    Ok(Some(new))
}

fn not_written(path: &Path, error: &io::Error) -> SettingsError {
    if error.raw_os_error() == Some(Errno::ELOOP as i32) {
        return SettingsError::not_written(path, "it is a link, or a directory above it is one", LINK_REMEDY);
    }
    let remedy = match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => "Make the directory writable.",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "Free disk space.",
        io::ErrorKind::TimedOut => {
            "End the program that holds the lock of the directory, or try again later."
        }
        _ => "Check the directory and try again.",
    };
    SettingsError::not_written(path, error.to_string(), remedy)
}

/// Opens the directory, and creates it if missing.
fn open_dir(dir: &Path, access: FileOwnership) -> io::Result<File> {
    let created = match access {
        FileOwnership::User => DirBuilder::new().recursive(true).mode(0o700).create(dir),
        FileOwnership::UserInProject | FileOwnership::Project => DirBuilder::new().create(dir),
    };
    match created {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let link_flag = match access {
        FileOwnership::User => OFlag::empty(),
        FileOwnership::UserInProject | FileOwnership::Project => OFlag::O_NOFOLLOW,
    };
    let flags = OFlag::O_DIRECTORY | link_flag;
    let opened = File::options().read(true).custom_flags(flags.bits()).open(dir);
    // Systems differ in the error for a symlink in place of a directory.
    opened.map_err(|error| match files::link_target(dir) {
        Some(_) if !link_flag.is_empty() => Errno::ELOOP.into(),
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

fn lock_dir(dir: &File) -> io::Result<LockState> {
    match dir.try_lock() {
        Ok(()) => return Ok(LockState::Held),
        Err(TryLockError::WouldBlock) => {}
        Err(TryLockError::Error(error)) => return lock_unsupported(error),
    }
    // A lock belongs to the open file description, so locking the duplicate locks the original.
    let duplicate = dir.try_clone()?;
    let (sender, receiver) = mpsc::channel();
    std::thread::Builder::new().name("settings-lock".into()).spawn(move || {
        // After a timeout the lock is released with the last descriptor.
        let _ = sender.send(duplicate.lock());
    })?;
    match receiver.recv_timeout(LOCK_TIMEOUT) {
        Ok(Ok(())) => Ok(LockState::Held),
        Ok(Err(error)) => lock_unsupported(error),
        Err(_) => {
            Err(io::Error::new(io::ErrorKind::TimedOut, "another program holds the lock of the directory"))
        }
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
fn remove_stale(path: &Path, dir: &File) {
    const MAX_ENTRIES: usize = 10_000;
    for name in files::entry_names(path, MAX_ENTRIES).iter().filter(|name| name.starts_with(TEMP_PREFIX)) {
        let _ = unlinkat(dir, name.as_str(), UnlinkatFlags::NoRemoveDir);
    }
}

/// A file in an open directory.
struct TargetFile<'a> {
    dir: File,
    name: &'a str,
    access: FileOwnership,
}

/// The file as it was read.
struct OldFile {
    bytes: Vec<u8>,
    mode: u32,
    owner: (u32, u32),
}

impl TargetFile<'_> {
    /// Reads the current file; `None` if it does not exist.
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
            FileOwnership::User | FileOwnership::UserInProject => ReadAccess::OwnerOnly,
            FileOwnership::Project => ReadAccess::Everyone,
        }
    }

    /// Replaces the file. False if it has changed since `old` was read.
    fn replace(&self, old: Option<&OldFile>, new: &[u8]) -> io::Result<bool> {
        let handle = DirHandle::from(self.dir.try_clone()?);
        let temp = TempFile::create(
            &handle,
            format!("{TEMP_PREFIX}{}", ids::new_uuid()).into(),
            self.read_access(),
        )?;
        let mut file = temp.file();
        match (self.access, old) {
            (FileOwnership::User | FileOwnership::UserInProject, _) | (FileOwnership::Project, None) => {}
            (FileOwnership::Project, Some(old)) => file.set_permissions(Permissions::from_mode(old.mode))?,
        }
        copy_owner(file, &self.dir, old)?;
        file.write_all(new)?;
        file.sync_all()?;
        let now = self.read()?;
        if now.as_ref().map(|now| &now.bytes) != old.map(|old| &old.bytes) {
            return Ok(false);
        }
        temp.replace(self.name.as_ref())?;
        // Some filesystems cannot sync a directory; the file itself is synced.
        let _ = self.dir.sync_all();
        Ok(true)
    }
}

/// Gives the new file the owner of the old one, or of the directory, so that files written by root stay readable for
/// their owner.
fn copy_owner(new: &File, dir: &File, old: Option<&OldFile>) -> io::Result<()> {
    let dir_metadata = dir.metadata()?;
    let (user, group) = old.map_or((dir_metadata.uid(), dir_metadata.gid()), |old| old.owner);
    let metadata = new.metadata()?;
    if (metadata.uid(), metadata.gid()) != (user, group) {
        // Only root may change the owner; otherwise the current user keeps the file.
        let _ = fchown(new, Some(user), Some(group));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
