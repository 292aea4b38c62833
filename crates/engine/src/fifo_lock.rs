//! FIFO lock: each holder waits until all earlier ones are dropped.

use tokio::sync::oneshot::{self, error::TryRecvError};

/// A FIFO lock. Unused, it allocates nothing.
#[derive(Debug, Default)]
pub(crate) struct FifoLock {
    tail: Option<Predecessor>,
}

/// A position in the queue. Dropping it releases the lock or leaves the queue.
#[derive(Debug)]
pub(crate) struct FifoSlot {
    predecessor: Option<Predecessor>,
    successor: Option<oneshot::Sender<Predecessor>>,
}

/// The previous slot. When it is dropped while still waiting, it hands over its own predecessor.
#[derive(Debug)]
struct Predecessor(oneshot::Receiver<Predecessor>);

impl FifoLock {
    /// Appends a slot to the queue.
    pub(crate) fn enqueue(&mut self) -> FifoSlot {
        let (successor, predecessor) = oneshot::channel();
        FifoSlot { predecessor: self.tail.replace(Predecessor(predecessor)), successor: Some(successor) }
    }

    /// Returns whether the queue is empty. Removes slots that were dropped.
    pub(crate) fn is_free(&mut self) -> bool {
        while let Some(last) = &mut self.tail {
            match last.0.try_recv() {
                Ok(predecessor) => self.tail = Some(predecessor),
                Err(TryRecvError::Empty) => return false,
                Err(TryRecvError::Closed) => self.tail = None,
            }
        }
        true
    }
}

impl FifoSlot {
    /// Waits until all earlier slots are dropped. Cancel-safe.
    pub(crate) async fn acquire(&mut self) {
        while let Some(predecessor) = &mut self.predecessor {
            self.predecessor = (&mut predecessor.0).await.ok();
        }
    }
}

impl Drop for FifoSlot {
    fn drop(&mut self) {
        if let (Some(predecessor), Some(successor)) = (self.predecessor.take(), self.successor.take()) {
            // There may be no successor.
            let _ = successor.send(predecessor);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn is_acquired(slot: &mut FifoSlot) -> bool {
        slot.acquire().now_or_never().is_some()
    }

    #[test]
    fn slots_are_acquired_in_order() {
        let mut lock = FifoLock::default();
        assert!(lock.is_free());
        let (mut one, mut two, mut three) = (lock.enqueue(), lock.enqueue(), lock.enqueue());
        assert!(is_acquired(&mut one) && !is_acquired(&mut two) && !is_acquired(&mut three));
        drop(one);
        assert!(is_acquired(&mut two) && !is_acquired(&mut three));
        drop(two);
        assert!(is_acquired(&mut three) && !lock.is_free());
        drop(three);
        assert!(lock.is_free());
    }

    #[test]
    fn abandoned_slot_does_not_let_successors_pass() {
        let mut lock = FifoLock::default();
        let (one, two, mut three) = (lock.enqueue(), lock.enqueue(), lock.enqueue());
        drop(two);
        assert!(!is_acquired(&mut three), "the first slot still holds the lock");
        drop(one);
        assert!(is_acquired(&mut three));
        let four = lock.enqueue();
        drop(four);
        assert!(!lock.is_free(), "the slot before the dropped one still holds the lock");
        drop(three);
        assert!(lock.is_free());
    }
}
