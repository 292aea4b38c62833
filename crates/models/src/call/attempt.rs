//! One attempt at a reply under watch: silence, disorder and an early end become faults.

use std::pin::Pin;

use futures::stream::{BoxStream, StreamExt};
use tokio::time::{Instant, Sleep, sleep_until};

use whimbrel_wire::Block;

use super::Timing;
use crate::event::Event;
use crate::fault::{Fault, FaultKind};
use crate::model::Delta;

/// An attempt that is under way.
pub(super) struct Attempt {
    stream: BoxStream<'static, Result<Delta, Fault>>,
    course: Course,
    watch: Watch,
    alarm: Pin<Box<Sleep>>,
    raw_events: bool,
    /// The provider's id of the request, once it has said it.
    request_id: Option<String>,
}

/// What was heard.
pub(super) enum Heard {
    /// An event.
    Delta(Delta),
    /// The last event: the reply is complete.
    Last(Delta),
    /// The attempt has failed.
    Fault(Fault),
}

impl Attempt {
    pub(super) fn new(
        stream: BoxStream<'static, Result<Delta, Fault>>,
        timing: Timing,
        raw_events: bool,
    ) -> Self {
        let watch = Watch::new(timing, Instant::now());
        let alarm = Box::pin(sleep_until(watch.deadline()));
        Self { stream, course: Course::default(), watch, alarm, raw_events, request_id: None }
    }

    /// Whether a block has been completed.
    pub(super) fn has_blocks(&self) -> bool {
        self.course.solid
    }

    /// The next event that means something.
    pub(super) async fn next(&mut self) -> Heard {
        loop {
            let heard = match self.receive().await {
                Some(Ok(delta)) => self.take(delta),
                Some(Err(fault)) => Err(fault),
                None => Err(self.course.broken_off()),
            };
            match heard {
                Ok(Some(delta)) if delta.event == Event::MessageStop => return Heard::Last(delta),
                Ok(Some(delta)) => return Heard::Delta(delta),
                Ok(None) => {}
                // All is said; only the farewell is missing.
                Err(_) if self.course.stopped => return Heard::Last(self.farewell()),
                Err(fault) => return Heard::Fault(self.signed(fault)),
            }
        }
    }

    /// A fault with the id of the request that it happened to.
    fn signed(&self, mut fault: Fault) -> Fault {
        fault.request_id = fault.request_id.or_else(|| self.request_id.clone());
        fault
    }

    fn take(&mut self, delta: Delta) -> Result<Option<Delta>, Fault> {
        if let Event::Accepted { request_id } = &delta.event {
            self.request_id.clone_from(request_id);
        }
        self.course.take(&delta.event)?;
        // A sign of life that is nobody's event has done its duty here.
        Ok(if delta.event == Event::Ping && delta.raw.is_none() { None } else { Some(delta) })
    }

    /// Waits for the next item, or for the alarm if silence lasts too long.
    async fn receive(&mut self) -> Option<Result<Delta, Fault>> {
        loop {
            tokio::select! {
                biased;
                item = self.stream.next() => {
                    if let Some(Ok(delta)) = &item {
                        self.watch.heard(&delta.event, Instant::now());
                        self.set_alarm_back();
                    }
                    return item;
                }
                () = &mut self.alarm => match self.watch.overdue(Instant::now()) {
                    Some(fault) => return Some(Err(fault)),
                    // Something was heard since the alarm was set.
                    None => self.alarm.as_mut().reset(self.watch.deadline()),
                },
            }
        }
    }

    /// The alarm may ring too early, which costs nothing, but not too late.
    fn set_alarm_back(&mut self) {
        let deadline = self.watch.deadline();
        if deadline < self.alarm.deadline() {
            self.alarm.as_mut().reset(deadline);
        }
    }

    fn farewell(&self) -> Delta {
        let event = Event::MessageStop;
        Delta { raw: if self.raw_events { event.raw() } else { None }, event }
    }
}

/// How far a reply has come, as far as its order is concerned.
#[derive(Debug, Default)]
struct Course {
    begun: bool,
    open: Option<usize>,
    finished: usize,
    /// Whether the open block is more than a thought.
    open_is_solid: bool,
    /// Whether a block is complete that stands by itself: thinking alone does not.
    solid: bool,
    /// The model has given its reason to stop.
    stopped: bool,
}

impl Course {
    fn take(&mut self, event: &Event) -> Result<(), Fault> {
        self.begun |= !event.is_sign_of_life();
        match event {
            Event::BlockStart { index, block } if self.open.is_none() && *index >= self.finished => {
                self.open = Some(*index);
                self.open_is_solid =
                    !matches!(block, Block::Thinking { .. } | Block::RedactedThinking { .. });
            }
            Event::BlockStop { index } if self.open == Some(*index) => {
                self.open = None;
                self.solid |= self.open_is_solid;
                self.finished = index + 1;
            }
            Event::BlockDelta { index, .. } if self.open == Some(*index) => {}
            Event::BlockStart { index, .. }
            | Event::BlockDelta { index, .. }
            | Event::BlockStop { index } => {
                let message = format!("The model's stream is out of order at block {index}.");
                return Err(Fault::new(FaultKind::Protocol, message));
            }
            Event::MessageDelta { stop_reason, .. } => self.stopped |= stop_reason.is_some(),
            Event::Accepted { .. }
            | Event::MessageStart { .. }
            | Event::MessageStop
            | Event::Ping
            | Event::Unknown => {}
        }
        Ok(())
    }

    fn broken_off(&self) -> Fault {
        if self.begun {
            Fault::new(FaultKind::Cut, "The stream ended before the reply did.")
        } else {
            Fault::new(FaultKind::NotAStream, "The server's answer is empty.")
        }
    }
}

/// When something was last heard.
#[derive(Debug)]
struct Watch {
    timing: Timing,
    began: Instant,
    /// The last sign of life; none before the answer began.
    bytes: Option<Instant>,
    event: Instant,
}

impl Watch {
    fn new(timing: Timing, now: Instant) -> Self {
        Self { timing, began: now, bytes: None, event: now }
    }

    fn heard(&mut self, event: &Event, now: Instant) {
        // The time until the answer begins does not count against its events.
        if self.bytes.is_none() || !event.is_sign_of_life() {
            self.event = now;
        }
        self.bytes = Some(now);
    }

    fn deadline(&self) -> Instant {
        let Timing { no_answer, no_bytes, no_events, whole } = self.timing;
        let silence = match self.bytes {
            None => self.began + no_answer,
            Some(bytes) => (bytes + no_bytes).min(self.event + no_events),
        };
        silence.min(self.began + whole)
    }

    fn overdue(&self, now: Instant) -> Option<Fault> {
        if now < self.deadline() {
            return None;
        }
        let Timing { no_answer, no_bytes, whole, .. } = self.timing;
        let seconds = |since: Instant| now.duration_since(since).as_secs_f32().round();
        let message = match self.bytes {
            _ if now >= self.began + whole => {
                format!("The reply was not complete after {} s.", seconds(self.began))
            }
            None => {
                format!("The model's endpoint did not answer within {} s.", no_answer.as_secs_f32().round())
            }
            Some(bytes) if now >= bytes + no_bytes => {
                format!("Nothing came from the model for {} s.", seconds(bytes))
            }
            Some(_) => format!("Only signs of life came from the model for {} s.", seconds(self.event)),
        };
        Some(Fault::new(FaultKind::Stalled, message))
    }
}
