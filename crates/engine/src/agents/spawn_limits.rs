//! Limits on concurrent agents. Excess agents queue in FIFO order. Each depth of the tree has its own semaphore, so a
//! parent that waits for a child cannot deadlock it. Also decides at which depth agents may run in the background.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Default number of concurrent agents per depth.
const DEFAULT_CONCURRENCY: usize = 10;

/// Environment variable that overrides it.
pub const CONCURRENCY_VARIABLE: &str = "WHIMBREL_AGENTS_AT_ONCE";

/// Limit on queued agents.
const MAX_WAITING: usize = 1_000;

/// Limit on nesting; subagents of the main agent have depth 1.
const MAX_DEPTH: usize = 4;

/// Returns whether an agent at a depth may run in the background. Only agents started by the main agent may: deeper
/// ones report to their parent, not to the session.
pub(super) fn may_run_in_background(depth: usize) -> bool {
    depth == 1
}

/// Limits of a session. Cheap to clone.
#[derive(Debug, Clone)]
pub struct SpawnLimits {
    semaphores: Arc<[Arc<Semaphore>]>,
    waiting_count: Arc<AtomicUsize>,
}

/// A position in the queue of one depth.
#[derive(Debug)]
pub struct SpawnReservation {
    semaphore: Arc<Semaphore>,
    waiting_count: Arc<AtomicUsize>,
}

/// A running agent's permit; released on drop.
pub type SpawnPermit = OwnedSemaphorePermit;

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SpawnLimitError {
    #[error(
        "An agent at nesting depth {MAX_DEPTH} cannot start another agent. Do the task yourself, or report what is left to do."
    )]
    TooDeep,
    #[error(
        "{MAX_WAITING} agents are already waiting for a free slot. Wait for reports before you start more."
    )]
    QueueFull,
}

impl SpawnLimits {
    /// Creates limits with this concurrency; `None` means the default.
    pub fn new(max_concurrent: Option<usize>) -> Self {
        let max_concurrent = max_concurrent.unwrap_or(DEFAULT_CONCURRENCY).clamp(1, Semaphore::MAX_PERMITS);
        let semaphores = (0..MAX_DEPTH).map(|_| Arc::new(Semaphore::new(max_concurrent))).collect();
        Self { semaphores, waiting_count: Arc::default() }
    }

    /// Reserves a position for an agent at a depth, from 1.
    pub fn reserve(&self, depth: usize) -> Result<SpawnReservation, SpawnLimitError> {
        let semaphore = depth
            .checked_sub(1)
            .and_then(|index| self.semaphores.get(index))
            .ok_or(SpawnLimitError::TooDeep)?;
        if self.waiting_count.fetch_add(1, Ordering::Relaxed) >= MAX_WAITING {
            self.waiting_count.fetch_sub(1, Ordering::Relaxed);
            return Err(SpawnLimitError::QueueFull);
        }
        Ok(SpawnReservation {
            semaphore: Arc::clone(semaphore),
            waiting_count: Arc::clone(&self.waiting_count),
        })
    }
}

impl SpawnReservation {
    /// Waits for a permit; `None` if the semaphore is closed.
    pub async fn acquire(self) -> Option<SpawnPermit> {
        Arc::clone(&self.semaphore).acquire_owned().await.ok()
    }
}

impl Drop for SpawnReservation {
    fn drop(&mut self) {
        self.waiting_count.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn agents_run_in_fifo_order() {
        let limits = SpawnLimits::new(Some(2));
        let mut permits: Vec<_> =
            (0..2).map(|_| limits.reserve(1).unwrap().acquire().now_or_never().unwrap().unwrap()).collect();
        let mut waiting: Vec<_> = (0..3).map(|_| Box::pin(limits.reserve(1).unwrap().acquire())).collect();
        for acquire in &mut waiting {
            assert!(acquire.now_or_never().is_none(), "both permits are held");
        }
        permits.pop();
        let acquired: Vec<bool> =
            waiting.iter_mut().rev().map(|acquire| acquire.now_or_never().is_some()).collect();
        assert_eq!(acquired, [false, false, true], "first in the queue");
        assert!(
            limits.reserve(2).unwrap().acquire().now_or_never().is_some(),
            "another depth has its own semaphore"
        );
    }

    #[test]
    fn only_agents_of_the_main_agent_run_in_the_background() {
        let depths: Vec<usize> = (0..=MAX_DEPTH).filter(|depth| may_run_in_background(*depth)).collect();
        assert_eq!(depths, [1]);
    }

    #[test]
    fn depth_and_queue_are_limited() {
        let limits = SpawnLimits::new(Some(1));
        assert_eq!(limits.reserve(MAX_DEPTH + 1).unwrap_err(), SpawnLimitError::TooDeep);
        let reservations: Vec<_> = (0..MAX_WAITING).map(|_| limits.reserve(1).unwrap()).collect();
        assert_eq!(limits.reserve(1).unwrap_err(), SpawnLimitError::QueueFull);
        drop(reservations);
        assert!(limits.reserve(1).is_ok());
    }
}
