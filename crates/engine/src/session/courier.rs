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

use super::health::{Health, News};
use super::store::{SharedStore, StoreError, StoreKey};

/// How long a store may take for one batch.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long it may take to read something back, which may be much.
const LONG_PATIENCE: Duration = Duration::from_secs(60);
/// How many lines a batch has at most.
const BATCH: usize = 500;
/// How many bytes of lines may wait.
const WAITING: usize = 64 << 20;
/// How long a store that has failed is left alone at first; each further failure makes it four times as long.
const PAUSE: Duration = Duration::from_millis(200);
/// The longest such pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// How often a delivery that must succeed is tried.
const TRIES: u32 = 3;

/// Brings lines to a store. Cheap to clone; all transcripts of a session share one.
#[derive(Debug, Clone)]
pub struct Courier {
    round: Arc<Round>,
}

#[derive(Debug)]
struct Round {
    store: SharedStore,
    project: String,
    bag: Mutex<Bag>,
    /// One delivery at a time.
    way: tokio::sync::Mutex<Way>,
    /// How many bytes may wait.
    room: usize,
}

#[derive(Debug, Default)]
struct Bag {
    lines: VecDeque<(Arc<StoreKey>, RawJson)>,
    bytes: usize,
    /// Lines for which there was no room.
    given_up: usize,
    health: Health,
}

/// How the store has behaved.
#[derive(Debug, Default)]
struct Way {
    failures: u32,
    closed_until: Option<Instant>,
}

/// How much a delivery matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Urgency {
    /// A store that has just failed is left alone.
    Soon,
    /// It is tried once in any case.
    Now,
    /// It is tried several times.
    Last,
}

impl Courier {
    /// Brings the transcripts of a project to a store.
    pub fn new(store: SharedStore, project: impl Into<String>) -> Self {
        Self::with_room(store, project, WAITING)
    }

    fn with_room(store: SharedStore, project: impl Into<String>, room: usize) -> Self {
        let (bag, way) = (Mutex::default(), tokio::sync::Mutex::default());
        Self { round: Arc::new(Round { store, project: project.into(), bag, way, room }) }
    }

    /// The project that it works for.
    pub fn project(&self) -> &str {
        &self.round.project
    }

    /// How many lines the store has not taken: those that wait, and those for which there was no room.
    pub fn owes(&self) -> usize {
        let bag = self.bag();
        bag.lines.len() + bag.given_up
    }

    /// Reads a transcript below a session; none if the store has none.
    pub(crate) async fn load(&self, session: &str, below: &str) -> Result<Option<Vec<RawJson>>, StoreError> {
        // What was said a moment ago may still be on its way.
        let _ = self.deliver(Urgency::Now).await;
        within(self.round.store.load(&StoreKey::session(self.project(), session).below(below))).await
    }

    /// What lies below a session. A store that cannot tell has nothing there.
    pub(crate) async fn subkeys(&self, session: &str) -> Result<Vec<String>, StoreError> {
        match within(self.round.store.subkeys(self.project(), session)).await {
            Err(StoreError::Unsupported(_)) => Ok(Vec::new()),
            found => found,
        }
    }

    /// What the host does not know yet.
    pub(super) fn take_news(&self) -> Option<News> {
        self.bag().health.take_news()
    }

    /// Takes a line along.
    pub(super) fn take(&self, key: &Arc<StoreKey>, line: RawJson) {
        let mut bag = self.bag();
        let size = line.as_str().len();
        if bag.bytes + size <= self.round.room || bag.lines.is_empty() {
            bag.bytes += size;
            bag.lines.push_back((Arc::clone(key), line));
            return;
        }
        bag.given_up += 1;
        if bag.given_up == 1 {
            let megabytes = self.round.room >> 20;
            let text = format!("the store takes nothing and {megabytes} MiB wait for it; no more are kept");
            bag.health.worsen(io::Error::other(text));
        }
    }

    /// Delivers everything that waits. An error means that some of it still does.
    pub(crate) async fn deliver(&self, urgency: Urgency) -> io::Result<()> {
        let mut way = self.round.way.lock().await;
        if self.bag().lines.is_empty() {
            return Ok(());
        }
        if urgency == Urgency::Soon && way.closed_until.is_some_and(|until| Instant::now() < until) {
            return Err(io::Error::other("the store has just failed"));
        }
        let tries = if urgency == Urgency::Last { TRIES } else { 1 };
        let mut tried = self.empty_bag(&mut way).await;
        for attempt in 1..tries {
            if tried.is_ok() {
                break;
            }
            sleep(pause(attempt)).await;
            tried = self.empty_bag(&mut way).await;
        }
        tried
    }

    async fn empty_bag(&self, way: &mut Way) -> io::Result<()> {
        let mut done = Ok(());
        while let Some((key, batch)) = self.next_batch() {
            let taken = timeout(PATIENCE, self.round.store.append(&key, &batch)).await;
            done = taken.unwrap_or_else(|_| Err(silent(PATIENCE))).map_err(StoreError::into_io);
            if done.is_err() {
                break;
            }
            self.bag().drop_first(batch.len());
        }
        *way = match &done {
            Ok(()) => Way::default(),
            Err(_) => {
                let failures = way.failures + 1;
                Way { failures, closed_until: Some(Instant::now() + pause(failures)) }
            }
        };
        let mut bag = self.bag();
        let given_up = bag.given_up;
        bag.health.note(&done, given_up);
        if done.is_ok() {
            bag.given_up = 0;
        }
        done
    }

    /// The first lines that go to one transcript. They stay in the bag until they have been taken.
    fn next_batch(&self) -> Option<(Arc<StoreKey>, Vec<RawJson>)> {
        let bag = self.bag();
        let key = Arc::clone(&bag.lines.front()?.0);
        let lines = bag.lines.iter().take(BATCH).take_while(|(other, _)| *other == key);
        let batch = lines.map(|(_, line)| line.clone()).collect();
        Some((key, batch))
    }

    fn bag(&self) -> MutexGuard<'_, Bag> {
        self.round.bag.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Bag {
    fn drop_first(&mut self, count: usize) {
        for (_, line) in self.lines.drain(..count) {
            self.bytes -= line.as_str().len();
        }
    }
}

/// What a store answers, if it does so in time.
pub(crate) async fn within<T>(asked: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
    timeout(LONG_PATIENCE, asked).await.unwrap_or_else(|_| Err(silent(LONG_PATIENCE)))
}

fn silent(patience: Duration) -> StoreError {
    let text = format!("the session store did not answer for {} s", patience.as_secs());
    io::Error::new(io::ErrorKind::TimedOut, text).into()
}

/// How long a store is left alone after so many failures in a row.
fn pause(failures: u32) -> Duration {
    PAUSE.saturating_mul(4u32.saturating_pow(failures.saturating_sub(1))).min(LONGEST_PAUSE)
}

#[cfg(test)]
mod tests;
