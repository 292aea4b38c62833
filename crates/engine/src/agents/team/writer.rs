//! Keeps the record of a team on disk up to date, beside the team: whoever writes a letter does not wait for the disk, and
//! letters that come faster than it takes them are written together.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tokio::sync::watch;

use super::team_dir::{MailboxChange, TeamDir};
use super::message::TeamMessage;
use crate::session::lock::{TranscriptLock, LockError};

/// The record of a team. Cheap to clone.
#[derive(Clone)]
pub(super) struct TeamWriter {
    shared: Arc<Shared>,
}

struct Shared {
    dir: TeamDir,
    pending: Mutex<PendingWrites>,
    /// How many notes are on disk.
    written_count: watch::Sender<u64>,
    /// Held while files are touched, so that nothing is written after they were removed.
    disk_lock: Mutex<()>,
    /// Keeps other sessions from taking the name, as long as the team is there.
    name_lock: Mutex<Option<TranscriptLock>>,
}

/// What is not on disk yet.
#[derive(Default)]
struct PendingWrites {
    config: Option<Value>,
    mailboxes: BTreeMap<String, Vec<MailboxChange>>,
    /// How many notes there have been.
    queued_count: u64,
    /// Whether somebody writes.
    writing: bool,
    /// Whether the team is gone, and its files with it.
    removed: bool,
}

impl TeamWriter {
    /// A record that begins anew in a folder, unless another session leads a team there.
    pub(super) fn create(folder: TeamDir) -> io::Result<Self> {
        let path = folder.lock_path();
        // It goes with us. One that holds words is of an older make.
        let name = TranscriptLock::claim(&path).and_then(|free| free.map_or_else(|| TranscriptLock::acquire_or_create(&path), Ok));
        let name = name.map_err(|error| match error {
            LockError::Busy(busy) => io::Error::other(format!("its name is {busy}; choose another one")),
            LockError::Io(error) => error,
        })?;
        folder.create()?;
        let shared = Shared {
            dir: folder,
            pending: Mutex::default(),
            written_count: watch::Sender::default(),
            disk_lock: Mutex::default(),
            name_lock: Mutex::new(Some(name)),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// The file that says who is in the team.
    pub(super) fn config_path(&self) -> PathBuf {
        self.shared.dir.config_path()
    }

    /// Writes who is in the team.
    pub(super) fn set_config(&self, config: Value) {
        self.queue_write(|pending| pending.config = Some(config));
    }

    /// Adds a letter to a mailbox.
    pub(super) fn add_message(&self, to: &str, letter: TeamMessage) {
        self.queue_mailbox_change(to, MailboxChange::Received(Box::new(letter)));
    }

    /// Notes that a reader has its letters.
    pub(super) fn mark_read(&self, name: &str) {
        self.queue_mailbox_change(name, MailboxChange::Read);
    }

    /// Waits until everything is on disk that has been noted by now.
    pub(super) async fn flush(&self) {
        let noted = self.shared.lock_pending().queued_count;
        // We hold the other end ourselves, so it cannot be gone.
        let _ = self.shared.written_count.subscribe().wait_for(|written| *written >= noted).await;
    }

    /// Removes everything about the team.
    pub(super) fn remove(&self) -> io::Result<()> {
        self.shared.lock_pending().removed = true;
        let _disk = self.shared.disk_lock.lock().unwrap_or_else(PoisonError::into_inner);
        let removed = self.shared.dir.remove();
        *self.shared.name_lock.lock().unwrap_or_else(PoisonError::into_inner) = None;
        removed
    }

    fn queue_mailbox_change(&self, name: &str, change: MailboxChange) {
        self.queue_write(|pending| pending.mailboxes.entry(name.to_owned()).or_default().push(change));
    }

    /// Notes what is to be written, and has it written if nobody is at it.
    fn queue_write(&self, note: impl FnOnce(&mut PendingWrites)) {
        let mut pending = self.shared.lock_pending();
        note(&mut pending);
        pending.queued_count += 1;
        if std::mem::replace(&mut pending.writing, true) {
            return;
        }
        drop(pending);
        let shared = Arc::clone(&self.shared);
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(move || shared.write_pending())),
            Err(_) => shared.write_pending(),
        }
    }
}

impl Shared {
    /// Writes until nothing is left. The record is for others: that it cannot be written stops nobody.
    fn write_pending(&self) {
        while let Some(batch) = self.take_batch() {
            let _disk = self.disk_lock.lock().unwrap_or_else(PoisonError::into_inner);
            if !self.lock_pending().removed {
                if let Some(config) = batch.config {
                    let _ = self.dir.write_config(&config);
                }
                for (name, changes) in batch.mailboxes {
                    let _ = self.dir.update_mailbox(&name, changes);
                }
            }
            self.written_count.send_replace(batch.queued_count);
        }
    }

    /// What is to be written next; if there is nothing, nobody writes any more.
    fn take_batch(&self) -> Option<PendingWrites> {
        let mut pending = self.lock_pending();
        let batch = PendingWrites {
            config: pending.config.take(),
            mailboxes: std::mem::take(&mut pending.mailboxes),
            queued_count: pending.queued_count,
            ..PendingWrites::default()
        };
        // While the notes are locked: whoever notes something afterwards finds nobody writing.
        pending.writing = batch.config.is_some() || !batch.mailboxes.is_empty();
        pending.writing.then_some(batch)
    }

    /// A whole note is put in or taken out at once; a panic elsewhere cannot leave it half changed.
    fn lock_pending(&self) -> MutexGuard<'_, PendingWrites> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn everything_is_on_disk_once_it_has_settled_and_nothing_after_it_was_removed() {
        let home = tempfile::tempdir().unwrap();
        let record = TeamWriter::create(TeamDir::new(home.path(), "crew", "e1")).unwrap();
        record.set_config(serde_json::json!({"name": "crew"}));
        for number in 0..100 {
            record.add_message("m1", TeamMessage::new("m2", number.to_string(), None));
        }
        record.mark_read("m1");
        record.flush().await;
        let text = std::fs::read_to_string(home.path().join("teams/crew/inboxes/m1.json")).unwrap();
        let kept: Vec<TeamMessage> = serde_json::from_str(&text).unwrap();
        let told: Vec<(usize, bool)> =
            kept.iter().map(|letter| (letter.text.parse().unwrap(), letter.read)).collect();
        assert_eq!(told, (0..100).map(|number| (number, true)).collect::<Vec<_>>());
        assert!(record.config_path().exists());
        record.remove().unwrap();
        record.add_message("m1", TeamMessage::new("m2", "late", None));
        record.flush().await;
        assert!(!record.config_path().parent().unwrap().exists());
    }
}
