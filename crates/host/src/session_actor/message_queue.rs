//! Messages of people: stored before they are acknowledged, given when the session rests, taken back while they wait.

use std::sync::atomic::Ordering;

use serde_json::json;

use super::SentMessage;
use super::actor::Actor;
use crate::clock;
use crate::error::{ApiError, ApiResult};
use crate::message::{Message, MessagePriority, StoredBody};
use crate::store::access::Person;
use crate::store::messages::{self, MessageRow};
use crate::store::records as uploads;
use crate::store::sessions::SessionState;

impl Actor {
    /// Stores a message; the same key again is the same message.
    pub(super) async fn accept_message(
        &mut self,
        message: Message,
        person: &Person,
    ) -> ApiResult<SentMessage> {
        message.check()?;
        let digest = message.digest();
        if let Some(known) = self.host.store.message_by_key(&self.row.id, &message.key).await? {
            if known.digest != digest {
                return Err(ApiError::key_reused(format!(
                    "the key {:?} was used for another message: choose a new key",
                    message.key
                )));
            }
            return Ok(SentMessage { uuid: known.id, seq: known.seq, state: known.state, replayed: true });
        }
        self.host.check_not_draining()?;
        self.reconcile().await;
        if self.row.state == SessionState::Elsewhere {
            return Err(ApiError::session_elsewhere(
                "another program has this session open: end it there, or fork the session",
            ));
        }
        let body = crate::uploads::to_stored_body(&self.host, &self.row, &message).await?;
        let row = self.add_message(&body, message.key.clone(), digest, person);
        for upload in &message.uploads {
            self.log.add_step(uploads::belongs_to(upload, &self.row.id));
        }
        if self.row.title.is_empty() {
            self.row.title = message.title();
        }
        self.flush().await?;
        let (uuid, seq) = (row.id.clone(), row.seq);
        self.queue.push_back(row);
        self.send_ahead(&uuid, &body).await;
        let is_given = body.priority == MessagePriority::Now && self.sent_ahead.contains(&uuid);
        let state = if is_given { "given" } else { "queued" };
        Ok(SentMessage { uuid, seq, state: state.into(), replayed: false })
    }

    /// Adds a message to what is stored next.
    pub(super) fn add_message(
        &mut self,
        body: &StoredBody,
        key: String,
        digest: String,
        person: &Person,
    ) -> MessageRow {
        let id = clock::new_uuid();
        let seq = self.log.add(&body.to_queued(&id, &person.to_by()), None);
        let row = MessageRow {
            id,
            session: self.row.id.clone(),
            key,
            digest,
            person: person.id.clone(),
            body: serde_json::to_string(body).unwrap_or_default(),
            state: "queued".into(),
            seq,
            made_at: clock::now_ms(),
        };
        self.log.add_step(row.insert());
        row
    }

    /// Gives an urgent message to the engine while a turn runs. It counts as given when the engine has recorded it: if the
    /// host ends before, it still waits.
    pub(super) async fn send_ahead(&mut self, uuid: &str, body: &StoredBody) {
        if self.turn.is_none() || body.priority == MessagePriority::Later || self.engine.is_none() {
            return;
        }
        self.sent_ahead.insert(uuid.to_owned());
        // A session that has just ended gives it with the next turn.
        let _ = self.send_prompt(uuid, body).await;
    }

    /// Gives the next message, if the session rests.
    pub(super) async fn give_next(&mut self) {
        while self.turn.is_none() && !self.is_over && !self.host.is_draining() {
            let is_interrupted = self.row.state == SessionState::Interrupted;
            let Some(next) = self.queue.iter().find(|row| !self.sent_ahead.contains(&row.id)).cloned() else {
                return;
            };
            if is_interrupted {
                if self.continue_turn().await.is_err() {
                    return;
                }
                continue;
            }
            if !self.give(&next).await {
                return;
            }
        }
    }

    /// Gives a message to the engine. Returns whether the queue can go on.
    async fn give(&mut self, row: &MessageRow) -> bool {
        self.given_at = Some(clock::monotonic());
        if let Err(error) = self.open_engine().await {
            if error.code == "session_elsewhere" {
                return false;
            }
            self.fail_message(row, &error).await;
            return false;
        }
        let Some(body) = StoredBody::of_row(row) else { return false };
        if body.context_only {
            return self.add_context(row, &body).await;
        }
        let turn = self.begin_turn(Some(&row.id));
        self.log.add_step(messages::change_state(&row.id, "queued", "given", Some(&turn)));
        self.add_host_event("given", json!({"uuid": row.id, "turn": turn}));
        if let Err(error) = self.flush().await {
            // It stays queued and is tried again.
            self.turn = None;
            self.host.metrics.turns_running.fetch_sub(1, Ordering::Relaxed);
            crate::log::report(&format!("session {}: {}", self.row.id, error.message));
            return false;
        }
        self.queue.retain(|waiting| waiting.id != row.id);
        // If the session has ended, its last frame says so and the turn fails.
        let _ = self.send_prompt(&row.id, &body).await;
        true
    }

    /// Adds a message to the conversation without asking the model. It counts as given when the engine has recorded it.
    async fn add_context(&mut self, row: &MessageRow, body: &StoredBody) -> bool {
        self.sent_ahead.insert(row.id.clone());
        self.send_prompt(&row.id, body).await.is_ok()
    }

    /// A message that could not be given: the session says why.
    async fn fail_message(&mut self, row: &MessageRow, error: &ApiError) {
        self.queue.retain(|waiting| waiting.id != row.id);
        self.log.add_step(messages::change_state(&row.id, "queued", "failed", None));
        self.add_host_event(
            "error",
            json!({"code": "open_failed", "message": error.message, "uuid": row.id}),
        );
        self.set_state(SessionState::Failed);
        self.flush_facts().await;
    }

    /// Takes back a message that waits.
    pub(super) async fn take_back(&mut self, uuid: &str, person: &Person) -> ApiResult<()> {
        let row = self.host.store.message(uuid).await?.filter(|row| row.session == self.row.id);
        let row = row.ok_or_else(|| ApiError::not_found(format!("this session has no message {uuid}")))?;
        let given =
            || ApiError::already_given("the agent has this message already: interrupt the turn instead");
        if row.state != "queued" {
            return Err(given());
        }
        if self.sent_ahead.contains(uuid) {
            let is_urgent = StoredBody::of_row(&row).is_none_or(|body| body.priority == MessagePriority::Now);
            if is_urgent {
                return Err(given());
            }
            let controls = self.controls().cloned().ok_or_else(given)?;
            let cancelled = controls.cancel_message(uuid).await.is_ok_and(|reply| reply.cancelled);
            if !cancelled {
                return Err(given());
            }
            self.sent_ahead.remove(uuid);
        }
        self.queue.retain(|waiting| waiting.id != uuid);
        self.log.add_step(messages::change_state(uuid, "queued", "taken_back", None));
        self.add_host_event("taken_back", json!({"uuid": uuid, "by": person.to_by()}));
        self.flush().await
    }
}
