//! Background writer of team files: senders do not wait for the disk, and changes that arrive while it writes are
//! written together.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tokio::sync::watch;
use whimbrel_session_store::lock::{LockError, TranscriptLock};

use super::message::TeamMessage;
use super::team_dir::{MailboxChange, TeamDir};

/// Writer of one team. Cheap to clone.
#[derive(Clone)]
pub(super) struct TeamWriter {
    shared: Arc<Shared>,
}

struct Shared {
    dir: TeamDir,
    pending: Mutex<PendingWrites>,
    /// Number of changes on disk.
    written_count: watch::Sender<u64>,
    /// Held during file operations, so that nothing is written after the files were removed.
    disk_lock: Mutex<()>,
    /// Lock file that keeps other sessions from using the team's name.
    name_lock: Mutex<Option<TranscriptLock>>,
}

/// Changes that are not on disk yet.
#[derive(Default)]
struct PendingWrites {
    config: Option<Value>,
    mailboxes: BTreeMap<String, Vec<MailboxChange>>,
    /// Number of changes so far.
    queued_count: u64,
    /// Whether a writer runs.
    writing: bool,
    /// Whether the team and its files were removed.
    removed: bool,
}

impl TeamWriter {
    /// Locks the team's name and creates its files; fails if another session leads a team of this name.
    pub(super) fn create(directory: TeamDir) -> io::Result<Self> {
        let path = directory.lock_path();
        // The lock is released with this writer; a lock file with contents was written by an older version.
        let name_lock = TranscriptLock::claim(&path)
            .and_then(|lock| lock.map_or_else(|| TranscriptLock::acquire_or_create(&path), Ok));
        let name_lock = name_lock.map_err(|error| match error {
            LockError::Busy(busy) => io::Error::other(format!("its name is {busy}; choose another name")),
            LockError::Io(error) => error,
        })?;
        directory.create()?;
        let shared = Shared {
            dir: directory,
            pending: Mutex::default(),
            written_count: watch::Sender::default(),
            disk_lock: Mutex::default(),
            name_lock: Mutex::new(Some(name_lock)),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    pub(super) fn config_path(&self) -> PathBuf {
        self.shared.dir.config_path()
    }

    /// Queues the member list.
    pub(super) fn set_config(&self, config: Value) {
        self.queue_write(|pending| pending.config = Some(config));
    }

    pub(super) fn add_message(&self, to: &str, message: TeamMessage) {
        self.queue_mailbox_change(to, MailboxChange::Received(Box::new(message)));
    }

    pub(super) fn mark_read(&self, name: &str) {
        self.queue_mailbox_change(name, MailboxChange::Read);
    }

    /// Waits until all changes queued so far are on disk.
    pub(super) async fn flush(&self) {
        let queued = self.shared.lock_pending().queued_count;
        // The sender is owned by `self`, so the channel is open.
        let _ = self.shared.written_count.subscribe().wait_for(|written| *written >= queued).await;
    }

    /// Removes all files of the team.
    pub(super) fn remove(&self) -> io::Result<()> {
        self.shared.lock_pending().removed = true;
        let _guard = self.shared.disk_lock.lock().unwrap_or_else(PoisonError::into_inner);
        let removed = self.shared.dir.remove();
        *self.shared.name_lock.lock().unwrap_or_else(PoisonError::into_inner) = None;
        removed
    }

    fn queue_mailbox_change(&self, name: &str, change: MailboxChange) {
        self.queue_write(|pending| pending.mailboxes.entry(name.to_owned()).or_default().push(change));
    }

    /// Queues a change and starts a writer if none runs.
    fn queue_write(&self, change: impl FnOnce(&mut PendingWrites)) {
        let mut pending = self.shared.lock_pending();
        change(&mut pending);
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
    /// Writes until nothing is queued. The files are only a record, so errors are ignored.
    fn write_pending(&self) {
        while let Some(batch) = self.take_batch() {
            let _guard = self.disk_lock.lock().unwrap_or_else(PoisonError::into_inner);
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

    /// Takes the next batch; if there is none, the writer ends.
    fn take_batch(&self) -> Option<PendingWrites> {
        let mut pending = self.lock_pending();
        let batch = PendingWrites {
            config: pending.config.take(),
            mailboxes: std::mem::take(&mut pending.mailboxes),
            queued_count: pending.queued_count,
            ..PendingWrites::default()
        };
        // Cleared under the lock, so that a later change starts a new writer.
        pending.writing = batch.config.is_some() || !batch.mailboxes.is_empty();
        pending.writing.then_some(batch)
    }

    /// Every change is atomic under the lock, so a poisoned lock is safe to use.
    fn lock_pending(&self) -> MutexGuard<'_, PendingWrites> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn changes_are_flushed_and_none_written_after_removal() {
        let home = tempfile::tempdir().unwrap();
        let writer = TeamWriter::create(TeamDir::new(home.path(), "crew", "e1")).unwrap();
        writer.set_config(serde_json::json!({"name": "crew"}));
        for number in 0..100 {
            writer.add_message("m1", TeamMessage::new("m2", number.to_string(), None));
        }
        writer.mark_read("m1");
        writer.flush().await;
        let text = std::fs::read_to_string(home.path().join("teams/crew/inboxes/m1.json")).unwrap();
        let stored: Vec<TeamMessage> = serde_json::from_str(&text).unwrap();
        let shown: Vec<(usize, bool)> =
            stored.iter().map(|message| (message.text.parse().unwrap(), message.read)).collect();
        assert_eq!(shown, (0..100).map(|number| (number, true)).collect::<Vec<_>>());
        assert!(writer.config_path().exists());
        writer.remove().unwrap();
        writer.add_message("m1", TeamMessage::new("m2", "late", None));
        writer.flush().await;
        assert!(!writer.config_path().parent().unwrap().exists());
    }
}
