//! Turns that were dropped: their frames are skipped until their result.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::sync::oneshot;
use whimbrel_wire::Frame;
use whimbrel_wire::control::{Interrupt, InterruptReply, Response};

use super::{FrameRole, TurnTracker};

/// A turn whose frames are not wanted, and the reply to its interruption.
#[derive(Debug)]
pub(crate) struct AbandonedTurn {
    tracker: TurnTracker,
    /// `None` once it was read.
    reply: Option<oneshot::Receiver<Response>>,
}

impl AbandonedTurn {
    pub(crate) fn new(tracker: TurnTracker, reply: Option<oneshot::Receiver<Response>>) -> Self {
        Self { tracker, reply }
    }

    /// Polls whether no result will come, because the prompt was taken back before its turn began.
    pub(crate) fn poll_taken_back(&mut self, context: &mut Context<'_>) -> bool {
        let Some(reply) = &mut self.reply else { return false };
        let Poll::Ready(response) = Pin::new(reply).poll(context) else { return false };
        self.reply = None;
        let reply: Option<InterruptReply> =
            response.ok().and_then(|response| response.parse_reply::<Interrupt>().ok());
        reply.is_some_and(|reply| self.tracker.is_cancelled_by(&reply))
    }

    /// Records a frame and returns its role.
    pub(crate) fn record(&mut self, frame: &Frame) -> FrameRole {
        self.tracker.record(frame)
    }
}
