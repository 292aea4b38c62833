//! The journals of covers: one file of JSON lines per session in one folder. A live session holds a lock on its file, so
//! that a file without a lock belongs to a session that was killed.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

const EXTENSION: &str = "covers";
/// How often the lock is tried for, and the time between.
const LOCK_ATTEMPTS: u32 = 1000;
const LOCK_PAUSE: Duration = Duration::from_millis(5);
/// Number of hexadecimal digits in the name of a journal.
const ID_DIGITS: usize = 16;

/// A line of a journal.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Line {
    /// An entry is about to be made under this name, which only this session uses.
    Temporary(PathBuf),
    /// The entry is about to get its final name.
    Made(Cover),
    /// The folder for temporary files is about to be made under this name, which only this session uses.
    Scratch(PathBuf),
}

/// A cover.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Cover {
    pub(crate) path: PathBuf,
    pub(crate) device: u64,
    pub(crate) inode: u64,
}

/// Exclusive access to the covers of all sessions of a user.
#[derive(Debug)]
pub(crate) struct FolderLock {
    _file: File,
}

impl FolderLock {
    /// Waits for the lock, but not for ever: any program of the user can hold it.
    #[expect(clippy::disallowed_methods, reason = "a lock of a file cannot be waited for with a limit")]
    pub(crate) fn take(folder: &Path) -> io::Result<Self> {
        let path = folder.join("lock");
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path)?;
        for _ in 0..LOCK_ATTEMPTS {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Self { _file: file }),
                Err(Errno::WOULDBLOCK | Errno::INTR) => std::thread::sleep(LOCK_PAUSE),
                Err(error) => return Err(error.into()),
            }
        }
        let text = format!("another process holds the lock {}. End that process", path.display());
        Err(io::Error::new(io::ErrorKind::TimedOut, text))
    }
}

/// A journal.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    file: File,
}

impl Journal {
    /// Creates the journal of this session.
    pub(crate) fn create(folder: &Path) -> io::Result<Self> {
        let mut random = [0_u8; 8];
        rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
        let name = format!("{:0ID_DIGITS$x}.{EXTENSION}", u64::from_ne_bytes(random));
        let path = folder.join(name);
        let file = OpenOptions::new().create_new(true).append(true).open(&path)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Self { path, file })
    }

    /// Returns the journals of killed sessions. The caller holds the lock of the folder.
    pub(crate) fn find_dead(folder: &Path) -> io::Result<Vec<Self>> {
        let mut dead = open_all(folder)?;
        dead.retain(|journal| flock(&journal.file, FlockOperation::NonBlockingLockExclusive).is_ok());
        Ok(dead)
    }

    /// Returns the journals of live sessions other than `own`.
    pub(crate) fn find_live(folder: &Path, own: &Self) -> io::Result<Vec<Self>> {
        let mut live = open_all(folder)?;
        live.retain(|journal| {
            journal.path != own.path
                && flock(&journal.file, FlockOperation::NonBlockingLockExclusive).is_err()
        });
        Ok(live)
    }

    /// Returns the part of the file name that only this session uses.
    pub(crate) fn id(&self) -> String {
        self.path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
    }

    pub(crate) fn append(&mut self, line: &Line) -> io::Result<()> {
        let mut text = serde_json::to_string(line)?;
        text.push('\n');
        self.file.write_all(text.as_bytes())
    }

    pub(crate) fn covers(&self) -> Vec<Cover> {
        let cover = |line| match line {
            Line::Made(cover) => Some(cover),
            Line::Temporary(_) | Line::Scratch(_) => None,
        };
        self.lines().into_iter().filter_map(cover).collect()
    }

    /// Names that only this session uses; others are left out, so that a forged journal removes nothing.
    pub(crate) fn temporaries(&self) -> Vec<PathBuf> {
        let prefix = format!("{}-", self.temporary_prefix());
        let temporary = |line| match line {
            Line::Temporary(path) => Some(path),
            Line::Made(_) | Line::Scratch(_) => None,
        };
        self.paths(temporary, |name| name.starts_with(&prefix))
    }

    /// As [`Self::temporaries`].
    pub(crate) fn scratch_folders(&self) -> Vec<PathBuf> {
        let scratch = |line| match line {
            Line::Scratch(path) => Some(path),
            Line::Made(_) | Line::Temporary(_) => None,
        };
        self.paths(scratch, |name| name == self.scratch_name())
    }

    fn paths(&self, take: fn(Line) -> Option<PathBuf>, is_own: impl Fn(&str) -> bool) -> Vec<PathBuf> {
        let id = self.id();
        if id.len() != ID_DIGITS || !id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Vec::new();
        }
        let name = |path: &PathBuf| path.file_name().and_then(OsStr::to_str).is_some_and(&is_own);
        self.lines().into_iter().filter_map(take).filter(name).collect()
    }

    /// Name of the folder for temporary files.
    pub(crate) fn scratch_name(&self) -> String {
        format!("whimbrel-{}", self.id())
    }

    /// Beginning of the names under which covers are made.
    pub(crate) fn temporary_prefix(&self) -> String {
        format!(".whimbrel-cover-{}", self.id())
    }

    /// Forgets the covers, which are gone.
    pub(crate) fn forget_covers(&mut self) -> io::Result<()> {
        let scratch = self.scratch_folders();
        self.file.set_len(0)?;
        scratch.into_iter().try_for_each(|path| self.append(&Line::Scratch(path)))
    }

    pub(crate) fn delete(&self) {
        // A journal that stays is worked off by the next session.
        let _ = std::fs::remove_file(&self.path);
    }

    /// Returns the lines that are whole.
    fn lines(&self) -> Vec<Line> {
        let text = std::fs::read_to_string(&self.path).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// Gives the lock up, as the death of the session does.
    #[cfg(test)]
    pub(crate) fn release_for_test(&self) {
        flock(&self.file, FlockOperation::Unlock).unwrap();
    }
}

fn open_all(folder: &Path) -> io::Result<Vec<Journal>> {
    let mut journals = Vec::new();
    for entry in std::fs::read_dir(folder)?.flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|extension| extension == EXTENSION)
            && let Ok(file) = OpenOptions::new().read(true).append(true).open(&path)
        {
            journals.push(Journal { path, file });
        }
    }
    Ok(journals)
}
