//! One supervised attempt at a reply: timeouts, events out of order and a premature end become errors.

use std::pin::Pin;

use futures::stream::{BoxStream, StreamExt};
use tokio::time::{Instant, Sleep, sleep_until};

use whimbrel_wire::Block;

use super::CallTimeouts;
use crate::error::{ModelError, ModelErrorKind};
use crate::event::ReplyEvent;
use crate::model::ReplyItem;

/// An attempt in progress.
pub(super) struct Attempt {
    stream: BoxStream<'static, Result<ReplyItem, ModelError>>,
    progress: StreamProgress,
    watchdog: Watchdog,
    timer: Pin<Box<Sleep>>,
    raw_events: bool,
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
        timing: CallTimeouts,
        raw_events: bool,
    ) -> Self {
        let watchdog = Watchdog::new(timing, Instant::now());
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
            let heard = match self.receive().await {
                Some(Ok(delta)) => self.accept_item(delta),
                Some(Err(fault)) => Err(fault),
                None => Err(self.progress.end_error()),
            };
            match heard {
                Ok(Some(delta)) if delta.event == ReplyEvent::MessageStop => {
                    return AttemptStep::Final(delta);
                }
                Ok(Some(delta)) => return AttemptStep::Item(delta),
                Ok(None) => {}
                // The reply has its stop reason; only `message_stop` is missing.
                Err(_) if self.progress.has_stop_reason => return AttemptStep::Final(self.synthetic_stop()),
                Err(fault) => return AttemptStep::Failed(self.with_request_id(fault)),
            }
        }
    }

    /// Adds the request id to an error that has none.
    fn with_request_id(&self, mut fault: ModelError) -> ModelError {
        fault.request_id = fault.request_id.or_else(|| self.request_id.clone());
        fault
    }

    fn accept_item(&mut self, delta: ReplyItem) -> Result<Option<ReplyItem>, ModelError> {
        if let ReplyEvent::Accepted { request_id } = &delta.event {
            self.request_id.clone_from(request_id);
        }
        self.progress.check_order(&delta.event)?;
        // A keep-alive that is not an event of the provider only resets the watchdog.
        Ok(if delta.event == ReplyEvent::Ping && delta.raw.is_none() { None } else { Some(delta) })
    }

    /// Waits for the next item, or for the watchdog timer.
    async fn receive(&mut self) -> Option<Result<ReplyItem, ModelError>> {
        loop {
            tokio::select! {
                biased;
                item = self.stream.next() => {
                    if let Some(Ok(delta)) = &item {
                        self.watchdog.record_event(&delta.event, Instant::now());
                        self.pull_timer_forward();
                    }
                    return item;
                }
                () = &mut self.timer => match self.watchdog.stall_error(Instant::now()) {
                    Some(fault) => return Some(Err(fault)),
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
        let event = ReplyEvent::MessageStop;
        ReplyItem { raw: if self.raw_events { event.to_raw_json() } else { None }, event }
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
            ModelError::new(ModelErrorKind::Cut, "The stream ended before the reply did.")
        } else {
            ModelError::new(ModelErrorKind::NotAStream, "The server's answer is empty.")
        }
    }
}

/// Times of the last activity, compared with the timeouts.
#[derive(Debug)]
struct Watchdog {
    timeouts: CallTimeouts,
    started_at: Instant,
    /// Last bytes received; `None` before the response began.
    last_bytes: Option<Instant>,
    last_event: Instant,
}

impl Watchdog {
    fn new(timeouts: CallTimeouts, now: Instant) -> Self {
        Self { timeouts, started_at: now, last_bytes: None, last_event: now }
    }

    fn record_event(&mut self, event: &ReplyEvent, now: Instant) {
        // The time until the response begins does not count against the event timeout.
        if self.last_bytes.is_none() || !event.is_keepalive() {
            self.last_event = now;
        }
        self.last_bytes = Some(now);
    }

    fn deadline(&self) -> Instant {
        let CallTimeouts { response_start: no_answer, bytes: no_bytes, events: no_events, total: whole } =
            self.timeouts;
        let silence = match self.last_bytes {
            None => self.started_at + no_answer,
            Some(bytes) => (bytes + no_bytes).min(self.last_event + no_events),
        };
        silence.min(self.started_at + whole)
    }

    fn stall_error(&self, now: Instant) -> Option<ModelError> {
        if now < self.deadline() {
            return None;
        }
        let CallTimeouts { response_start: no_answer, bytes: no_bytes, total: whole, .. } = self.timeouts;
        let seconds = |since: Instant| now.duration_since(since).as_secs_f32().round();
        let message = match self.last_bytes {
            _ if now >= self.started_at + whole => {
                format!("The reply was not complete after {} s.", seconds(self.started_at))
            }
            None => {
                format!("The model's endpoint did not answer within {} s.", no_answer.as_secs_f32().round())
            }
            Some(bytes) if now >= bytes + no_bytes => {
                format!("Nothing came from the model for {} s.", seconds(bytes))
            }
            Some(_) => format!("Only signs of life came from the model for {} s.", seconds(self.last_event)),
        };
        Some(ModelError::new(ModelErrorKind::Stalled, message))
    }
}
