//! What wakes a session from within: background work, agents, timers, mail. One enum, one queue; the host's own lines come
//! by the link.

use serde_json::Map;
use tokio::sync::mpsc;
use whimbrel_wire::message::Origin;

use crate::tasks::TaskEvent;

/// Something that is posted to a session.
#[derive(Debug, Clone, PartialEq)]
pub enum InternalEvent {
    /// A command in the background began or ended.
    Task(Box<TaskEvent>),
    /// The model is to hear of something, in a turn of its own if none runs.
    Notification(Box<Notification>),
    /// Something has ended and there is nothing to tell: the session may have nothing left to wait for.
    RecheckIdle,
}

/// Something that the model is to hear of.
#[derive(Debug, Clone, PartialEq)]
pub struct Notification {
    /// What it reads.
    pub text: String,
    /// Where it comes from: `task-notification`, `peer`, `auto-continuation`, ...
    pub origin: Origin,
    /// Whether it is worth a turn of its own; otherwise it is told with what comes next.
    pub starts_turn: bool,
}

/// Where letters come from.
const PEER: &str = "peer";

/// The end of the queue that posts. Cheap to clone.
pub type EventSender = mpsc::UnboundedSender<InternalEvent>;

/// The end of the queue that the session takes from.
pub type EventReceiver = mpsc::UnboundedReceiver<InternalEvent>;

/// Both ends of a queue.
pub fn event_channel() -> (EventSender, EventReceiver) {
    mpsc::unbounded_channel()
}

impl Notification {
    /// News of this kind.
    pub fn new(kind: &str, text: impl Into<String>) -> Self {
        Self { text: text.into(), origin: Origin { kind: kind.into(), details: Map::new() }, starts_turn: true }
    }

    /// A letter of another agent.
    pub fn from_peer(text: impl Into<String>) -> Self {
        Self::new(PEER, text)
    }

    /// Whether it is a letter.
    pub fn is_from_peer(&self) -> bool {
        self.origin.kind == PEER
    }

    /// News of background work.
    pub fn from_task(text: impl Into<String>) -> Self {
        Self::new("task-notification", text)
    }
}
