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

use super::edit::{self, Change};
use super::error::{SettingsError, shown};
use super::read::{self, LARGEST};
use crate::files::{self, Folder, Kind, Reader, Staged};
use crate::ids;

/// Who may read the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readers {
    /// The person only. The folder may be a link of the person's own.
    Person,
    /// The person only; the folder belongs to the project, and may not be a link.
    PersonInProject,
    /// Whoever may read the project.
    Project,
}

/// How long another writer may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// How often a change is made again because someone else changed the file.
const TRIES: usize = 100;

const MARK: &str = ".whimbrel-settings-";
const LINKS: &str = "Links are not followed when settings are changed: edit the file that it leads to, or replace the link by a file.";

/// What a file said before a change, and what it says now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replaced {
    /// Before; none if there was no file.
    pub old: Option<String>,
    /// Now.
    pub new: String,
}

/// Makes a change to the file at `path`; the file and its folder are made if they are missing. None if the file says so
/// already.
pub fn change(path: &Path, readers: Readers, change: &Change) -> Result<Option<Replaced>, SettingsError> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else {
        return Err(SettingsError::not_written(path, "this is no file name", "Choose another folder."));
    };
    // Nothing is made only to say nothing in it.
    if matches!(files::kind(path), Ok(Kind::Missing)) && changed(path, None, change)?.is_none() {
        return Ok(None);
    }
    let failed = |error: io::Error| not_written(path, &error);
    let place = Place { folder: open_folder(folder, readers).map_err(failed)?, name, readers };
    if lock(&place.folder).map_err(failed)? == Lock::Held {
        sweep(folder, &place.folder);
    }
    for _ in 0..TRIES {
        let old = place.read().map_err(failed)?;
        let Some(new) = changed(path, old.as_ref(), change)? else { return Ok(None) };
        if place.replace(old.as_ref(), new.as_bytes()).map_err(failed)? {
            let old = old.map(|old| String::from_utf8_lossy(&old.bytes).into_owned());
            return Ok(Some(Replaced { old, new }));
        }
    }
    let cause = "another program changes it all the time";
    Err(SettingsError::not_written(path, cause, "End that program, and try again."))
}

/// The new text. None if nothing changes.
fn changed(path: &Path, old: Option<&Old>, change: &Change) -> Result<Option<String>, SettingsError> {
    let remedy = "Correct the file first; it was left as it is.";
    let bytes = old.map_or(b"{}\n".as_slice(), |old| old.bytes.as_slice());
    let whole = std::str::from_utf8(bytes)
        .map_err(|_| SettingsError::not_written(path, "it is not UTF-8", remedy))?;
    let text = whole.strip_prefix('\u{feff}').unwrap_or(whole);
    read::document(text, &shown(path))?;
    let refused = |cause: String| SettingsError::not_written(path, cause, remedy);
    let Some(new) = edit::apply(text, change).map_err(refused)? else { return Ok(None) };
    let new = format!("{}{new}", &whole[..whole.len() - text.len()]);
    if new.len() as u64 > LARGEST {
        let cause = "it would have more than 2 MiB";
        return Err(SettingsError::not_written(path, cause, "Remove what is no longer needed."));
    }
    // What was written must be readable at the next start.
    read::document(&new, &shown(path))?;
    Ok(Some(new))
}

fn not_written(path: &Path, error: &io::Error) -> SettingsError {
    if error.raw_os_error() == Some(Errno::ELOOP as i32) {
        return SettingsError::not_written(path, "it is, or lies behind, a link", LINKS);
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
fn open_folder(folder: &Path, readers: Readers) -> io::Result<File> {
    let made = match readers {
        Readers::Person => DirBuilder::new().recursive(true).mode(0o700).create(folder),
        Readers::PersonInProject | Readers::Project => DirBuilder::new().create(folder),
    };
    match made {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let no_link = match readers {
        Readers::Person => OFlag::empty(),
        Readers::PersonInProject | Readers::Project => OFlag::O_NOFOLLOW,
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
enum Lock {
    /// They do, until the folder is closed.
    Held,
    /// This file system has no locks. Changes by others are still noticed before a file is replaced.
    Unsupported,
}

fn lock(folder: &File) -> io::Result<Lock> {
    match folder.try_lock() {
        Ok(()) => return Ok(Lock::Held),
        Err(TryLockError::WouldBlock) => {}
        Err(TryLockError::Error(error)) => return unsupported(error),
    }
    // A lock belongs to what was opened, so that a copy of the descriptor takes it for the original too.
    let waiting = folder.try_clone()?;
    let (locked, outcome) = mpsc::channel();
    std::thread::Builder::new().name("settings-lock".into()).spawn(move || {
        // If nobody waits for it any more, the lock ends with the last descriptor.
        let _ = locked.send(waiting.lock());
    })?;
    match outcome.recv_timeout(PATIENCE) {
        Ok(Ok(())) => Ok(Lock::Held),
        Ok(Err(error)) => unsupported(error),
        Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "another program holds the folder locked")),
    }
}

fn unsupported(error: io::Error) -> io::Result<Lock> {
    match error.raw_os_error().map(Errno::from_raw) {
        Some(Errno::ENOLCK | Errno::EBADF | Errno::EINVAL | Errno::EOPNOTSUPP) => Ok(Lock::Unsupported),
        _ if error.kind() == io::ErrorKind::Unsupported => Ok(Lock::Unsupported),
        _ => Err(error),
    }
}

/// Removes what a writer left that was killed. Nobody else writes here while the lock is held.
fn sweep(path: &Path, folder: &File) {
    const MOST: usize = 10_000;
    for name in files::names(path, MOST).iter().filter(|name| name.starts_with(MARK)) {
        let _ = unlinkat(folder, name.as_str(), UnlinkatFlags::NoRemoveDir);
    }
}

/// A file in a folder that is held open.
struct Place<'a> {
    folder: File,
    name: &'a str,
    readers: Readers,
}

/// A file as it was found.
struct Old {
    bytes: Vec<u8>,
    mode: u32,
    owner: (u32, u32),
}

impl Place<'_> {
    /// What is there now. None if nothing is.
    fn read(&self) -> io::Result<Option<Old>> {
        let flags =
            OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
        let file = match openat(&self.folder, self.name, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::ENOENT) => return Ok(None),
            Err(errno) => return Err(errno.into()),
        };
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
        }
        let mut bytes = Vec::new();
        file.take(LARGEST + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > LARGEST {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it has more than 2 MiB"));
        }
        Ok(Some(Old { bytes, mode: metadata.mode() & 0o7777, owner: (metadata.uid(), metadata.gid()) }))
    }

    /// Who may read a new file.
    fn reader(&self) -> Reader {
        match self.readers {
            Readers::Person | Readers::PersonInProject => Reader::Owner,
            Readers::Project => Reader::Everybody,
        }
    }

    /// Puts new bytes in the place of the old. False if what is there is no longer the old.
    fn replace(&self, old: Option<&Old>, new: &[u8]) -> io::Result<bool> {
        let held = Folder::from(self.folder.try_clone()?);
        let staged = Staged::begin(&held, format!("{MARK}{}", ids::uuid()).into(), self.reader())?;
        let mut file = staged.file();
        match (self.readers, old) {
            (Readers::Person | Readers::PersonInProject, _) | (Readers::Project, None) => {}
            (Readers::Project, Some(old)) => file.set_permissions(Permissions::from_mode(old.mode))?,
        }
        give(file, &self.folder, old)?;
        file.write_all(new)?;
        file.sync_all()?;
        let now = self.read()?;
        if now.as_ref().map(|now| &now.bytes) != old.map(|old| &old.bytes) {
            return Ok(false);
        }
        staged.take_place_of(self.name.as_ref())?;
        // Some file systems cannot bring a folder to the disk; the file itself is there.
        let _ = self.folder.sync_all();
        Ok(true)
    }
}

/// Gives a new file to whom the old one belongs, or the folder: what root writes must stay readable to its owner.
fn give(new: &File, folder: &File, old: Option<&Old>) -> io::Result<()> {
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
