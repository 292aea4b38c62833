//! Buffered writer of one session's transcripts to a session store, in the order in which the lines were written. Lines
//! that the store does not accept stay in the buffer and are sent again. The buffer is bounded; dropped lines are
//! reported to the host.
//!
//! A cancelled or timed-out append may have been stored all the same. Its lines are then sent twice, and the store
//! drops the duplicates by uuid.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use whimbrel_wire::RawJson;

use crate::health::{TranscriptNotice, WriteHealth};
use crate::store::{SharedStore, StoreError, StoreKey};

/// Time limit for appending one batch.
const APPEND_TIMEOUT: Duration = Duration::from_secs(10);
/// Time limit for reading, which may return a lot of data.
const LOAD_TIMEOUT: Duration = Duration::from_secs(60);
const MAX_BATCH_LINES: usize = 500;
const MAX_BUFFERED_BYTES: usize = 64 << 20;
/// Delay before the next attempt after a failure; quadruples with each further failure.
const INITIAL_BACKOFF: Duration = Duration::from_millis(200);
const MAX_BACKOFF: Duration = Duration::from_secs(30);
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
    health: WriteHealth,
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

    fn with_buffer_limit(store: SharedStore, project: impl Into<String>, room: usize) -> Self {
        let (bag, way) = (Mutex::default(), tokio::sync::Mutex::default());
        Self {
            shared: Arc::new(Shared {
                store,
                project: project.into(),
                buffer: bag,
                retry: way,
                max_buffered_bytes: room,
            }),
        }
    }

    pub fn project(&self) -> &str {
        &self.shared.project
    }

    /// Number of lines not in the store: those in the buffer and those dropped.
    pub fn undelivered_count(&self) -> usize {
        let bag = self.buffer();
        bag.lines.len() + bag.dropped_lines
    }

    /// Loads a transcript of a subagent; none if the store has none.
    pub async fn load(&self, session: &str, below: &str) -> Result<Option<Vec<RawJson>>, StoreError> {
        // Recent lines may still be in the buffer.
        let _ = self.flush(FlushMode::Once).await;
        with_load_timeout(self.shared.store.load(&StoreKey::session(self.project(), session).below(below)))
            .await
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
        let mut bag = self.buffer();
        let size = line.as_str().len();
        if bag.bytes + size <= self.shared.max_buffered_bytes || bag.lines.is_empty() {
            bag.bytes += size;
            bag.lines.push_back((Arc::clone(key), line));
            return;
        }
        bag.dropped_lines += 1;
        if bag.dropped_lines == 1 {
            let megabytes = self.shared.max_buffered_bytes >> 20;
            let text = format!("the store takes nothing and {megabytes} MiB wait for it; no more are kept");
            bag.health.record_loss(io::Error::other(text));
        }
    }

    /// Sends all buffered lines. After an error some of them are still in the buffer.
    pub async fn flush(&self, urgency: FlushMode) -> io::Result<()> {
        let mut way = self.shared.retry.lock().await;
        if self.buffer().lines.is_empty() {
            return Ok(());
        }
        if urgency == FlushMode::RespectBackoff && way.retry_after.is_some_and(|until| Instant::now() < until)
        {
            return Err(io::Error::other("the store has just failed"));
        }
        let tries = if urgency == FlushMode::WithRetries { FINAL_FLUSH_ATTEMPTS } else { 1 };
        let mut tried = self.send_buffered(&mut way).await;
        for attempt in 1..tries {
            if tried.is_ok() {
                break;
            }
            sleep(backoff(attempt)).await;
            tried = self.send_buffered(&mut way).await;
        }
        tried
    }

    async fn send_buffered(&self, way: &mut RetryState) -> io::Result<()> {
        let mut done = Ok(());
        while let Some((key, batch)) = self.next_batch() {
            let taken = timeout(APPEND_TIMEOUT, self.shared.store.append(&key, &batch)).await;
            done = taken.unwrap_or_else(|_| Err(timeout_error(APPEND_TIMEOUT))).map_err(StoreError::into_io);
            if done.is_err() {
                break;
            }
            self.buffer().drop_first(batch.len());
        }
        *way = match &done {
            Ok(()) => RetryState::default(),
            Err(_) => {
                let failures = way.failures + 1;
                RetryState { failures, retry_after: Some(Instant::now() + backoff(failures)) }
            }
        };
        let mut bag = self.buffer();
        let given_up = bag.dropped_lines;
        bag.health.record_write(&done, given_up);
        if done.is_ok() {
            bag.dropped_lines = 0;
        }
        done
    }

    /// The first buffered lines of one transcript. They stay in the buffer until the store has accepted them.
    fn next_batch(&self) -> Option<(Arc<StoreKey>, Vec<RawJson>)> {
        let bag = self.buffer();
        let key = Arc::clone(&bag.lines.front()?.0);
        let lines = bag.lines.iter().take(MAX_BATCH_LINES).take_while(|(other, _)| *other == key);
        let batch = lines.map(|(_, line)| line.clone()).collect();
        Some((key, batch))
    }

    fn buffer(&self) -> MutexGuard<'_, Buffer> {
        self.shared.buffer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Buffer {
    fn drop_first(&mut self, count: usize) {
        for (_, line) in self.lines.drain(..count) {
            self.bytes -= line.as_str().len();
        }
    }
}

/// Awaits a read from the store, at most [`LOAD_TIMEOUT`].
pub async fn with_load_timeout<T>(
    asked: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    timeout(LOAD_TIMEOUT, asked).await.unwrap_or_else(|_| Err(timeout_error(LOAD_TIMEOUT)))
}

fn timeout_error(patience: Duration) -> StoreError {
    let text = format!("the session store did not answer for {} s", patience.as_secs());
    io::Error::new(io::ErrorKind::TimedOut, text).into()
}

/// Backoff after a number of failures in a row.
fn backoff(failures: u32) -> Duration {
    INITIAL_BACKOFF.saturating_mul(4u32.saturating_pow(failures.saturating_sub(1))).min(MAX_BACKOFF)
}

#[cfg(test)]
mod tests;
