//! Timeouts of a reply. Detects a stalled one: no response, no data, only keep-alives, or one that takes too long.

use std::time::Duration;

use tokio::time::Instant;

use crate::error::{ModelError, ModelErrorKind};
use crate::event::ReplyEvent;

/// Timeouts of one attempt. An attempt that exceeds one of them has stalled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallTimeouts {
    /// Until the response begins.
    pub response_start: Duration,
    /// Between two chunks of bytes.
    pub bytes: Duration,
    /// Between two events with content; keep-alives do not count.
    pub events: Duration,
    /// For the whole attempt.
    pub total: Duration,
}

impl Default for CallTimeouts {
    fn default() -> Self {
        Self {
            response_start: Duration::from_secs(300),
            bytes: Duration::from_secs(180),
            events: Duration::from_secs(300),
            total: Duration::from_secs(3600),
        }
    }
}

/// Times of the last activity, compared with the timeouts.
#[derive(Debug)]
pub(super) struct StallWatchdog {
    timeouts: CallTimeouts,
    started_at: Instant,
    /// Last bytes received; `None` before the response began.
    last_bytes: Option<Instant>,
    last_event: Instant,
}

impl StallWatchdog {
    pub(super) fn new(timeouts: CallTimeouts, now: Instant) -> Self {
        Self { timeouts, started_at: now, last_bytes: None, last_event: now }
    }

    pub(super) fn record_event(&mut self, event: &ReplyEvent, now: Instant) {
        // The time until the response begins does not count against the event timeout.
        if self.last_bytes.is_none() || !event.is_keepalive() {
            self.last_event = now;
        }
        self.last_bytes = Some(now);
    }

    pub(super) fn deadline(&self) -> Instant {
        let CallTimeouts { response_start, bytes, events, total } = self.timeouts;
        let silence = match self.last_bytes {
            None => self.started_at + response_start,
            Some(last_bytes) => (last_bytes + bytes).min(self.last_event + events),
        };
        silence.min(self.started_at + total)
    }

    pub(super) fn stall_error(&self, now: Instant) -> Option<ModelError> {
        if now < self.deadline() {
            return None;
        }
        let CallTimeouts { response_start, bytes, total, .. } = self.timeouts;
        let seconds = |since: Instant| now.duration_since(since).as_secs_f32().round();
        let message = match self.last_bytes {
            _ if now >= self.started_at + total => {
                format!("The reply was not complete after {} s.", seconds(self.started_at))
            }
            None => {
                format!(
                    "The model's endpoint did not answer within {} s.",
                    response_start.as_secs_f32().round()
                )
            }
            Some(last_bytes) if now >= last_bytes + bytes => {
                format!("The model sent no data for {} s.", seconds(last_bytes))
            }
            Some(_) => format!("The model sent only keep-alives for {} s.", seconds(self.last_event)),
        };
        Some(ModelError::new(ModelErrorKind::Stalled, message))
    }
}
