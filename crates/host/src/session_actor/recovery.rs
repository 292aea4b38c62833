//! What happened while the log was not written: crashes, the terminal, deleted transcripts. The transcript is compared with
//! the log, and an interrupted turn goes on without repeating its prompt.

use std::sync::atomic::Ordering;

use serde_json::json;
use whimbrel::PermissionMode;
use whimbrel::store::{Message as TranscriptMessage, SessionLock};
use whimbrel::wire::control::ResumePendingCalls;
use whimbrel::wire::message::User;

use super::actor::{Actor, RunningTurn};
use crate::error::{ApiError, ApiResult};
use crate::message::StoredBody;
use crate::metrics::TurnOutcome;
use crate::store::events::parse_uuid;
use crate::store::messages::MessageRow;
use crate::store::sessions::SessionState;
use crate::store::{messages, requests, turns};

/// Prompt that makes the model go on after a restart.
const GO_ON: &str = "The program that ran you was restarted in the middle of your work. Go on from where you stopped; do not \
    repeat what is done.";

impl Actor {
    /// Handles a turn that had not ended when the last host ended. A crash is told; after an orderly stop the turn goes on.
    pub(super) async fn recover(&mut self) -> ApiResult<()> {
        if self.row.bypass_until.is_some() {
            self.note_mode(PermissionMode::Default);
        }
        let turn = self.host.store.open_turn(&self.row.id).await?;
        if !self.queue.is_empty() {
            self.reconcile().await;
            self.settle_queue(turn.as_ref().map(|turn| turn.id.as_str()));
        }
        match turn.as_ref().map(|turn| turn.state.as_str()) {
            Some("suspended") => {
                self.flush().await?;
                self.is_suspended = true;
            }
            Some("running") => {
                self.reconcile().await;
                let has_message = turn.as_ref().is_some_and(|turn| turn.message.is_some());
                let turn = turn.map(|turn| turn.id).unwrap_or_default();
                for request in self.host.store.requests(Some("open"), Some(&self.row.id), None, 200).await? {
                    let cancel = json!({"type": "control_cancel_request", "request_id": request.id,
                                        "reason": "session_ended"});
                    self.log.add(&cancel, None);
                    self.changed_requests.push(request.id);
                }
                self.log.add_step(requests::lose_all(&self.row.id));
                self.log.add_step(turns::end(&turn, "interrupted", None, 0));
                self.add_host_event("interrupted", json!({"turn": turn, "reason": "restart"}));
                self.set_state(SessionState::Interrupted);
                self.host.metrics.turns.count(TurnOutcome::Interrupted, has_message);
                self.flush().await?;
            }
            _ if matches!(self.row.state, SessionState::Running | SessionState::Waiting) => {
                // The turn had ended, but not the state.
                self.update_state();
                self.flush().await?;
            }
            _ => self.flush().await?,
        }
        Ok(())
    }

    /// The engine may have recorded a message that counts as waiting, because the host ended before it was told.
    fn settle_queue(&mut self, turn: Option<&str>) {
        let known = &self.known_uuids;
        let is_known = |row: &MessageRow| parse_uuid(&row.id).is_some_and(|uuid| known.contains(&uuid));
        let recorded: Vec<String> =
            self.queue.iter().filter(|row| is_known(row)).map(|row| row.id.clone()).collect();
        for uuid in recorded {
            self.queue.retain(|row| row.id != uuid);
            let state = if turn.is_some() { "given" } else { "done" };
            self.log.add_step(messages::change_state(&uuid, "queued", state, turn));
            self.add_host_event("given", json!({"uuid": uuid, "turn": turn}));
        }
    }

    /// Adds messages of the transcript that the log lacks and notes who holds it, unless the engine is open here.
    pub(super) async fn reconcile(&mut self) {
        if self.engine.is_some() {
            return;
        }
        let transcripts = self.host.transcripts.clone();
        let id = self.row.engine_session.clone();
        let Ok(Some(summary)) = transcripts.find(&id).await else { return };
        let is_held = matches!(transcripts.lock(&id).await, Ok(SessionLock::Held(_)));
        match (is_held, self.row.state) {
            (true, SessionState::Resting | SessionState::Failed) => self.set_state(SessionState::Elsewhere),
            (false, SessionState::Elsewhere) => self.set_state(SessionState::Resting),
            _ => {}
        }
        if self.transcript_stamp != Some((summary.last_modified, summary.file_size)) {
            if let Ok(messages) = transcripts.messages(&id).await {
                self.add_recovered(messages);
                self.log.happened_at = i64::try_from(summary.last_modified).ok();
            }
            self.transcript_stamp = Some((summary.last_modified, summary.file_size));
            if self.row.title.is_empty() || self.row.origin == "terminal" {
                self.row.title = crate::message::title_of(&summary.summary);
            }
        }
        self.flush_facts().await;
    }

    fn add_recovered(&mut self, messages: Vec<TranscriptMessage>) {
        let is_unknown = |message: &TranscriptMessage| {
            parse_uuid(&message.uuid).is_some_and(|uuid| !self.known_uuids.contains(&uuid))
        };
        let unknown: Vec<_> = messages.into_iter().filter(is_unknown).collect();
        if unknown.is_empty() {
            return;
        }
        // A session that has no events yet is read for the first time: nothing was lost.
        if self.row.head > 0 {
            self.add_host_event("recovered", json!({"count": unknown.len()}));
        }
        for message in unknown {
            if let Some(uuid) = parse_uuid(&message.uuid) {
                self.known_uuids.insert(uuid);
            }
            let frame = json!({
                "type": message.kind, "message": message.message, "parent_tool_use_id": message.parent_tool_use_id,
                "uuid": message.uuid, "session_id": message.session_id, "timestamp": message.timestamp,
            });
            self.log.add(&frame, Some(&message.uuid));
        }
    }

    /// Lets an interrupted turn go on. Its prompt is not repeated: if the transcript has it, calls that were not begun are
    /// asked for again, or the model is told to go on.
    pub(super) async fn continue_turn(&mut self) -> ApiResult<()> {
        self.host.check_not_draining()?;
        if self.row.state != SessionState::Interrupted && !self.is_suspended {
            return Err(ApiError::not_running("no turn was interrupted: send a message instead"));
        }
        self.open_engine().await?;
        let turn = self.host.store.open_turn(&self.row.id).await?;
        let Some(turn) = turn else {
            self.is_suspended = false;
            self.set_state(SessionState::Resting);
            return self.flush().await;
        };
        let prompt = match &turn.message {
            Some(message) => self.host.store.message(message).await?,
            None => None,
        };
        let prompt =
            prompt.filter(|row| parse_uuid(&row.id).is_some_and(|uuid| !self.known_uuids.contains(&uuid)));
        self.is_suspended = false;
        self.log.add_step(turns::resume(&turn.id));
        let message = prompt.as_ref().map(|row| row.id.clone());
        self.turn = Some(RunningTurn { id: turn.id, message });
        self.host.metrics.turns_running.fetch_add(1, Ordering::Relaxed);
        self.update_state();
        self.flush().await?;
        let Some(controls) = self.controls().cloned() else { return Ok(()) };
        let failed = |error: whimbrel::Error| ApiError::bad_input(error.to_string());
        if let Some(row) = prompt {
            let body: StoredBody = serde_json::from_str(&row.body)
                .map_err(|error| ApiError::bad_input(format!("the stored message is damaged: {error}")))?;
            return controls.send(body.to_prompt(&row.id)).await.map_err(failed);
        }
        let resumed = controls.call(ResumePendingCalls {}).await.map_err(failed)?;
        if resumed.calls.is_empty() {
            let mut prompt = User::prompt(GO_ON);
            prompt.is_synthetic = Some(true);
            controls.send(prompt).await.map_err(failed)?;
        }
        Ok(())
    }

    /// The host stops: a running turn goes on at the next start, and its open requests wait.
    pub(super) async fn suspend(&mut self) -> ApiResult<()> {
        if let Some(turn) = self.turn.take() {
            self.log.add_step(crate::store::Step::new(
                "UPDATE turns SET state = 'suspended' WHERE id = $1",
                vec![turn.id.into()],
            ));
        }
        let stored = self.flush().await;
        self.stop_engine().await;
        self.is_over = true;
        stored
    }
}
