//! Brings the lines of one session's transcripts to a store, in the order in which they were written. What the store does
//! not take waits and is offered again; so much may wait and no more, and whatever is given up is told.
//!
//! A delivery that is broken off, because its turn was stopped or the store took too long, may have arrived all the same.
//! Then its lines come twice, which a store sees by their ids.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use whimbrel_wire::RawJson;

use super::health::{WriteHealth, TranscriptNotice};
use super::store::{SharedStore, StoreError, StoreKey};

/// How long a store may take for one batch.
const APPEND_TIMEOUT: Duration = Duration::from_secs(10);
/// How long it may take to read something back, which may be much.
const LOAD_TIMEOUT: Duration = Duration::from_secs(60);
/// How many lines a batch has at most.
const MAX_BATCH_LINES: usize = 500;
/// How many bytes of lines may wait.
const MAX_BUFFERED_BYTES: usize = 64 << 20;
/// How long a store that has failed is left alone at first; each further failure makes it four times as long.
const INITIAL_BACKOFF: Duration = Duration::from_millis(200);
/// The longest such pause.
const MAX_BACKOFF: Duration = Duration::from_secs(30);
/// How often a delivery that must succeed is tried.
const FINAL_FLUSH_ATTEMPTS: u32 = 3;

/// Brings lines to a store. Cheap to clone; all transcripts of a session share one.
#[derive(Debug, Clone)]
pub struct StoreWriter {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    store: SharedStore,
    project: String,
    buffer: Mutex<Buffer>,
    /// One delivery at a time.
    retry: tokio::sync::Mutex<RetryState>,
    /// How many bytes may wait.
    max_buffered_bytes: usize,
}

#[derive(Debug, Default)]
struct Buffer {
    lines: VecDeque<(Arc<StoreKey>, RawJson)>,
    bytes: usize,
    /// Lines for which there was no room.
    dropped_lines: usize,
    health: WriteHealth,
}

/// How the store has behaved.
#[derive(Debug, Default)]
struct RetryState {
    failures: u32,
    retry_after: Option<Instant>,
}

/// How much a delivery matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FlushMode {
    /// A store that has just failed is left alone.
    RespectBackoff,
    /// It is tried once in any case.
    Once,
    /// It is tried several times.
    WithRetries,
}

impl StoreWriter {
    /// Brings the transcripts of a project to a store.
    pub fn new(store: SharedStore, project: impl Into<String>) -> Self {
        Self::with_buffer_limit(store, project, MAX_BUFFERED_BYTES)
    }

    fn with_buffer_limit(store: SharedStore, project: impl Into<String>, room: usize) -> Self {
        let (bag, way) = (Mutex::default(), tokio::sync::Mutex::default());
        Self { shared: Arc::new(Shared { store, project: project.into(), buffer: bag, retry: way, max_buffered_bytes: room }) }
    }

    /// The project that it works for.
    pub fn project(&self) -> &str {
        &self.shared.project
    }

    /// How many lines the store has not taken: those that wait, and those for which there was no room.
    pub fn undelivered_count(&self) -> usize {
        let bag = self.buffer();
        bag.lines.len() + bag.dropped_lines
    }

    /// Reads a transcript below a session; none if the store has none.
    pub(crate) async fn load(&self, session: &str, below: &str) -> Result<Option<Vec<RawJson>>, StoreError> {
        // What was said a moment ago may still be on its way.
        let _ = self.flush(FlushMode::Once).await;
        with_load_timeout(self.shared.store.load(&StoreKey::session(self.project(), session).below(below))).await
    }

    /// What lies below a session. A store that cannot tell has nothing there.
    pub(crate) async fn subkeys(&self, session: &str) -> Result<Vec<String>, StoreError> {
        match with_load_timeout(self.shared.store.subkeys(self.project(), session)).await {
            Err(StoreError::Unsupported(_)) => Ok(Vec::new()),
            found => found,
        }
    }

    /// What the host does not know yet.
    pub(super) fn take_notice(&self) -> Option<TranscriptNotice> {
        self.buffer().health.take_notice()
    }

    /// Takes a line along.
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

    /// Delivers everything that waits. An error means that some of it still does.
    pub(crate) async fn flush(&self, urgency: FlushMode) -> io::Result<()> {
        let mut way = self.shared.retry.lock().await;
        if self.buffer().lines.is_empty() {
            return Ok(());
        }
        if urgency == FlushMode::RespectBackoff && way.retry_after.is_some_and(|until| Instant::now() < until) {
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

    /// The first lines that go to one transcript. They stay in the bag until they have been taken.
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

/// What a store answers, if it does so in time.
pub(crate) async fn with_load_timeout<T>(asked: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
    timeout(LOAD_TIMEOUT, asked).await.unwrap_or_else(|_| Err(timeout_error(LOAD_TIMEOUT)))
}

fn timeout_error(patience: Duration) -> StoreError {
    let text = format!("the session store did not answer for {} s", patience.as_secs());
    io::Error::new(io::ErrorKind::TimedOut, text).into()
}

/// How long a store is left alone after so many failures in a row.
fn backoff(failures: u32) -> Duration {
    INITIAL_BACKOFF.saturating_mul(4u32.saturating_pow(failures.saturating_sub(1))).min(MAX_BACKOFF)
}

#[cfg(test)]
mod tests;
