//! What the agent says, and how it waits for its reader.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures::channel::mpsc;
use futures::{Stream, StreamExt};
use whimbrel_wire::Frame;
use whimbrel_wire::message::TurnResult;

use crate::error::Error;
use crate::client::EngineClient;
use crate::frame_size::estimate_size;

/// What the agent says, as a stream of frames. It ends when the run has ended. Dropping it stops the run.
///
/// Unread frames wait in memory, up to about [`Agent::unread_limit`](crate::Agent::unread_limit) bytes. Until then
/// nothing waits for the reader: permission questions are answered and control calls return although it reads nothing.
/// Beyond it the engine is slowed until some frames are read, and so are its questions, which stand behind them; a
/// control call gets its answer even then.
#[must_use = "dropping the frames stops the run"]
pub struct Frames {
    receiver: mpsc::UnboundedReceiver<UnreadFrame>,
    client: Arc<EngineClient>,
}

/// A frame that waits for its reader, and what it weighs.
struct UnreadFrame {
    frame: Result<Frame, Error>,
    bytes: usize,
}

/// Where frames are put for the reader.
pub(crate) struct FrameQueue {
    frames: mpsc::UnboundedSender<UnreadFrame>,
    client: Arc<EngineClient>,
}

/// Both ends. Of the channels at hand this one takes room only for what waits in it, and most sessions wait themselves.
pub(crate) fn frame_queue(line: &Arc<EngineClient>) -> (FrameQueue, Frames) {
    let (frames, shelf) = mpsc::unbounded();
    (FrameQueue { frames, client: Arc::clone(line) }, Frames { receiver: shelf, client: Arc::clone(line) })
}

impl FrameQueue {
    /// Puts a frame down; never waits. If the reader has gone the run is stopping anyway.
    pub(crate) fn push(&self, frame: Result<Frame, Error>) {
        let bytes = frame.as_ref().map_or(0, estimate_size);
        self.client.add_unread(bytes);
        let _ = self.frames.unbounded_send(UnreadFrame { frame, bytes });
    }
}

impl Frames {
    /// The next frame; none when the run has ended.
    pub async fn next(&mut self) -> Option<Result<Frame, Error>> {
        std::future::poll_fn(|context| self.poll_frame(context)).await
    }

    /// The next result; whatever comes before it is passed over.
    pub async fn result(&mut self) -> Result<TurnResult, Error> {
        loop {
            match self.next().await {
                Some(Ok(Frame::Result(result))) => return Ok(*result),
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(error),
                None => return Err(Error::Over),
            }
        }
    }

    fn poll_frame(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame, Error>>> {
        let Some(UnreadFrame { frame, bytes }) = ready!(self.receiver.poll_next_unpin(context)) else {
            return Poll::Ready(None);
        };
        self.client.remove_unread(bytes);
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
