//! One after the other: whoever wants to do something joins a line and waits until all before are done.

use tokio::sync::oneshot::{self, error::TryRecvError};

/// A line of those who wait. It costs nothing while nobody does.
#[derive(Debug, Default)]
pub(crate) struct OneByOne {
    last: Option<Ahead>,
}

/// A place in a line. Whoever drops it is done, or has given up.
#[derive(Debug)]
pub(crate) struct Place {
    ahead: Option<Ahead>,
    behind: Option<oneshot::Sender<Ahead>>,
}

/// Somebody who is to be waited for. If they give up, they say whom they waited for.
#[derive(Debug)]
struct Ahead(oneshot::Receiver<Ahead>);

impl OneByOne {
    /// Joins the line at its end.
    pub(crate) fn join(&mut self) -> Place {
        let (behind, last) = oneshot::channel();
        Place { ahead: self.last.replace(Ahead(last)), behind: Some(behind) }
    }

    /// Whether nobody is in the line.
    pub(crate) fn is_empty(&mut self) -> bool {
        while let Some(last) = &mut self.last {
            match last.0.try_recv() {
                Ok(ahead) => self.last = Some(ahead),
                Err(TryRecvError::Empty) => return false,
                Err(TryRecvError::Closed) => self.last = None,
            }
        }
        true
    }
}

impl Place {
    /// Waits until it is the first. Can be left and taken up again.
    pub(crate) async fn comes_first(&mut self) {
        while let Some(ahead) = &mut self.ahead {
            self.ahead = (&mut ahead.0).await.ok();
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let (Some(ahead), Some(behind)) = (self.ahead.take(), self.behind.take()) {
            // Nobody may wait behind.
            let _ = behind.send(ahead);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn is_first(place: &mut Place) -> bool {
        place.comes_first().now_or_never().is_some()
    }

    #[test]
    fn each_comes_when_all_before_are_done() {
        let mut line = OneByOne::default();
        assert!(line.is_empty());
        let (mut one, mut two, mut three) = (line.join(), line.join(), line.join());
        assert!(is_first(&mut one) && !is_first(&mut two) && !is_first(&mut three));
        drop(one);
        assert!(is_first(&mut two) && !is_first(&mut three));
        drop(two);
        assert!(is_first(&mut three) && !line.is_empty());
        drop(three);
        assert!(line.is_empty());
    }

    #[test]
    fn who_gives_up_lets_nobody_pass() {
        let mut line = OneByOne::default();
        let (one, two, mut three) = (line.join(), line.join(), line.join());
        drop(two);
        assert!(!is_first(&mut three), "the first is not done");
        drop(one);
        assert!(is_first(&mut three));
        let four = line.join();
        drop(four);
        assert!(!line.is_empty(), "the one before who gave up is still there");
        drop(three);
        assert!(line.is_empty());
    }
}
