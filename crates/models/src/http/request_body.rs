//! Request bodies in shared parts, sent without copying, with progress tracking.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

/// Large parts are sent in slices of this size, so that progress is visible.
const SLICE_BYTES: usize = 64 * 1024;

/// A request body: parts that are sent in order.
#[derive(Debug, Clone, Default)]
pub struct RequestBody(Vec<Bytes>);

impl From<Vec<Bytes>> for RequestBody {
    fn from(pieces: Vec<Bytes>) -> Self {
        Self(pieces)
    }
}

impl From<Bytes> for RequestBody {
    fn from(piece: Bytes) -> Self {
        Self(vec![piece])
    }
}

impl From<String> for RequestBody {
    fn from(text: String) -> Self {
        Self(vec![text.into()])
    }
}

impl From<Vec<u8>> for RequestBody {
    fn from(bytes: Vec<u8>) -> Self {
        Self(vec![bytes.into()])
    }
}

impl RequestBody {
    /// Returns the body and its progress. Boxed, because each connection reserves space for 32 queued requests.
    pub(super) fn into_sending(self) -> (Box<SendingBody>, SendProgress) {
        let left: u64 = self.0.iter().map(|piece| piece.len() as u64).sum();
        let counter = Arc::new(AtomicU64::new(left));
        let pieces = self.0.into_iter().filter(|piece| !piece.is_empty()).collect();
        (
            Box::new(SendingBody { pieces, remaining: left, counter: counter.clone() }),
            SendProgress { counter },
        )
    }
}

/// A body being sent.
pub(super) struct SendingBody {
    pieces: VecDeque<Bytes>,
    remaining: u64,
    counter: Arc<AtomicU64>,
}

/// Number of bytes of a body that have not been sent.
pub(super) struct SendProgress {
    counter: Arc<AtomicU64>,
}

impl SendProgress {
    /// Completes when no byte was sent for a whole period; never, once the body is sent.
    pub(super) async fn wait_until_stalled(&self, period: Duration) {
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

impl Body for SendingBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let slice = match self.pieces.front_mut() {
            None => return Poll::Ready(None),
            Some(piece) if piece.len() > SLICE_BYTES => piece.split_to(SLICE_BYTES),
            Some(_) => self.pieces.pop_front().unwrap_or_default(),
        };
        self.remaining -= slice.len() as u64;
        self.counter.store(self.remaining, Ordering::Relaxed);
        Poll::Ready(Some(Ok(Frame::data(slice))))
    }

    fn is_end_stream(&self) -> bool {
        self.remaining == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.remaining)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_is_known_and_large_parts_are_sliced() {
        let pieces = vec![Bytes::from_static(b"ab"), Bytes::new(), Bytes::from(vec![b'x'; SLICE_BYTES + 1])];
        let (mut body, _) = RequestBody::from(pieces).into_sending();
        assert_eq!(body.size_hint().exact(), Some(SLICE_BYTES as u64 + 3));
        let mut sizes = Vec::new();
        let mut context = Context::from_waker(std::task::Waker::noop());
        while let Poll::Ready(Some(Ok(frame))) = Pin::new(&mut body).poll_frame(&mut context) {
            sizes.push(frame.into_data().unwrap().len());
        }
        assert_eq!(sizes, [2, SLICE_BYTES, 1]);
        assert!(body.is_end_stream());
    }

    #[tokio::test(start_paused = true)]
    async fn only_an_unsent_body_stalls() {
        let period = Duration::from_secs(60);
        let (_waiting, progress) = RequestBody::from(String::from("abc")).into_sending();
        assert!(tokio::time::timeout(period * 3, progress.wait_until_stalled(period)).await.is_ok());

        let (mut taken, progress) = RequestBody::from(String::from("abc")).into_sending();
        let mut context = Context::from_waker(std::task::Waker::noop());
        let _ = Pin::new(&mut taken).poll_frame(&mut context);
        assert!(tokio::time::timeout(period * 3, progress.wait_until_stalled(period)).await.is_err());
    }
}
