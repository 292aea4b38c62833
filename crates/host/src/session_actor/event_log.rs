//! Events are stored, and only then shown. Live frames keep their place between them.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::extract::ws::Utf8Bytes;
use serde_json::{Value as Json, json};
use tokio::sync::watch;

use super::actor::Actor;
use super::outlet::{Offer, Outlet};
use crate::clock;
use crate::error::ApiResult;
use crate::store::events::{self, EventRow};
use crate::store::sessions::SessionState;
use crate::store::{Batch, Step, StoreError};

/// What is shown once the events before it are stored.
enum Pending {
    Event { event: EventRow, kind: String, uuid: Option<String> },
    Live { frame: String, begins_message: bool },
}

/// The log of a session and those who watch it.
pub(super) struct EventLog {
    session: String,
    next_seq: i64,
    stored: i64,
    head: watch::Sender<i64>,
    outlets: Vec<Arc<Outlet>>,
    pending: Vec<Pending>,
    steps: Vec<Step>,
    /// How many entries and steps have happened, but could not be stored yet.
    kept: (usize, usize),
    /// When what is added has happened, if it was not now.
    pub(super) happened_at: Option<i64>,
}

impl EventLog {
    pub(super) fn new(session: String, head: i64, sender: watch::Sender<i64>) -> Self {
        Self {
            session,
            next_seq: head + 1,
            stored: head,
            head: sender,
            outlets: Vec::new(),
            pending: Vec::new(),
            steps: Vec::new(),
            kept: (0, 0),
            happened_at: None,
        }
    }

    pub(super) fn add_outlet(&mut self, outlet: Arc<Outlet>) {
        self.outlets.retain(|outlet| !outlet.is_closed());
        self.outlets.push(outlet);
    }

    pub(super) fn is_watched(&mut self) -> bool {
        self.outlets.retain(|outlet| !outlet.is_closed());
        !self.outlets.is_empty()
    }

    /// Ends all subscriptions: the session is gone.
    pub(super) fn close_outlets(&mut self) {
        for outlet in self.outlets.drain(..) {
            outlet.end(self.stored);
        }
    }

    /// Adds an event; returns its number.
    pub(super) fn add(&mut self, frame: &Json, uuid: Option<&str>) -> i64 {
        let kind = frame["subtype"].as_str().or(frame["type"].as_str()).unwrap_or_default().to_owned();
        self.add_raw(frame.to_string(), kind, uuid)
    }

    /// Adds an event whose frame is serialized already.
    pub(super) fn add_raw(&mut self, body: String, kind: String, uuid: Option<&str>) -> i64 {
        let seq = self.next_seq;
        self.next_seq += 1;
        let event = EventRow { seq, at: clock::now_ms(), body };
        self.pending.push(Pending::Event { event, kind, uuid: uuid.map(str::to_owned) });
        seq
    }

    /// Adds a statement that is run together with the events.
    pub(super) fn add_step(&mut self, step: Step) {
        self.steps.push(step);
    }

    /// Adds a frame that is shown but not stored.
    pub(super) fn add_live(&mut self, frame: String, begins_message: bool) {
        if !self.outlets.is_empty() {
            self.pending.push(Pending::Live { frame, begins_message });
        }
    }

    fn has_writes(&self) -> bool {
        !self.steps.is_empty() || self.pending.iter().any(|entry| matches!(entry, Pending::Event { .. }))
    }

    /// Whether lists show something of what was added.
    fn changes_lists(&self) -> bool {
        let is_inner = |kind: &str| matches!(kind, "assistant" | "user" | "init");
        let changes = |entry: &Pending| matches!(entry, Pending::Event { kind, .. } if !is_inner(kind));
        !self.steps.is_empty() || self.pending.iter().any(changes)
    }

    fn last_seq(&self) -> i64 {
        self.next_seq - 1
    }

    /// Shows what is stored now.
    fn publish(&mut self) -> usize {
        let mut count = 0;
        self.steps.clear();
        self.kept = (0, 0);
        for entry in std::mem::take(&mut self.pending) {
            match entry {
                Pending::Event { event, .. } => {
                    count += 1;
                    self.stored = event.seq;
                    if self.outlets.is_empty() {
                        continue;
                    }
                    let message = Utf8Bytes::from(event.to_json(&self.session, Some("event")));
                    let before = event.seq - 1;
                    self.outlets.retain(|outlet| {
                        !outlet.is_closed() && outlet.offer_event(&message, before) == Offer::Taken
                    });
                }
                Pending::Live { frame, begins_message } => {
                    let session = &self.session;
                    let message =
                        Utf8Bytes::from(format!(r#"{{"op":"live","session":"{session}","frame":{frame}}}"#));
                    for outlet in &self.outlets {
                        outlet.offer_live(&message, begins_message);
                    }
                }
            }
        }
        self.head.send_replace(self.stored);
        count
    }

    /// Keeps what could not be stored: it has happened, and is stored later.
    fn keep(&mut self) {
        self.kept = (self.pending.len(), self.steps.len());
    }

    /// Whether something that has happened is not stored yet.
    pub(super) fn has_kept(&self) -> bool {
        self.kept != (0, 0)
    }

    /// Forgets what was added since the last write or [`keep`](Self::keep): it does not happen.
    fn discard(&mut self) {
        let (entries, steps) = self.kept;
        self.pending.truncate(entries);
        self.steps.truncate(steps);
        let is_event = |entry: &&Pending| matches!(entry, Pending::Event { .. });
        let kept = self.pending.iter().filter(is_event).count();
        self.next_seq = self.stored + 1 + i64::try_from(kept).unwrap_or_default();
    }

    /// Forgets all that is not stored.
    fn discard_all(&mut self) {
        self.kept = (0, 0);
        self.discard();
    }
}

impl Actor {
    /// Adds an event of the host.
    pub(super) fn add_host_event(&mut self, subtype: &str, mut fields: Json) -> i64 {
        let mut frame = json!({"type": "host", "subtype": subtype});
        if let (Some(frame), Some(fields)) = (frame.as_object_mut(), fields.as_object_mut()) {
            frame.append(fields);
        }
        self.log.add(&frame, None)
    }

    /// Changes the state of the session, with its event.
    pub(super) fn set_state(&mut self, state: SessionState) {
        if self.row.state != state {
            self.row.state = state;
            self.add_host_event("state", json!({"state": state}));
        }
    }

    /// The state that follows from turn and requests.
    pub(super) fn update_state(&mut self) {
        let state = if !self.requests.is_empty() {
            SessionState::Waiting
        } else if self.turn.is_some() {
            SessionState::Running
        } else {
            SessionState::Resting
        };
        self.set_state(state);
    }

    /// Stores what was added, then shows it. If the store fails, what was added since the last write does not happen: the
    /// session is as it was before, and the error says so.
    pub(super) async fn flush(&mut self) -> ApiResult<()> {
        if let Err(error) = self.write_added().await {
            self.log.discard();
            self.row.clone_from(&self.settled);
            return Err(error.into());
        }
        Ok(())
    }

    /// The same for what has happened already, such as frames of the engine: if the store fails, it is stored later.
    pub(super) async fn flush_facts(&mut self) {
        match self.write_added().await {
            Ok(()) => {}
            Err(StoreError::Refused(step)) => {
                // Another writer was faster. The transcript tells what the log lacks.
                crate::log::report(&format!("session {}: {}", self.row.id, StoreError::Refused(step)));
                self.host.metrics.lease_losses.fetch_add(u64::from(step == 0), Ordering::Relaxed);
                self.log.discard_all();
                self.reload().await;
            }
            Err(error) => {
                if !self.log.has_kept() {
                    crate::log::report(&format!("session {}: {error}. It is tried again", self.row.id));
                }
                self.log.keep();
                self.settled.clone_from(&self.row);
            }
        }
    }

    async fn write_added(&mut self) -> Result<(), StoreError> {
        if self.log.has_writes() {
            self.row.head = self.log.last_seq();
            self.row.touched_at = self.log.happened_at.take().unwrap_or_else(clock::now_ms);
            let mut steps = vec![self.lease.guard()];
            for entry in &self.log.pending {
                if let Pending::Event { event, kind, uuid } = entry {
                    steps.push(events::append(&self.row.id, event, kind, uuid.as_deref()));
                }
            }
            steps.extend(self.log.steps.iter().cloned());
            steps.push(self.row.update());
            self.host.store.write(Batch::from(steps)).await?;
            self.settled.clone_from(&self.row);
        }
        let changes_lists = self.log.changes_lists();
        let count = self.log.publish();
        self.host.metrics.events.fetch_add(count as u64, Ordering::Relaxed);
        for request in std::mem::take(&mut self.changed_requests) {
            self.announce_request(&request).await;
        }
        if changes_lists {
            self.announce().await;
        }
        Ok(())
    }

    /// Takes over what the store has.
    async fn reload(&mut self) {
        if let Ok(Some(row)) = self.host.store.session(&self.row.id).await {
            self.settled.clone_from(&row);
            self.row = row;
        }
        if let Ok(uuids) = self.host.store.event_uuids(&self.row.id).await {
            self.known_uuids = uuids;
            self.transcript_stamp = None;
        }
    }

    /// Tells those who watch the list of sessions.
    pub(super) async fn announce(&self) {
        if self.host.hub.is_watched()
            && let Ok(row) = self.fresh_row().await
        {
            self.host.hub.session_changed(&row.to_json());
        }
    }
}
