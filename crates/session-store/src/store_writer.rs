//! Buffered writer of one session's transcripts to a session store, in the order in which the lines were written. Lines
//! that the store does not accept stay in the buffer and are sent again. The buffer is bounded; dropped lines are
//! reported to the host.
//!
//! Each batch must follow the last line that this writer has stored. If another engine has continued the transcript, its
//! lines are dropped, and the session must not go on.
//!
//! A cancelled or timed-out append may have been stored all the same. Its lines are then sent twice, and the store
//! drops the duplicates by uuid.

use std::collections::{HashMap, HashSet, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use whimbrel_os::backoff::Backoff;
use whimbrel_wire::RawJson;

use crate::store::{SharedStore, StoreError, StoreKey, uuid_of};
use crate::write_status::{TranscriptNotice, WriteStatus};

/// Time limit for appending one batch.
const APPEND_TIMEOUT: Duration = Duration::from_secs(10);
/// Time limit for reading, which may return a lot of data.
const LOAD_TIMEOUT: Duration = Duration::from_secs(60);
const MAX_BATCH_LINES: usize = 500;
const MAX_BUFFERED_BYTES: usize = 64 << 20;
/// Delay before the next attempt after a failure.
const BACKOFF: Backoff =
    Backoff { initial: Duration::from_millis(200), factor: 4, max: Duration::from_secs(30) };
/// Attempts of a flush with [`FlushMode::WithRetries`].
const FINAL_FLUSH_ATTEMPTS: u32 = 3;

/// Writes lines to a session store. Cheap to clone; all transcripts of a session share one.
#[derive(Debug, Clone)]
pub struct StoreWriter {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    store: SharedStore,
    project: String,
    buffer: Mutex<Buffer>,
    /// Held while lines are sent, so that only one flush runs at a time.
    retry: tokio::sync::Mutex<RetryState>,
    max_buffered_bytes: usize,
}

#[derive(Debug, Default)]
struct Buffer {
    lines: VecDeque<(Arc<StoreKey>, RawJson)>,
    bytes: usize,
    /// Lines dropped because the buffer was full.
    dropped_lines: usize,
    /// Uuid of the last line of each transcript in the store, as far as it is known.
    last_entries: HashMap<Arc<StoreKey>, String>,
    /// Transcripts that another engine has continued. Their lines are dropped.
    conflicts: HashSet<Arc<StoreKey>>,
    health: WriteStatus,
}

/// Backoff after failed appends.
#[derive(Debug, Default)]
struct RetryState {
    failures: u32,
    retry_after: Option<Instant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlushMode {
    /// Return an error at once while the backoff lasts.
    RespectBackoff,
    /// Try once, regardless of the backoff.
    Once,
    /// Try several times.
    WithRetries,
}

impl StoreWriter {
    /// Creates a writer for the transcripts of a project.
    pub fn new(store: SharedStore, project: impl Into<String>) -> Self {
        Self::with_buffer_limit(store, project, MAX_BUFFERED_BYTES)
    }

    fn with_buffer_limit(store: SharedStore, project: impl Into<String>, max_buffered_bytes: usize) -> Self {
        let (buffer, retry) = (Mutex::default(), tokio::sync::Mutex::default());
        Self {
            shared: Arc::new(Shared { store, project: project.into(), buffer, retry, max_buffered_bytes }),
        }
    }

    /// Sets the uuid of the last line of a session that exists in the store. New lines must follow it.
    pub fn set_last_entry(&self, session: &str, uuid: String) {
        let key = Arc::new(StoreKey::session(self.project(), session));
        self.buffer().last_entries.insert(key, uuid);
    }

    /// Returns whether another engine has continued a transcript of this session.
    pub fn has_conflict(&self) -> bool {
        !self.buffer().conflicts.is_empty()
    }

    pub fn project(&self) -> &str {
        &self.shared.project
    }

    /// Number of lines not in the store: those in the buffer and those dropped.
    pub fn undelivered_count(&self) -> usize {
        let buffer = self.buffer();
        buffer.lines.len() + buffer.dropped_lines
    }

    /// Loads the transcript of a session; `None` if the store has none.
    pub async fn load_session(&self, session: &str) -> Result<Option<Vec<RawJson>>, StoreError> {
        with_load_timeout(self.shared.store.load(&StoreKey::session(self.project(), session))).await
    }

    /// Loads a transcript of a subagent; `None` if the store has none.
    pub async fn load(&self, session: &str, subpath: &str) -> Result<Option<Vec<RawJson>>, StoreError> {
        // Recent lines may still be in the buffer.
        let _ = self.flush(FlushMode::Once).await;
        let key = Arc::new(StoreKey::session(self.project(), session).with_subpath(subpath));
        let lines = with_load_timeout(self.shared.store.load(&key)).await?;
        if let Some(last) = lines.iter().flatten().rev().find_map(uuid_of) {
            self.buffer().last_entries.insert(key, last);
        }
        Ok(lines)
    }

    /// Lists the subpaths of a session. A store that cannot list them counts as having none.
    pub async fn subkeys(&self, session: &str) -> Result<Vec<String>, StoreError> {
        match with_load_timeout(self.shared.store.subkeys(self.project(), session)).await {
            Err(StoreError::Unsupported(_)) => Ok(Vec::new()),
            found => found,
        }
    }

    pub(super) fn take_notice(&self) -> Option<TranscriptNotice> {
        self.buffer().health.take_notice()
    }

    /// Adds a line to the buffer, or drops it if the buffer is full.
    pub(super) fn push(&self, key: &Arc<StoreKey>, line: RawJson) {
        let mut buffer = self.buffer();
        if buffer.conflicts.contains(key) {
            return;
        }
        let size = line.as_str().len();
        if buffer.bytes + size <= self.shared.max_buffered_bytes || buffer.lines.is_empty() {
            buffer.bytes += size;
            buffer.lines.push_back((Arc::clone(key), line));
            return;
        }
        buffer.dropped_lines += 1;
        if buffer.dropped_lines == 1 {
            let megabytes = self.shared.max_buffered_bytes >> 20;
            let text = format!(
                "the store accepts nothing and {megabytes} MiB are buffered; further lines are dropped"
            );
            buffer.health.record_loss(io::Error::other(text));
        }
    }

    /// Sends all buffered lines. After an error some of them are still in the buffer.
    pub async fn flush(&self, mode: FlushMode) -> io::Result<()> {
        let mut retry = self.shared.retry.lock().await;
        if self.buffer().lines.is_empty() {
            return Ok(());
        }
        if mode == FlushMode::RespectBackoff && retry.retry_after.is_some_and(|until| Instant::now() < until)
        {
            return Err(io::Error::other("the store failed a moment ago"));
        }
        let attempts = if mode == FlushMode::WithRetries { FINAL_FLUSH_ATTEMPTS } else { 1 };
        let mut result = self.send_buffered(&mut retry).await;
        for attempt in 1..attempts {
            if result.is_ok() {
                break;
            }
            sleep(BACKOFF.delay(attempt)).await;
            result = self.send_buffered(&mut retry).await;
        }
        result
    }

    async fn send_buffered(&self, retry: &mut RetryState) -> io::Result<()> {
        let mut result = Ok(());
        while let Some((key, batch)) = self.next_batch() {
            let last = self.buffer().last_entries.get(&key).cloned();
            let append = self.shared.store.append_after(&key, last.as_deref(), &batch);
            let sent = timeout(APPEND_TIMEOUT, append).await;
            match sent.unwrap_or_else(|_| Err(timeout_error(APPEND_TIMEOUT))) {
                Ok(()) => self.buffer().record_sent(&key, &batch),
                Err(StoreError::Conflict { .. }) => self.buffer().record_conflict(key),
                Err(error) => {
                    result = Err(error.into_io());
                    break;
                }
            }
        }
        *retry = match &result {
            Ok(()) => RetryState::default(),
            Err(_) => {
                let failures = retry.failures + 1;
                RetryState { failures, retry_after: Some(Instant::now() + BACKOFF.delay(failures)) }
            }
        };
        let mut buffer = self.buffer();
        let dropped = buffer.dropped_lines;
        buffer.health.record_write(&result, dropped);
        if result.is_ok() {
            buffer.dropped_lines = 0;
        }
        result
    }

    /// The first buffered lines of one transcript. They stay in the buffer until the store has accepted them.
    fn next_batch(&self) -> Option<(Arc<StoreKey>, Vec<RawJson>)> {
        let buffer = self.buffer();
        let key = Arc::clone(&buffer.lines.front()?.0);
        let lines = buffer.lines.iter().take(MAX_BATCH_LINES).take_while(|(other, _)| *other == key);
        let batch = lines.map(|(_, line)| line.clone()).collect();
        Some((key, batch))
    }

    fn buffer(&self) -> MutexGuard<'_, Buffer> {
        self.shared.buffer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Buffer {
    /// Drops the first lines, which the store has accepted.
    fn record_sent(&mut self, key: &Arc<StoreKey>, batch: &[RawJson]) {
        for (_, line) in self.lines.drain(..batch.len()) {
            self.bytes -= line.as_str().len();
        }
        if let Some(last) = batch.iter().rev().find_map(uuid_of) {
            self.last_entries.insert(Arc::clone(key), last);
        }
    }

    /// Drops all lines of a transcript that another engine has continued.
    fn record_conflict(&mut self, key: Arc<StoreKey>) {
        self.lines.retain(|(other, _)| *other != key);
        self.bytes = self.lines.iter().map(|(_, line)| line.as_str().len()).sum();
        self.conflicts.insert(key);
        self.health.record_conflict();
    }
}

/// Awaits a read from the store, at most `LOAD_TIMEOUT`.
pub async fn with_load_timeout<T>(
    read: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    timeout(LOAD_TIMEOUT, read).await.unwrap_or_else(|_| Err(timeout_error(LOAD_TIMEOUT)))
}

fn timeout_error(timeout: Duration) -> StoreError {
    let text = format!("the session store did not answer within {} s", timeout.as_secs());
    io::Error::new(io::ErrorKind::TimedOut, text).into()
}

#[cfg(test)]
mod tests;
