//! One after the other: whoever wants to do something joins a line and waits until all before are done.

use tokio::sync::oneshot::{self, error::TryRecvError};

/// A line of those who wait. It costs nothing while nobody does.
#[derive(Debug, Default)]
pub(crate) struct FifoLock {
    tail: Option<Predecessor>,
}

/// A place in a line. Whoever drops it is done, or has given up.
#[derive(Debug)]
pub(crate) struct FifoSlot {
    predecessor: Option<Predecessor>,
    successor: Option<oneshot::Sender<Predecessor>>,
}

/// Somebody who is to be waited for. If they give up, they say whom they waited for.
#[derive(Debug)]
struct Predecessor(oneshot::Receiver<Predecessor>);

impl FifoLock {
    /// Joins the line at its end.
    pub(crate) fn enqueue(&mut self) -> FifoSlot {
        let (behind, last) = oneshot::channel();
        FifoSlot { predecessor: self.tail.replace(Predecessor(last)), successor: Some(behind) }
    }

    /// Whether nobody is in the line.
    pub(crate) fn is_free(&mut self) -> bool {
        while let Some(last) = &mut self.tail {
            match last.0.try_recv() {
                Ok(ahead) => self.tail = Some(ahead),
                Err(TryRecvError::Empty) => return false,
                Err(TryRecvError::Closed) => self.tail = None,
            }
        }
        true
    }
}

impl FifoSlot {
    /// Waits until it is the first. Can be left and taken up again.
    pub(crate) async fn acquire(&mut self) {
        while let Some(ahead) = &mut self.predecessor {
            self.predecessor = (&mut ahead.0).await.ok();
        }
    }
}

impl Drop for FifoSlot {
    fn drop(&mut self) {
        if let (Some(ahead), Some(behind)) = (self.predecessor.take(), self.successor.take()) {
            // Nobody may wait behind.
            let _ = behind.send(ahead);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn is_acquired(place: &mut FifoSlot) -> bool {
        place.acquire().now_or_never().is_some()
    }

    #[test]
    fn each_comes_when_all_before_are_done() {
        let mut line = FifoLock::default();
        assert!(line.is_free());
        let (mut one, mut two, mut three) = (line.enqueue(), line.enqueue(), line.enqueue());
        assert!(is_acquired(&mut one) && !is_acquired(&mut two) && !is_acquired(&mut three));
        drop(one);
        assert!(is_acquired(&mut two) && !is_acquired(&mut three));
        drop(two);
        assert!(is_acquired(&mut three) && !line.is_free());
        drop(three);
        assert!(line.is_free());
    }

    #[test]
    fn who_gives_up_lets_nobody_pass() {
        let mut line = FifoLock::default();
        let (one, two, mut three) = (line.enqueue(), line.enqueue(), line.enqueue());
        drop(two);
        assert!(!is_acquired(&mut three), "the first is not done");
        drop(one);
        assert!(is_acquired(&mut three));
        let four = line.enqueue();
        drop(four);
        assert!(!line.is_free(), "the one before who gave up is still there");
        drop(three);
        assert!(line.is_free());
    }
}
