//! One writer per session: the transcript itself is locked while an engine has it open. The system drops the lock of an
//! engine that is killed, so nobody is ever locked out by a dead one, and there is no second file to make and remove.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::append_file::{self, AppendFile};

mod owner;

pub use owner::LockOwner;

/// How long one who wants a session waits for an engine that may be on its way out.
pub const BUSY_TIMEOUT: Duration = Duration::from_secs(3);

/// How long it is before one who waits looks for the first time.
const FIRST_POLL_INTERVAL: Duration = Duration::from_millis(5);

/// The longest time between two looks.
const MAX_POLL_INTERVAL: Duration = Duration::from_millis(100);

/// How often a transcript that is removed or replaced just then is opened again.
const MAX_OPEN_ATTEMPTS: usize = 16;

/// A transcript that is ours as long as this is there, and through which it is written.
#[derive(Debug)]
pub struct TranscriptLock {
    path: PathBuf,
    file: File,
    /// What the lock is on, if the file was opened anew since: it goes with the first one.
    locked_file: Option<File>,
    access: Access,
    /// Why it is not locked, though it is open: some disks have no locks.
    lock_error: Option<io::Error>,
    /// Whether the file is there only to keep an id. If nothing is written, it goes again.
    is_claim: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    Append,
    /// The file cannot be written, now at least.
    Read,
}

/// Whether a file that is missing is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IfMissing {
    Fail,
    Create,
}

/// A session that is somebody else's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", match owner {
    Some(owner) => owner.to_string(),
    None => "in use by another process".to_owned(),
})]
pub struct BusyError {
    /// The transcript.
    pub path: PathBuf,
    /// Who has it, where the system tells.
    pub owner: Option<LockOwner>,
}

/// Why a session cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Somebody else has it.
    #[error("{0}")]
    Busy(#[from] BusyError),
    /// Its transcript cannot be opened.
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
    /// Takes a session that is there.
    pub fn acquire(path: &Path) -> Result<Self, LockError> {
        Self::open(path, IfMissing::Fail)
    }

    /// Takes a session, and makes its transcript if need be.
    pub fn acquire_or_create(path: &Path) -> Result<Self, LockError> {
        Self::open(path, IfMissing::Create)
    }

    /// Takes a session in which nothing was said yet; none if something was. As long as nothing is, no trace of it stays.
    pub fn claim(path: &Path) -> Result<Option<Self>, LockError> {
        let mut lock = Self::acquire_or_create(path)?;
        lock.is_claim = lock.file.metadata()?.len() == 0;
        Ok(lock.is_claim.then_some(lock))
    }

    /// Takes a session, and waits for it if need be, but not longer than this.
    pub fn acquire_within(path: &Path, patience: Duration) -> Result<Self, LockError> {
        Self::acquire(path).or_else(|error| match error {
            LockError::Busy(busy) => {
                busy.wait_blocking(patience);
                Self::acquire(path)
            }
            LockError::Io(_) => Err(error),
        })
    }

    /// Locks a file that nobody else knows yet, before it gets its path.
    pub(super) fn lock_new_file(file: &File) -> Option<io::Error> {
        file.try_lock().err().map(io::Error::from)
    }

    /// A new file, now at its path, and how locking it went.
    pub(super) fn for_new_file(path: &Path, file: File, lock_error: Option<io::Error>) -> Self {
        Self { path: path.to_owned(), file, locked_file: None, access: Access::Append, lock_error, is_claim: false }
    }

    fn open(path: &Path, missing: IfMissing) -> Result<Self, LockError> {
        for _ in 0..MAX_OPEN_ATTEMPTS {
            let (file, access) = open(path, missing)?;
            let fault = match file.try_lock() {
                Ok(()) => None,
                Err(TryLockError::WouldBlock) => {
                    return Err(BusyError { path: path.to_owned(), owner: LockOwner::for_file(&file) }.into());
                }
                Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Interrupted => continue,
                Err(TryLockError::Error(error)) => Some(error),
            };
            // The file may have been removed between our opening and our locking it.
            if file.is_at(path) {
                let (path, guard) = (path.to_owned(), None);
                return Ok(Self { path, file, locked_file: guard, access, lock_error: fault, is_claim: false });
            }
        }
        Err(io::Error::other("the transcript is replaced again and again").into())
    }

    /// Whether others can still see it: its file may have been removed.
    pub fn is_at_path(&self) -> bool {
        self.file.is_at(&self.path)
    }

    /// Whether the transcript can be written through it.
    pub(super) fn can_write(&self) -> bool {
        self.access == Access::Append
    }

    /// Makes the transcript fit for the next line.
    pub(super) fn repair_tail(&mut self) -> io::Result<()> {
        append_file::repair_tail(&mut self.file)
    }

    /// Adds a line, its end included, to a transcript that nobody writes yet.
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
        let is_empty = || self.file.metadata().is_ok_and(|facts| facts.len() == 0);
        if self.is_claim && is_empty() && self.is_at_path() {
            // An empty transcript that stays does no harm.
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

    fn reopen(&mut self, path: &Path) -> io::Result<()> {
        let (mut file, access) = open(path, IfMissing::Fail)?;
        if access != Access::Append || !self.file.is_at(path) || !file.is_at(path) {
            return Err(io::Error::other("another file lies there now"));
        }
        append_file::repair_tail(&mut file)?;
        let old = std::mem::replace(&mut self.file, file);
        self.locked_file.get_or_insert(old);
        Ok(())
    }

    fn take_lock_error(&mut self) -> Option<io::Error> {
        self.lock_error.take()
    }
}

impl BusyError {
    /// Waits until the session is free, but not longer than this: a host often goes on with a session while the engine
    /// that had it is still on its way out.
    pub async fn wait(&self, patience: Duration) {
        // A thread that waits for the lock could not be called back: whoever tries again and again would leave ever more.
        for pause in poll_intervals(patience) {
            tokio::time::sleep(pause).await;
            if self.is_released() {
                return;
            }
        }
    }

    /// The same for those who are not asynchronous.
    #[expect(clippy::disallowed_methods, reason = "the system calls nobody when a lock becomes free")]
    pub fn wait_blocking(&self, patience: Duration) {
        for pause in poll_intervals(patience) {
            std::thread::sleep(pause);
            if self.is_released() {
                return;
            }
        }
    }

    /// Whether the session is free by now.
    fn is_released(&self) -> bool {
        !matches!(TranscriptLock::acquire(&self.path), Err(LockError::Busy(_)))
    }
}

/// The pauses between looks, each a little longer than the one before.
fn poll_intervals(patience: Duration) -> impl Iterator<Item = Duration> {
    let next = |pause: &Duration| Some((*pause * 3 / 2).min(MAX_POLL_INTERVAL));
    let pauses = std::iter::successors(Some(FIRST_POLL_INTERVAL), next);
    pauses.scan(patience, |left, pause| {
        let pause = pause.min(*left);
        *left -= pause;
        (!pause.is_zero()).then_some(pause)
    })
}

/// Opens a transcript; one that cannot be written is opened for reading, which is enough for locking it.
fn open(path: &Path, missing: IfMissing) -> io::Result<(File, Access)> {
    let append = || append_file::open_regular(OpenOptions::new().read(true).append(true), path);
    let make = || append_file::open_regular(OpenOptions::new().read(true).append(true).create(true).mode(0o600), path);
    let opened = match missing {
        IfMissing::Fail => append(),
        IfMissing::Create => match (make(), path.parent()) {
            (Err(error), Some(folder)) if error.kind() == ErrorKind::NotFound => {
                DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
                make()
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
