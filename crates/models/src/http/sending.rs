//! A request body in shared pieces that is sent without being copied, and tells how far it has come.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

/// Large pieces are handed over in slices of this size, so that progress can be seen.
const SLICE: usize = 64 * 1024;

/// A request body: pieces that are sent one after the other.
#[derive(Debug, Clone, Default)]
pub struct Pieces(Vec<Bytes>);

impl From<Vec<Bytes>> for Pieces {
    fn from(pieces: Vec<Bytes>) -> Self {
        Self(pieces)
    }
}

impl From<Bytes> for Pieces {
    fn from(piece: Bytes) -> Self {
        Self(vec![piece])
    }
}

impl From<String> for Pieces {
    fn from(text: String) -> Self {
        Self(vec![text.into()])
    }
}

impl From<Vec<u8>> for Pieces {
    fn from(bytes: Vec<u8>) -> Self {
        Self(vec![bytes.into()])
    }
}

impl Pieces {
    /// The body to send, and how far it has come. Boxed, as each connection keeps room for 32 requests in line.
    pub(super) fn sending(self) -> (Box<Sending>, Progress) {
        let left: u64 = self.0.iter().map(|piece| piece.len() as u64).sum();
        let counter = Arc::new(AtomicU64::new(left));
        let pieces = self.0.into_iter().filter(|piece| !piece.is_empty()).collect();
        (Box::new(Sending { pieces, left, counter: counter.clone() }), Progress { counter })
    }
}

/// A body on its way.
pub(super) struct Sending {
    pieces: VecDeque<Bytes>,
    left: u64,
    counter: Arc<AtomicU64>,
}

/// How many bytes of a body have not been taken yet.
pub(super) struct Progress {
    counter: Arc<AtomicU64>,
}

impl Progress {
    /// Waits until nothing of the body has been taken for a whole period; never, once all of it has.
    pub(super) async fn stuck(&self, period: Duration) {
        let mut before = u64::MAX;
        loop {
            let left = self.counter.load(Ordering::Relaxed);
            if left == 0 {
                return std::future::pending().await;
            }
            if left == before {
                return;
            }
            before = left;
            tokio::time::sleep(period).await;
        }
    }
}

impl Body for Sending {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let slice = match self.pieces.front_mut() {
            None => return Poll::Ready(None),
            Some(piece) if piece.len() > SLICE => piece.split_to(SLICE),
            Some(_) => self.pieces.pop_front().unwrap_or_default(),
        };
        self.left -= slice.len() as u64;
        self.counter.store(self.left, Ordering::Relaxed);
        Poll::Ready(Some(Ok(Frame::data(slice))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_is_known_and_large_pieces_go_in_slices() {
        let pieces = vec![Bytes::from_static(b"ab"), Bytes::new(), Bytes::from(vec![b'x'; SLICE + 1])];
        let (mut body, _) = Pieces::from(pieces).sending();
        assert_eq!(body.size_hint().exact(), Some(SLICE as u64 + 3));
        let mut sizes = Vec::new();
        let mut context = Context::from_waker(std::task::Waker::noop());
        while let Poll::Ready(Some(Ok(frame))) = Pin::new(&mut body).poll_frame(&mut context) {
            sizes.push(frame.into_data().unwrap().len());
        }
        assert_eq!(sizes, [2, SLICE, 1]);
        assert!(body.is_end_stream());
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_is_not_taken_is_stuck_and_one_that_is_taken_never_is() {
        let period = Duration::from_secs(60);
        let (_waiting, progress) = Pieces::from(String::from("abc")).sending();
        assert!(tokio::time::timeout(period * 3, progress.stuck(period)).await.is_ok());

        let (mut taken, progress) = Pieces::from(String::from("abc")).sending();
        let mut context = Context::from_waker(std::task::Waker::noop());
        let _ = Pin::new(&mut taken).poll_frame(&mut context);
        assert!(tokio::time::timeout(period * 3, progress.stuck(period)).await.is_err());
    }
}
