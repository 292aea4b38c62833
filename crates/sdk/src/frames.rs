//! The stream of frames from the agent, and the queue of those that are unread.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures::channel::mpsc;
use futures::{Stream, StreamExt};
use whimbrel_wire::Frame;
use whimbrel_wire::message::TurnResult;

use crate::client::EngineClient;
use crate::error::Error;
use crate::frame_size::estimate_size;

/// Stream of frames from the agent. It ends when the run has ended. Dropping it stops the run.
///
/// Unread frames are queued in memory, up to about [`Agent::unread_limit`](crate::Agent::unread_limit) bytes. Below the
/// limit nothing waits for the reader: permission requests are answered and control requests return although no frame
/// is read. Beyond it the engine is slowed down until frames are read, and so are its own requests, which are queued
/// behind them; a control request still gets its reply.
#[must_use = "dropping the frames stops the run"]
pub struct Frames {
    receiver: mpsc::UnboundedReceiver<UnreadFrame>,
    client: Arc<EngineClient>,
}

/// A queued frame and its estimated size.
struct UnreadFrame {
    frame: Result<Frame, Error>,
    bytes: usize,
}

/// Sending end of the queue that [`Frames`] reads.
pub(crate) struct FrameQueue {
    frames: mpsc::UnboundedSender<UnreadFrame>,
    client: Arc<EngineClient>,
}

/// Creates both ends. This channel allocates only for queued frames, and the queues of most sessions are empty.
pub(crate) fn frame_queue(client: &Arc<EngineClient>) -> (FrameQueue, Frames) {
    let (frames, receiver) = mpsc::unbounded();
    (FrameQueue { frames, client: Arc::clone(client) }, Frames { receiver, client: Arc::clone(client) })
}

impl FrameQueue {
    /// Queues a frame without waiting. If the reader is gone, the run is stopping anyway.
    pub(crate) fn push(&self, frame: Result<Frame, Error>) {
        let bytes = frame.as_ref().map_or(0, estimate_size);
        self.client.unread_limit.add_unread(bytes);
        let _ = self.frames.unbounded_send(UnreadFrame { frame, bytes });
    }
}

impl Frames {
    /// Returns the next frame; `None` when the run has ended.
    pub async fn next(&mut self) -> Option<Result<Frame, Error>> {
        std::future::poll_fn(|context| self.poll_frame(context)).await
    }

    /// Returns the next result; skips the frames before it.
    pub async fn result(&mut self) -> Result<TurnResult, Error> {
        loop {
            match self.next().await {
                Some(Ok(Frame::Result(result))) => return Ok(*result),
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(error),
                None => return Err(Error::SessionEnded),
            }
        }
    }

    fn poll_frame(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame, Error>>> {
        let Some(UnreadFrame { frame, bytes }) = ready!(self.receiver.poll_next_unpin(context)) else {
            return Poll::Ready(None);
        };
        self.client.unread_limit.remove_unread(bytes);
        Poll::Ready(Some(frame))
    }
}

impl Stream for Frames {
    type Item = Result<Frame, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_frame(context)
    }
}

impl Drop for Frames {
    fn drop(&mut self) {
        self.client.stop.cancel();
    }
}

impl fmt::Debug for Frames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Frames").finish_non_exhaustive()
    }
}
