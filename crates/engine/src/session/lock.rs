//! One writer per session. A small file beside the transcript is locked while an engine has the session, and says which
//! engine that is. The system drops the lock of an engine that is killed, so nobody is ever locked out by a dead one.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::fcntl::OFlag;
use serde::{Deserialize, Serialize};

use crate::{clock, files};

/// How long one who wants a session waits for an engine that may be on its way out.
pub const PATIENCE: Duration = Duration::from_secs(3);

/// How often a lock whose file vanishes is tried again.
const TRIES: usize = 16;

/// How long an owner's words about itself may be.
const LONGEST: u64 = 1024;

/// A session that is ours as long as this is there.
#[derive(Debug)]
pub struct Lock {
    path: PathBuf,
    file: File,
}

/// Who has a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// The process.
    pub pid: u32,
    /// Since when.
    pub since: String,
}

/// A session that is somebody else's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("in use by {}", match owner {
    Some(owner) => format!("process {} since {}", owner.pid, owner.since),
    None => "another process".to_owned(),
})]
pub struct Busy {
    /// The lock's file.
    pub path: PathBuf,
    /// Who has it, if it says so.
    pub owner: Option<Owner>,
}

/// The lock's file of a transcript.
pub fn beside(transcript: &Path) -> PathBuf {
    transcript.with_extension("lock")
}

impl Lock {
    /// Takes a session. None where the disk has no locks: then nobody can be kept out.
    pub fn take(path: &Path) -> Result<Option<Self>, Busy> {
        for _ in 0..TRIES {
            let Ok(file) = open(path) else { return Ok(None) };
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    return Err(Busy { path: path.to_owned(), owner: read_owner(file) });
                }
                Err(TryLockError::Error(_)) => return Ok(None),
            }
            // The last owner may have removed the file between our opening and our locking it.
            if is_still_there(&file, path) {
                let owner = Owner { pid: std::process::id(), since: clock::timestamp() };
                // Without it, others learn only that the session is somebody's.
                let _ = sign(&file, &owner);
                return Ok(Some(Self { path: path.to_owned(), file }));
            }
        }
        Ok(None)
    }

    /// Takes a session, and waits for it if need be, but not longer than this.
    pub fn take_within(path: &Path, patience: Duration) -> Result<Option<Self>, Busy> {
        Self::take(path).or_else(|busy| {
            busy.wait_here(patience);
            Self::take(path)
        })
    }

    /// Whether others can still see it: its file may have been removed.
    pub fn is_seen(&self) -> bool {
        is_still_there(&self.file, &self.path)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // It is still locked, so it is ours to remove, unless somebody has put another in its place. One that stays does
        // no harm.
        if self.is_seen() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl Busy {
    /// Waits until the session is free, but not longer than this: a host often goes on with a session while the engine
    /// that had it is still on its way out.
    pub async fn wait(&self, patience: Duration) {
        let path = self.path.clone();
        let free = files::aside(move || match open_existing(&path) {
            Ok(file) => file.lock(),
            Err(_) => Ok(()),
        });
        // Whether it became free is found out by taking it.
        let _ = tokio::time::timeout(patience, free).await;
    }
}

impl Busy {
    /// The same for those who are not asynchronous.
    pub fn wait_here(&self, patience: Duration) {
        let (free, freed) = std::sync::mpsc::channel();
        let path = self.path.clone();
        std::thread::spawn(move || {
            let _ = open_existing(&path).and_then(|file| file.lock());
            let _ = free.send(());
        });
        let _ = freed.recv_timeout(patience);
    }
}

fn open(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    open_with(OpenOptions::new().create(true).mode(0o600), path)
}

fn open_existing(path: &Path) -> io::Result<File> {
    open_with(&mut OpenOptions::new(), path)
}

fn open_with(how: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
    how.read(true).write(true).custom_flags(flags.bits()).open(path)
}

fn is_still_there(file: &File, path: &Path) -> bool {
    match (file.metadata(), fs::symlink_metadata(path)) {
        (Ok(ours), Ok(there)) => (ours.dev(), ours.ino()) == (there.dev(), there.ino()),
        _ => false,
    }
}

fn sign(mut file: &File, owner: &Owner) -> io::Result<()> {
    file.set_len(0)?;
    file.write_all(serde_json::to_string(owner)?.as_bytes())
}

fn read_owner(file: File) -> Option<Owner> {
    let mut text = String::new();
    file.take(LONGEST).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_has_one_owner_and_the_other_learns_who() {
        let folder = tempfile::tempdir().unwrap();
        let path = beside(&folder.path().join("new/session.jsonl"));
        let lock = Lock::take(&path).unwrap().unwrap();
        let busy = Lock::take(&path).unwrap_err();
        assert_eq!(busy.owner.as_ref().unwrap().pid, std::process::id());
        assert!(busy.to_string().contains(&format!("process {} since 2", std::process::id())), "{busy}");
        drop(lock);
        assert!(!path.exists());
        assert!(Lock::take(&path).unwrap().is_some());
    }

    #[test]
    fn what_a_dead_owner_left_locks_nobody_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("session.lock");
        for left in ["", "garbage", r#"{"pid":1,"since":"long ago"}"#] {
            fs::write(&path, left).unwrap();
            assert!(Lock::take(&path).unwrap().is_some(), "{left}");
        }
    }

    #[test]
    fn a_lock_that_was_removed_is_not_seen_and_does_not_take_the_next_one_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("session.lock");
        let lock = Lock::take(&path).unwrap().unwrap();
        fs::remove_file(&path).unwrap();
        assert!(!lock.is_seen());
        let next = Lock::take(&path).unwrap().unwrap();
        drop(lock);
        assert!(next.is_seen());
    }

    #[tokio::test]
    async fn one_who_waits_is_woken_when_the_session_is_free() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("session.lock");
        let lock = Lock::take(&path).unwrap().unwrap();
        let busy = Lock::take(&path).unwrap_err();
        let waiting = tokio::spawn(async move { busy.wait(Duration::from_secs(60)).await });
        tokio::task::yield_now().await;
        drop(lock);
        waiting.await.unwrap();
        assert!(Lock::take(&path).unwrap().is_some());
    }
}
