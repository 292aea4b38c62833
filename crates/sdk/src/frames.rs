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
use crate::error::OpenError;
use crate::frame_size::estimate_size;
use crate::turn_tracker::abandoned::AbandonedTurn;
use crate::turn_tracker::{FrameRole, SessionActivity};
use crate::unread_output::{UnreadOutput, UnreadOutputs};

/// Stream of frames from the agent. It ends when the run has ended. Dropping it stops the run.
///
/// Unread frames are queued in memory, up to about [`Agent::unread_limit`](crate::Agent::unread_limit) bytes. Below the
/// limit nothing waits for the reader: permission requests are answered and control requests return although no frame
/// is read. Beyond it the engine is slowed down until frames are read, and so are its own requests, which are queued
/// behind them; a control request still gets its reply. Live output never counts much: the unread output of a call is
/// joined to one frame of at most 64 KiB.
#[must_use = "dropping the frames stops the run"]
pub struct Frames {
    receiver: mpsc::UnboundedReceiver<UnreadFrame>,
    client: Arc<EngineClient>,
    /// Dropped turns that have no result yet; their frames are skipped.
    abandoned: Vec<AbandonedTurn>,
    activity: SessionActivity,
    replays: Replays,
}

/// Whether the caller sees the prompts that the engine replays. [`Turn`](crate::Turn) needs them in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Replays {
    Shown,
    Hidden,
}

/// A queued frame and its estimated size.
struct UnreadFrame {
    item: UnreadItem,
    bytes: usize,
}

enum UnreadItem {
    Frame(Result<Frame, Error>),
    /// Live output, to which more may be joined.
    Output(UnreadOutput),
}

/// Sending end of the queue that [`Frames`] reads.
pub(crate) struct FrameQueue {
    frames: mpsc::UnboundedSender<UnreadFrame>,
    outputs: UnreadOutputs,
    client: Arc<EngineClient>,
}

/// Creates both ends. This channel allocates only for queued frames, and the queues of most sessions are empty.
pub(crate) fn frame_queue(client: &Arc<EngineClient>, replays: Replays) -> (FrameQueue, Frames) {
    let (frames, receiver) = mpsc::unbounded();
    let queue = FrameQueue { frames, outputs: UnreadOutputs::default(), client: Arc::clone(client) };
    let activity = SessionActivity::default();
    (queue, Frames { receiver, client: Arc::clone(client), abandoned: Vec::new(), activity, replays })
}

impl FrameQueue {
    /// Queues a frame without waiting. If the reader is gone, the run is stopping anyway.
    pub(crate) fn push(&mut self, frame: Result<Frame, Error>) {
        let bytes = frame.as_ref().map_or(0, estimate_size);
        let item = match frame {
            Ok(Frame::ToolOutput(chunk)) => match self.outputs.add(chunk) {
                Some(output) => UnreadItem::Output(output),
                None => return,
            },
            frame => UnreadItem::Frame(frame),
        };
        self.client.unread_limit.add_unread(bytes);
        let _ = self.frames.unbounded_send(UnreadFrame { item, bytes });
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
        loop {
            match ready!(self.poll_any(context)) {
                Some(Ok(frame)) if !self.shows(&frame) => {}
                item => return Poll::Ready(item),
            }
        }
    }

    /// Reads the reason why the session was not opened. It is the first error.
    pub(crate) async fn take_open_error(&mut self) -> OpenError {
        loop {
            match self.next().await {
                Some(Ok(_)) => {}
                Some(Err(error)) => return error.into(),
                None => return Error::SessionEnded.into(),
            }
        }
    }

    /// Returns whether the caller sees a frame.
    pub(crate) fn shows(&self, frame: &Frame) -> bool {
        self.replays == Replays::Shown || !matches!(frame, Frame::User(user) if user.is_replay == Some(true))
    }

    /// Skips the frames of a turn, which is interrupted.
    pub(crate) fn abandon(&mut self, turn: AbandonedTurn) {
        self.abandoned.push(turn);
    }

    /// Whether a turn runs, as far as the frames that were read show it.
    pub(crate) fn activity(&self) -> SessionActivity {
        self.activity
    }

    /// Polls for the next frame of any turn that was not abandoned, replayed prompts included.
    pub(crate) fn poll_any(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame, Error>>> {
        loop {
            self.abandoned.retain_mut(|turn| !turn.poll_taken_back(context));
            let item = ready!(self.poll_queue(context));
            let Some(Ok(frame)) = &item else { return Poll::Ready(item) };
            self.activity.record(frame);
            let mut is_skipped = false;
            self.abandoned.retain_mut(|turn| {
                let role = turn.record(frame);
                is_skipped |= role != FrameRole::Other;
                role != FrameRole::Result
            });
            if !is_skipped {
                return Poll::Ready(item);
            }
        }
    }

    fn poll_queue(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame, Error>>> {
        let Some(UnreadFrame { item, bytes }) = ready!(self.receiver.poll_next_unpin(context)) else {
            return Poll::Ready(None);
        };
        self.client.unread_limit.remove_unread(bytes);
        Poll::Ready(match item {
            UnreadItem::Frame(frame) => Some(frame),
            // Only the reader takes it.
            UnreadItem::Output(output) => output.take().map(|chunk| Ok(Frame::ToolOutput(chunk))),
        })
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
