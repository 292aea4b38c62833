//! Changing a settings file on disk, so that nothing is lost: neither to a crash nor to another writer.
//!
//! The folder is locked while a file in it is changed, which leaves no lock file behind and ends with the process that
//! holds it. The new text is written beside the file, brought to the disk and put in its place. Programs that do not
//! know our lock are caught too: if the file is another than the one that was read, the change is made again. No link
//! is followed: a repository could make us write somewhere else.

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

use super::edit::{self, SettingsChange};
use super::error::{SettingsError, display_path};
use super::read::{self, MAX_FILE_SIZE};
use crate::files::{self, DirHandle, FileKind, ReadAccess, TempFile};
use crate::ids;

/// Who may read the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileAccess {
    /// The person only. The folder may be a link of the person's own.
    User,
    /// The person only; the folder belongs to the project, and may not be a link.
    UserInProject,
    /// Whoever may read the project.
    Project,
}

/// How long another writer may take.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);

/// How often a change is made again because someone else changed the file.
const MAX_ATTEMPTS: usize = 100;

const TEMP_PREFIX: &str = ".whimbrel-settings-";
const LINK_REMEDY: &str = "Links are not followed when settings are changed: edit the file that it leads to, or replace the link by a file.";

/// What a file said before a change, and what it says now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplacedText {
    /// Before; none if there was no file.
    pub old: Option<String>,
    /// Now.
    pub new: String,
}

/// Makes a change to the file at `path`; the file and its folder are made if they are missing. None if the file says so
/// already.
pub fn change_file(path: &Path, readers: FileAccess, change: &SettingsChange) -> Result<Option<ReplacedText>, SettingsError> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else {
        return Err(SettingsError::not_written(path, "this is no file name", "Choose another folder."));
    };
    // Nothing is made only to say nothing in it.
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

/// The new text. None if nothing changes.
fn edited_text(path: &Path, old: Option<&OldFile>, change: &SettingsChange) -> Result<Option<String>, SettingsError> {
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
    // What was written must be readable at the next start.
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

/// Makes the folder if it is missing, and holds it.
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
    // Systems differ in what they call a link where there should be a folder.
    opened.map_err(|error| match files::link_target(folder) {
        Some(_) if !no_link.is_empty() => Errno::ELOOP.into(),
        _ => error,
    })
}

/// Whether other writers wait.
#[derive(Debug, PartialEq, Eq)]
enum LockState {
    /// They do, until the folder is closed.
    Held,
    /// This file system has no locks. Changes by others are still noticed before a file is replaced.
    Unsupported,
}

fn lock_dir(folder: &File) -> io::Result<LockState> {
    match folder.try_lock() {
        Ok(()) => return Ok(LockState::Held),
        Err(TryLockError::WouldBlock) => {}
        Err(TryLockError::Error(error)) => return lock_unsupported(error),
    }
    // A lock belongs to what was opened, so that a copy of the descriptor takes it for the original too.
    let waiting = folder.try_clone()?;
    let (locked, outcome) = mpsc::channel();
    std::thread::Builder::new().name("settings-lock".into()).spawn(move || {
        // If nobody waits for it any more, the lock ends with the last descriptor.
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

/// Removes what a writer left that was killed. Nobody else writes here while the lock is held.
fn remove_stale(path: &Path, folder: &File) {
    const MAX_ENTRIES: usize = 10_000;
    for name in files::entry_names(path, MAX_ENTRIES).iter().filter(|name| name.starts_with(TEMP_PREFIX)) {
        let _ = unlinkat(folder, name.as_str(), UnlinkatFlags::NoRemoveDir);
    }
}

/// A file in a folder that is held open.
struct TargetFile<'a> {
    dir: File,
    name: &'a str,
    access: FileAccess,
}

/// A file as it was found.
struct OldFile {
    bytes: Vec<u8>,
    mode: u32,
    owner: (u32, u32),
}

impl TargetFile<'_> {
    /// What is there now. None if nothing is.
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

    /// Who may read a new file.
    fn read_access(&self) -> ReadAccess {
        match self.access {
            FileAccess::User | FileAccess::UserInProject => ReadAccess::OwnerOnly,
            FileAccess::Project => ReadAccess::Everyone,
        }
    }

    /// Puts new bytes in the place of the old. False if what is there is no longer the old.
    fn replace(&self, old: Option<&OldFile>, new: &[u8]) -> io::Result<bool> {
        let held = DirHandle::from(self.dir.try_clone()?);
        let staged = TempFile::create(&held, format!("{TEMP_PREFIX}{}", ids::new_uuid()).into(), self.read_access())?;
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
        // Some file systems cannot bring a folder to the disk; the file itself is there.
        let _ = self.dir.sync_all();
        Ok(true)
    }
}

/// Gives a new file to whom the old one belongs, or the folder: what root writes must stay readable to its owner.
fn copy_owner(new: &File, folder: &File, old: Option<&OldFile>) -> io::Result<()> {
    let home = folder.metadata()?;
    let (user, group) = old.map_or((home.uid(), home.gid()), |old| old.owner);
    let mine = new.metadata()?;
    if (mine.uid(), mine.gid()) != (user, group) {
        // Only root may give a file away; whoever may not, owns the new file.
        let _ = fchown(new, Some(user), Some(group));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
