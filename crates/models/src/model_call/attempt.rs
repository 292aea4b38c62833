//! One supervised attempt at a reply: timeouts, events out of order and a premature end become errors.

use std::pin::Pin;

use futures::stream::{BoxStream, StreamExt};
use tokio::time::{Instant, Sleep, sleep_until};

use whimbrel_wire::Block;

use super::stall_watchdog::{CallTimeouts, StallWatchdog};
use crate::error::{ModelError, ModelErrorKind};
use crate::event::ReplyEvent;
use crate::model::{RawEvents, ReplyItem};

/// An attempt in progress.
pub(super) struct Attempt {
    stream: BoxStream<'static, Result<ReplyItem, ModelError>>,
    progress: StreamProgress,
    watchdog: StallWatchdog,
    timer: Pin<Box<Sleep>>,
    raw_events: RawEvents,
    /// The provider's id of the request, once received.
    request_id: Option<String>,
}

/// Result of polling an attempt.
pub(super) enum AttemptStep {
    /// An item of the reply.
    Item(ReplyItem),
    /// The last item: the reply is complete.
    Final(ReplyItem),
    /// The attempt failed.
    Failed(ModelError),
}

impl Attempt {
    pub(super) fn new(
        stream: BoxStream<'static, Result<ReplyItem, ModelError>>,
        timeouts: CallTimeouts,
        raw_events: RawEvents,
    ) -> Self {
        let watchdog = StallWatchdog::new(timeouts, Instant::now());
        let timer = Box::pin(sleep_until(watchdog.deadline()));
        Self { stream, progress: StreamProgress::default(), watchdog, timer, raw_events, request_id: None }
    }

    /// Returns true if a block other than thinking is complete.
    pub(super) fn has_blocks(&self) -> bool {
        self.progress.has_content_block
    }

    /// Returns the next item, without plain keep-alives.
    pub(super) async fn next(&mut self) -> AttemptStep {
        loop {
            let accepted = match self.receive().await {
                Some(Ok(item)) => self.accept_item(item),
                Some(Err(error)) => Err(error),
                None => Err(self.progress.end_error()),
            };
            match accepted {
                Ok(Some(item)) if item.event == ReplyEvent::MessageStop => {
                    return AttemptStep::Final(item);
                }
                Ok(Some(item)) => return AttemptStep::Item(item),
                Ok(None) => {}
                // The reply has its stop reason; only `message_stop` is missing.
                Err(_) if self.progress.has_stop_reason => return AttemptStep::Final(self.synthetic_stop()),
                Err(error) => return AttemptStep::Failed(self.with_request_id(error)),
            }
        }
    }

    /// Adds the request id to an error that has none.
    fn with_request_id(&self, mut error: ModelError) -> ModelError {
        error.request_id = error.request_id.or_else(|| self.request_id.clone());
        error
    }

    fn accept_item(&mut self, item: ReplyItem) -> Result<Option<ReplyItem>, ModelError> {
        if let ReplyEvent::Accepted { request_id } = &item.event {
            self.request_id.clone_from(request_id);
        }
        self.progress.check_order(&item.event)?;
        // A keep-alive that is not an event of the provider only resets the watchdog.
        Ok(if item.event == ReplyEvent::Ping && item.raw.is_none() { None } else { Some(item) })
    }

    /// Waits for the next item, or for the watchdog timer.
    async fn receive(&mut self) -> Option<Result<ReplyItem, ModelError>> {
        loop {
            tokio::select! {
                biased;
                item = self.stream.next() => {
                    if let Some(Ok(item)) = &item {
                        self.watchdog.record_event(&item.event, Instant::now());
                        self.pull_timer_forward();
                    }
                    return item;
                }
                () = &mut self.timer => match self.watchdog.stall_error(Instant::now()) {
                    Some(error) => return Some(Err(error)),
                    // Something arrived since the timer was set.
                    None => self.timer.as_mut().reset(self.watchdog.deadline()),
                },
            }
        }
    }

    /// Moves the timer forward if the deadline is earlier now. Firing too early is harmless, firing too late is not.
    fn pull_timer_forward(&mut self) {
        let deadline = self.watchdog.deadline();
        if deadline < self.timer.deadline() {
            self.timer.as_mut().reset(deadline);
        }
    }

    fn synthetic_stop(&self) -> ReplyItem {
        self.raw_events.wrap(ReplyEvent::MessageStop)
    }
}

/// Progress of a reply, used to check the order of its events.
#[derive(Debug, Default)]
struct StreamProgress {
    has_started: bool,
    open_block: Option<usize>,
    finished_blocks: usize,
    /// Whether the open block is something other than thinking.
    open_has_content: bool,
    /// Whether a complete block is worth keeping; thinking alone is not.
    has_content_block: bool,
    /// Whether the stop reason has been received.
    has_stop_reason: bool,
}

impl StreamProgress {
    fn check_order(&mut self, event: &ReplyEvent) -> Result<(), ModelError> {
        self.has_started |= !event.is_keepalive();
        match event {
            ReplyEvent::BlockStart { index, block }
                if self.open_block.is_none() && *index >= self.finished_blocks =>
            {
                self.open_block = Some(*index);
                self.open_has_content =
                    !matches!(block, Block::Thinking { .. } | Block::RedactedThinking { .. });
            }
            ReplyEvent::BlockStop { index } if self.open_block == Some(*index) => {
                self.open_block = None;
                self.has_content_block |= self.open_has_content;
                self.finished_blocks = index + 1;
            }
            ReplyEvent::BlockDelta { index, .. } if self.open_block == Some(*index) => {}
            ReplyEvent::BlockStart { index, .. }
            | ReplyEvent::BlockDelta { index, .. }
            | ReplyEvent::BlockStop { index } => {
                let message = format!("The model's stream is out of order at block {index}.");
                return Err(ModelError::new(ModelErrorKind::Protocol, message));
            }
            ReplyEvent::MessageDelta { stop_reason, .. } => self.has_stop_reason |= stop_reason.is_some(),
            ReplyEvent::Accepted { .. }
            | ReplyEvent::MessageStart { .. }
            | ReplyEvent::MessageStop
            | ReplyEvent::Ping
            | ReplyEvent::Unknown => {}
        }
        Ok(())
    }

    fn end_error(&self) -> ModelError {
        if self.has_started {
            ModelError::new(ModelErrorKind::Cut, "The stream ended before the reply was complete.")
        } else {
            ModelError::new(ModelErrorKind::NotAStream, "The server's response is empty.")
        }
    }
}
