//! Sessions that are in use: one task each, the only owner of its session. It holds the engine's session, writes events,
//! passes them on, and keeps messages and requests.
//!
//! Modules:
//! - [`registry`]: the actors that run; [`actor`]: the task
//! - [`event_log`]: events are stored, then shown; [`outlet`]: the way to a socket; [`live`]: what is streamed now
//! - [`engine_frames`]: frames of the engine; [`classify`]: which of them are events
//! - [`engine_session`]: the engine's session is opened and closed
//! - [`message_queue`]: messages of people that wait
//! - [`answer`], [`open_requests`]: requests to people and their answers
//! - [`control`]: control requests, rewind and the like
//! - [`recovery`]: after a crash, and sessions of other programs

pub(crate) mod actor;
pub(crate) mod answer;
mod classify;
mod control;
mod engine_frames;
mod engine_session;
mod event_log;
mod live;
mod message_queue;
mod open_requests;
pub(crate) mod outlet;
mod recovery;
pub(crate) mod registry;

use std::sync::Arc;

use serde_json::Value as Json;
use tokio::sync::oneshot;
use whimbrel::PermissionRequest;
use whimbrel::wire::control::{Elicitation, ElicitationReply};
use whimbrel::wire::permission::{Destination, PermissionBehavior, PermissionResult};

use crate::error::ApiResult;
use crate::message::Message;
use crate::store::access::Person;
use crate::store::sessions::SessionRow;
use answer::Answer;
use outlet::Outlet;

pub(crate) type Reply<T> = oneshot::Sender<ApiResult<T>>;

/// Whatever other tasks want of a session.
pub(crate) enum Command {
    Subscribe {
        outlet: Arc<Outlet>,
        reply: Reply<Subscribed>,
    },
    Read {
        reply: Reply<SessionRow>,
    },
    Send {
        message: Message,
        person: Person,
        reply: Reply<SentMessage>,
    },
    TakeBack {
        uuid: String,
        person: Person,
        reply: Reply<()>,
    },
    Control {
        request: Json,
        person: Person,
        reply: Reply<Json>,
    },
    Answer {
        request: String,
        answer: Answer,
        person: Person,
        reply: Reply<Json>,
    },
    Continue {
        reply: Reply<()>,
    },
    Fork {
        at: Option<String>,
        title: Option<String>,
        key: String,
        person: Person,
        reply: Reply<SessionRow>,
    },
    Rewind {
        rewind: Rewind,
        person: Person,
        reply: Reply<Json>,
    },
    Change {
        title: Option<String>,
        archived: Option<bool>,
        reply: Reply<SessionRow>,
    },
    Delete {
        person: Person,
        reply: Reply<()>,
    },
    /// Settings files or the trust in them have changed, of a folder or of all.
    SettingsChanged {
        folder: Option<String>,
    },
    /// Ends a permission rule.
    RemoveRule {
        rule: String,
        behavior: PermissionBehavior,
        destination: Destination,
        reply: Reply<()>,
    },
    /// A request of the engine.
    Asked(Asked),
    /// The engine has withdrawn a request.
    Withdrawn {
        request: String,
        reason: whimbrel::CancelReason,
    },
    /// A control request has changed a setting.
    SettingChanged {
        setting: Setting,
        person: Person,
    },
    /// The host stops: what runs goes on at the next start.
    Suspend {
        reply: Reply<()>,
    },
    /// The host is about to stop: reply when no turn runs.
    WaitForRest {
        reply: Reply<()>,
    },
}

/// Reply to a subscription: what the client gets, and what was streamed so far.
pub(crate) struct Subscribed {
    pub(crate) session: SessionRow,
    pub(crate) open: Vec<Json>,
    pub(crate) live: Vec<Json>,
}

/// A message that was taken.
#[derive(Debug, Clone)]
pub(crate) struct SentMessage {
    pub(crate) uuid: String,
    pub(crate) seq: i64,
    pub(crate) state: String,
    pub(crate) replayed: bool,
}

/// A rewind as a client wants it.
#[derive(Debug, Clone)]
pub(crate) struct Rewind {
    pub(crate) to: String,
    pub(crate) files: bool,
    pub(crate) conversation: bool,
    pub(crate) dry_run: bool,
}

/// A setting that a control request has changed.
#[derive(Debug, Clone)]
pub(crate) enum Setting {
    Model(Option<String>),
    Mode(whimbrel::PermissionMode),
}

/// A request of the engine to a person, and where the answer goes.
pub(crate) struct Asked {
    pub(crate) id: String,
    pub(crate) question: Question,
}

pub(crate) enum Question {
    Tool { request: Box<PermissionRequest>, reply: oneshot::Sender<PermissionResult> },
    Form { request: Box<Elicitation>, reply: oneshot::Sender<ElicitationReply> },
}
