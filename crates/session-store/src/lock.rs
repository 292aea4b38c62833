//! One writer per session: an engine locks the transcript file itself (`flock`) while it has it open. The kernel
//! releases the lock of a killed engine, so there are no stale locks and no lock file.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use whimbrel_os::files;

use crate::append_file::{self, AppendFile};
use crate::partial_line;

mod owner;

pub use owner::{LockMode, LockOwner};

/// Time to wait for an engine that may be shutting down.
pub const BUSY_TIMEOUT: Duration = Duration::from_secs(3);

/// Delay before the first check of a waiting engine.
const FIRST_POLL_INTERVAL: Duration = Duration::from_millis(5);

const MAX_POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Attempts to open a transcript that is being removed or replaced.
const MAX_OPEN_ATTEMPTS: usize = 16;

/// A locked transcript. It is written through this handle and unlocked on drop.
#[derive(Debug)]
pub struct TranscriptLock {
    path: PathBuf,
    file: File,
    /// The file that holds the lock, if the transcript was reopened since: the lock belongs to the first open.
    locked_file: Option<File>,
    access: Access,
    /// The file could not be locked; some filesystems have no locks.
    lock_error: Option<io::Error>,
    /// The file is removed on drop if it is still empty: it only reserves a session id.
    is_claim: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    Append,
    /// The file is not writable, at least for now.
    Read,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IfMissing {
    Fail,
    Create,
}

/// The session is locked by another process.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", match owner {
    Some(owner) => owner.to_string(),
    None => "in use by another process".to_owned(),
})]
pub struct BusyError {
    /// Path of the transcript.
    pub path: PathBuf,
    /// The lock holder, if the operating system reports it.
    pub owner: Option<Box<LockOwner>>,
}

#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process holds the lock.
    #[error("{0}")]
    Busy(#[from] BusyError),
    /// The transcript cannot be opened.
    #[error("{0}")]
    Io(#[from] io::Error),
}

impl From<LockError> for io::Error {
    fn from(error: LockError) -> Self {
        match error {
            LockError::Busy(busy) => Self::new(ErrorKind::ResourceBusy, busy),
            LockError::Io(error) => error,
        }
    }
}

impl TranscriptLock {
    /// Locks an existing transcript.
    pub fn acquire(path: &Path) -> Result<Self, LockError> {
        Self::open(path, IfMissing::Fail)
    }

    /// Locks a transcript, and creates it if it is missing.
    pub fn acquire_or_create(path: &Path) -> Result<Self, LockError> {
        Self::open(path, IfMissing::Create)
    }

    /// Reserves a session id with an empty transcript; `None` if the transcript has content. The file is removed on
    /// drop if nothing was written.
    pub fn claim(path: &Path) -> Result<Option<Self>, LockError> {
        let mut lock = Self::acquire_or_create(path)?;
        lock.is_claim = lock.file.metadata()?.len() == 0;
        Ok(lock.is_claim.then_some(lock))
    }

    /// Removes the file on drop if it is empty then.
    pub(crate) fn remove_if_empty(&mut self) {
        self.is_claim = true;
    }

    /// Locks a transcript, waiting up to `timeout` if another process holds it.
    pub(crate) fn acquire_within(path: &Path, timeout: Duration) -> Result<Self, LockError> {
        Self::acquire(path).or_else(|error| match error {
            LockError::Busy(busy) => {
                busy.wait_blocking(timeout);
                Self::acquire(path)
            }
            LockError::Io(_) => Err(error),
        })
    }

    /// Locks a transcript, and creates it if it is missing, waiting up to `timeout` if another process holds it.
    pub(crate) fn acquire_or_create_within(path: &Path, timeout: Duration) -> Result<Self, LockError> {
        Self::acquire_or_create(path).or_else(|error| match error {
            LockError::Busy(busy) => {
                busy.wait_blocking(timeout);
                Self::acquire_or_create(path)
            }
            LockError::Io(_) => Err(error),
        })
    }

    /// Locks a new file before it gets its final path.
    pub(super) fn lock_new_file(file: &File) -> Option<io::Error> {
        file.try_lock().err().map(io::Error::from)
    }

    /// Creates the lock of a new file that is now at its path; `lock_error` is the error of locking it.
    pub(super) fn for_new_file(path: &Path, file: File, lock_error: Option<io::Error>) -> Self {
        Self {
            path: path.to_owned(),
            file,
            locked_file: None,
            access: Access::Append,
            lock_error,
            is_claim: false,
        }
    }

    fn open(path: &Path, missing: IfMissing) -> Result<Self, LockError> {
        for _ in 0..MAX_OPEN_ATTEMPTS {
            let (file, access) = open(path, missing)?;
            let lock_error = match file.try_lock() {
                Ok(()) => None,
                Err(TryLockError::WouldBlock) => {
                    return Err(BusyError {
                        path: path.to_owned(),
                        owner: LockOwner::for_file(&file).map(Box::new),
                    }
                    .into());
                }
                Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Interrupted => continue,
                Err(TryLockError::Error(error)) => Some(error),
            };
            // The file may have been removed between opening and locking.
            if file.is_at(path) {
                let (path, locked_file) = (path.to_owned(), None);
                return Ok(Self { path, file, locked_file, access, lock_error, is_claim: false });
            }
        }
        Err(io::Error::other("other processes keep replacing the transcript").into())
    }

    /// False if the file was removed or replaced, so that the lock excludes no other process.
    pub(crate) fn is_at_path(&self) -> bool {
        self.file.is_at(&self.path)
    }

    pub(super) fn can_write(&self) -> bool {
        self.access == Access::Append
    }

    /// Prepares the end of the file for the next line.
    pub(super) fn repair_tail(&mut self) -> io::Result<()> {
        partial_line::repair_tail(&mut self.file)
    }

    /// Appends a line, including its newline. Only for a transcript that is not written otherwise yet.
    pub(super) fn append(&mut self, line: &[u8]) -> io::Result<()> {
        if !self.can_write() {
            return Err(ErrorKind::PermissionDenied.into());
        }
        self.repair_tail()?;
        self.file.write_all(line)
    }
}

impl Drop for TranscriptLock {
    fn drop(&mut self) {
        let is_empty = || self.file.metadata().is_ok_and(|metadata| metadata.len() == 0);
        if self.is_claim && is_empty() && self.is_at_path() {
            // An empty transcript left behind is harmless.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl AppendFile for TranscriptLock {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        AppendFile::write(&mut self.file, bytes)
    }

    fn position(&mut self) -> io::Result<u64> {
        self.file.position()
    }

    fn length(&mut self) -> io::Result<u64> {
        self.file.length()
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.file.truncate(length)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync()
    }

    fn is_at(&self, path: &Path) -> bool {
        self.file.is_at(path)
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        AppendFile::read_at(&self.file, offset, into)
    }

    fn overwrite(&mut self, path: &Path, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.overwrite(path, offset, bytes)
    }

    fn reopen(&mut self, path: &Path) -> io::Result<()> {
        let (mut file, access) = open(path, IfMissing::Fail)?;
        if access != Access::Append || !self.file.is_at(path) || !file.is_at(path) {
            return Err(io::Error::other("another file is at this path now"));
        }
        partial_line::repair_tail(&mut file)?;
        let old = std::mem::replace(&mut self.file, file);
        self.locked_file.get_or_insert(old);
        Ok(())
    }

    fn take_lock_error(&mut self) -> Option<io::Error> {
        self.lock_error.take()
    }
}

impl BusyError {
    /// Waits until the lock is released, but at most `timeout`: hosts often resume a session while its previous engine
    /// is shutting down.
    pub async fn wait(&self, timeout: Duration) {
        // Polls, because a thread blocked on the lock cannot be cancelled and retries would accumulate threads.
        for pause in poll_intervals(timeout) {
            tokio::time::sleep(pause).await;
            if probe(&self.path) == LockProbe::Free {
                return;
            }
        }
    }

    /// Like [`Self::wait`], for synchronous callers.
    #[expect(clippy::disallowed_methods, reason = "the system does not notify when a lock is released")]
    pub(crate) fn wait_blocking(&self, timeout: Duration) {
        for pause in poll_intervals(timeout) {
            std::thread::sleep(pause);
            if probe(&self.path) == LockProbe::Free {
                return;
            }
        }
    }
}

/// Whether an engine has a session open.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionLock {
    /// No engine.
    Free,
    /// Another process; `None` if the operating system does not tell which.
    Held(Option<LockOwner>),
}

/// Tells who has locked a transcript. Asks the operating system first, so that the lock is rarely touched.
pub(super) fn inspect(path: &Path) -> SessionLock {
    if let Ok(file) = append_file::open_for_reading(path)
        && let Some(owner) = LockOwner::for_file(&file)
    {
        return SessionLock::Held(Some(owner));
    }
    match TranscriptLock::acquire(path) {
        Err(LockError::Busy(busy)) => SessionLock::Held(busy.owner.map(|owner| *owner)),
        Ok(_) | Err(LockError::Io(_)) => SessionLock::Free,
    }
}

/// Result of [`probe`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LockProbe {
    Free,
    Busy,
}

/// Tests a lock by taking it and releasing it at once. A transcript that cannot be opened counts as free.
pub(super) fn probe(path: &Path) -> LockProbe {
    match TranscriptLock::acquire(path) {
        Err(LockError::Busy(_)) => LockProbe::Busy,
        Ok(_) | Err(LockError::Io(_)) => LockProbe::Free,
    }
}

/// Delays between checks, each longer than the one before; together `timeout`.
fn poll_intervals(timeout: Duration) -> impl Iterator<Item = Duration> {
    let next = |pause: &Duration| Some((*pause * 3 / 2).min(MAX_POLL_INTERVAL));
    let pauses = std::iter::successors(Some(FIRST_POLL_INTERVAL), next);
    pauses.scan(timeout, |left, pause| {
        let pause = pause.min(*left);
        *left -= pause;
        (!pause.is_zero()).then_some(pause)
    })
}

/// Opens a transcript. One that is not writable is opened for reading, which suffices for locking.
fn open(path: &Path, missing: IfMissing) -> io::Result<(File, Access)> {
    let append = || append_file::open_regular(OpenOptions::new().read(true).append(true), path);
    let create = || {
        append_file::open_regular(OpenOptions::new().read(true).append(true).create(true).mode(0o600), path)
    };
    let opened = match missing {
        IfMissing::Fail => append(),
        IfMissing::Create => match (create(), path.parent()) {
            (Err(error), Some(dir)) if error.kind() == ErrorKind::NotFound => {
                files::create_private_dir(dir)?;
                create()
            }
            (opened, _) => opened,
        },
    };
    match opened {
        Ok(file) => Ok((file, Access::Append)),
        Err(error)
            if missing == IfMissing::Fail
                && matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem) =>
        {
            Ok((append_file::open_for_reading(path).map_err(|_| error)?, Access::Read))
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests;
