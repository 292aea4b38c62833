//! How many agents may work at once. Whoever comes too many waits, in the order of coming; each depth of the tree has
//! places of its own, so that those above never keep those below, whom they wait for, from working.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many agents of one depth work at once, unless the environment says otherwise.
const AT_ONCE: usize = 10;

/// The variable that says it.
pub const AT_ONCE_VARIABLE: &str = "WHIMBREL_AGENTS_AT_ONCE";

/// How many may wait.
const MOST_WAITING: usize = 1_000;

/// How deep agents may start agents: the main one's are at depth 1.
const DEEPEST: usize = 4;

/// The places of a session. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Places {
    levels: Arc<[Arc<Semaphore>]>,
    waiting: Arc<AtomicUsize>,
}

/// A claim to a place.
#[derive(Debug)]
pub struct Ticket {
    level: Arc<Semaphore>,
    waiting: Arc<AtomicUsize>,
}

/// A place that is taken; given back when it is dropped.
pub type Taken = OwnedSemaphorePermit;

/// Why there is no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoPlace {
    /// Too deep.
    #[error(
        "An agent at this depth ({DEEPEST}) cannot start another one. Do it yourself, or report back what is to be done."
    )]
    TooDeep,
    /// Too many wait already.
    #[error(
        "{MOST_WAITING} agents wait already for others to end. Wait for their reports before you start more."
    )]
    TooMany,
}

impl Places {
    /// Places for this many at once; none means the usual number.
    pub fn new(at_once: Option<usize>) -> Self {
        let at_once = at_once.unwrap_or(AT_ONCE).clamp(1, Semaphore::MAX_PERMITS);
        let levels = (0..DEEPEST).map(|_| Arc::new(Semaphore::new(at_once))).collect();
        Self { levels, waiting: Arc::default() }
    }

    /// Claims a place for an agent at a depth, from 1.
    pub fn claim(&self, depth: usize) -> Result<Ticket, NoPlace> {
        let level = depth.checked_sub(1).and_then(|at| self.levels.get(at)).ok_or(NoPlace::TooDeep)?;
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= MOST_WAITING {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            return Err(NoPlace::TooMany);
        }
        Ok(Ticket { level: Arc::clone(level), waiting: Arc::clone(&self.waiting) })
    }
}

impl Ticket {
    /// Waits for the place. None if there will never be one.
    pub async fn take(self) -> Option<Taken> {
        Arc::clone(&self.level).acquire_owned().await.ok()
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn who_comes_first_works_first() {
        let places = Places::new(Some(2));
        let mut taken: Vec<_> =
            (0..2).map(|_| places.claim(1).unwrap().take().now_or_never().unwrap().unwrap()).collect();
        let mut waiting: Vec<_> = (0..3).map(|_| Box::pin(places.claim(1).unwrap().take())).collect();
        for one in &mut waiting {
            assert!(one.now_or_never().is_none(), "two work already");
        }
        taken.pop();
        let served: Vec<bool> = waiting.iter_mut().rev().map(|one| one.now_or_never().is_some()).collect();
        assert_eq!(served, [false, false, true], "the first of those who wait");
        assert!(places.claim(2).unwrap().take().now_or_never().is_some(), "another depth has its own");
    }

    #[test]
    fn there_is_an_end_to_depth_and_number() {
        let places = Places::new(Some(1));
        assert_eq!(places.claim(DEEPEST + 1).unwrap_err(), NoPlace::TooDeep);
        let tickets: Vec<_> = (0..MOST_WAITING).map(|_| places.claim(1).unwrap()).collect();
        assert_eq!(places.claim(1).unwrap_err(), NoPlace::TooMany);
        drop(tickets);
        assert!(places.claim(1).is_ok());
    }
}
