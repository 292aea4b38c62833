//! Keeps the record of a team on disk up to date, beside the team: whoever writes a letter does not wait for the disk, and
//! letters that come faster than it takes them are written together.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tokio::sync::watch;

use super::folder::{Change, Folder};
use super::letter::Letter;
use crate::session::lock::{Lock, LockError};

/// The record of a team. Cheap to clone.
#[derive(Clone)]
pub(super) struct Record {
    shared: Arc<Shared>,
}

struct Shared {
    folder: Folder,
    pending: Mutex<Pending>,
    /// How many notes are on disk.
    written: watch::Sender<u64>,
    /// Held while files are touched, so that nothing is written after they were removed.
    disk: Mutex<()>,
    /// Keeps other sessions from taking the name, as long as the team is there.
    name: Mutex<Option<Lock>>,
}

/// What is not on disk yet.
#[derive(Default)]
struct Pending {
    config: Option<Value>,
    letters: BTreeMap<String, Vec<Change>>,
    /// How many notes there have been.
    noted: u64,
    /// Whether somebody writes.
    writing: bool,
    /// Whether the team is gone, and its files with it.
    over: bool,
}

impl Record {
    /// A record that begins anew in a folder, unless another session leads a team there.
    pub(super) fn begin(folder: Folder) -> io::Result<Self> {
        let path = folder.lock();
        // It goes with us. One that holds words is of an older make.
        let name = Lock::claim(&path).and_then(|free| free.map_or_else(|| Lock::make(&path), Ok));
        let name = name.map_err(|error| match error {
            LockError::Busy(busy) => io::Error::other(format!("its name is {busy}; choose another one")),
            LockError::Io(error) => error,
        })?;
        folder.begin()?;
        let shared = Shared {
            folder,
            pending: Mutex::default(),
            written: watch::Sender::default(),
            disk: Mutex::default(),
            name: Mutex::new(Some(name)),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// The file that says who is in the team.
    pub(super) fn config(&self) -> PathBuf {
        self.shared.folder.config()
    }

    /// Writes who is in the team.
    pub(super) fn set_config(&self, config: Value) {
        self.note(|pending| pending.config = Some(config));
    }

    /// Adds a letter to a mailbox.
    pub(super) fn add(&self, to: &str, letter: Letter) {
        self.change(to, Change::Came(Box::new(letter)));
    }

    /// Notes that a reader has its letters.
    pub(super) fn mark_read(&self, name: &str) {
        self.change(name, Change::Read);
    }

    /// Waits until everything is on disk that has been noted by now.
    pub(super) async fn settle(&self) {
        let noted = self.shared.pending().noted;
        // We hold the other end ourselves, so it cannot be gone.
        let _ = self.shared.written.subscribe().wait_for(|written| *written >= noted).await;
    }

    /// Removes everything about the team.
    pub(super) fn remove(&self) -> io::Result<()> {
        self.shared.pending().over = true;
        let _disk = self.shared.disk.lock().unwrap_or_else(PoisonError::into_inner);
        let removed = self.shared.folder.remove();
        *self.shared.name.lock().unwrap_or_else(PoisonError::into_inner) = None;
        removed
    }

    fn change(&self, name: &str, change: Change) {
        self.note(|pending| pending.letters.entry(name.to_owned()).or_default().push(change));
    }

    /// Notes what is to be written, and has it written if nobody is at it.
    fn note(&self, note: impl FnOnce(&mut Pending)) {
        let mut pending = self.shared.pending();
        note(&mut pending);
        pending.noted += 1;
        if std::mem::replace(&mut pending.writing, true) {
            return;
        }
        drop(pending);
        let shared = Arc::clone(&self.shared);
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(move || shared.write())),
            Err(_) => shared.write(),
        }
    }
}

impl Shared {
    /// Writes until nothing is left. The record is for others: that it cannot be written stops nobody.
    fn write(&self) {
        while let Some(batch) = self.take() {
            let _disk = self.disk.lock().unwrap_or_else(PoisonError::into_inner);
            if !self.pending().over {
                if let Some(config) = batch.config {
                    let _ = self.folder.write_config(&config);
                }
                for (name, changes) in batch.letters {
                    let _ = self.folder.update(&name, changes);
                }
            }
            self.written.send_replace(batch.noted);
        }
    }

    /// What is to be written next; if there is nothing, nobody writes any more.
    fn take(&self) -> Option<Pending> {
        let mut pending = self.pending();
        let batch = Pending {
            config: pending.config.take(),
            letters: std::mem::take(&mut pending.letters),
            noted: pending.noted,
            ..Pending::default()
        };
        // While the notes are locked: whoever notes something afterwards finds nobody writing.
        pending.writing = batch.config.is_some() || !batch.letters.is_empty();
        pending.writing.then_some(batch)
    }

    /// A whole note is put in or taken out at once; a panic elsewhere cannot leave it half changed.
    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn everything_is_on_disk_once_it_has_settled_and_nothing_after_it_was_removed() {
        let home = tempfile::tempdir().unwrap();
        let record = Record::begin(Folder::new(home.path(), "crew", "e1")).unwrap();
        record.set_config(serde_json::json!({"name": "crew"}));
        for number in 0..100 {
            record.add("m1", Letter::new("m2", number.to_string(), None));
        }
        record.mark_read("m1");
        record.settle().await;
        let text = std::fs::read_to_string(home.path().join("teams/crew/inboxes/m1.json")).unwrap();
        let kept: Vec<Letter> = serde_json::from_str(&text).unwrap();
        let told: Vec<(usize, bool)> =
            kept.iter().map(|letter| (letter.text.parse().unwrap(), letter.read)).collect();
        assert_eq!(told, (0..100).map(|number| (number, true)).collect::<Vec<_>>());
        assert!(record.config().exists());
        record.remove().unwrap();
        record.add("m1", Letter::new("m2", "late", None));
        record.settle().await;
        assert!(!record.config().parent().unwrap().exists());
    }
}
