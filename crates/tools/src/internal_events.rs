//! Internal events of a session: background tasks, agents, timers, messages between agents. One enum, one channel;
//! the host's frames arrive over the link.

use std::collections::HashSet;

use serde_json::Map;
use tokio::sync::mpsc;
use whimbrel_wire::message::Origin;

use crate::task_types::TaskEvent;

/// An internal event.
#[derive(Debug, Clone, PartialEq)]
pub enum InternalEvent {
    /// A background command started or ended.
    Task(Box<TaskEvent>),
    /// A notification for the model, in a turn of its own if none runs.
    Notification(Box<Notification>),
    /// Something ended without a notification: the session may have nothing left to wait for.
    RecheckIdle,
}

/// A message from the engine to the model.
#[derive(Debug, Clone, PartialEq)]
pub struct Notification {
    pub text: String,
    /// Its origin: `task-notification`, `peer`, `auto-continuation`, ...
    pub origin: Origin,
    /// Whether it starts a turn; otherwise it is added to the next one.
    pub starts_turn: bool,
    /// The background agent whose report it is.
    pub reporting_agent: Option<String>,
    /// The command or monitor that it is about.
    pub task_id: Option<String>,
}

/// Origin of messages between agents.
const PEER: &str = "peer";

/// Sending end. Cheap to clone.
pub type EventSender = mpsc::UnboundedSender<InternalEvent>;

/// Receiving end, owned by the event loop.
pub type EventReceiver = mpsc::UnboundedReceiver<InternalEvent>;

pub fn event_channel() -> (EventSender, EventReceiver) {
    mpsc::unbounded_channel()
}

impl Notification {
    /// A notification with this origin.
    pub fn new(kind: &str, text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            origin: Origin { kind: kind.into(), details: Map::new() },
            starts_turn: true,
            reporting_agent: None,
            task_id: None,
        }
    }

    /// A message from another agent.
    pub fn from_peer(text: impl Into<String>) -> Self {
        Self::new(PEER, text)
    }

    /// Returns whether it is about one of these tasks, commands or agents.
    pub fn is_about(&self, tasks: &HashSet<String>) -> bool {
        [&self.reporting_agent, &self.task_id].into_iter().flatten().any(|id| tasks.contains(id))
    }

    /// Returns whether it is a message from another agent.
    pub fn is_from_peer(&self) -> bool {
        self.origin.kind == PEER
    }

    /// A notification about background work.
    pub fn from_task(text: impl Into<String>) -> Self {
        Self::new("task-notification", text)
    }
}
