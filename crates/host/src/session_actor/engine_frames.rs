//! Frames of the engine become events or live frames; they begin and end turns.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use futures::FutureExt;
use serde_json::json;
use whimbrel::wire::message::{ModelUsage, Outcome, TurnResult};
use whimbrel::wire::system::{SessionState as EngineState, StatusKind, SystemEvent};
use whimbrel::{Error, Frame};

use super::actor::{Actor, RunningTurn};
use super::classify::{FrameClass, classify, uuid_of};
use crate::clock;
use crate::message::StoredBody;
use crate::metrics::TurnOutcome;
use crate::store::events::parse_uuid;
use crate::store::sessions::SessionState;
use crate::store::{messages, requests, turns};

/// Frames that one write takes at most.
const MAX_FRAMES_PER_WRITE: usize = 128;

impl Actor {
    /// Handles a frame and those that wait behind it, in one write.
    pub(super) async fn handle_frames(&mut self, first: Option<Result<Frame, Error>>) {
        let mut next = Some(first);
        let mut count = 0;
        while let Some(frame) = next.take() {
            match frame {
                Some(Ok(frame)) => self.handle_frame(frame).await,
                Some(Err(error)) => {
                    self.flush_facts().await;
                    self.handle_engine_end(Some(error.to_string())).await;
                    return;
                }
                None => {
                    self.flush_facts().await;
                    self.handle_engine_end(None).await;
                    return;
                }
            }
            count += 1;
            if count < MAX_FRAMES_PER_WRITE {
                next = self.frames_mut().and_then(|frames| frames.next().now_or_never());
            }
        }
        self.flush_facts().await;
        if self.turn.is_none() {
            self.finish_rest_waiters();
            self.give_next().await;
        }
    }

    /// Takes the frames that were sent before a request of the engine.
    pub(super) async fn take_waiting_frames(&mut self) {
        while let Some(frame) = self.frames_mut().and_then(|frames| frames.next().now_or_never()) {
            match frame {
                Some(Ok(frame)) => self.handle_frame(frame).await,
                // The end is seen again by the loop.
                Some(Err(_)) | None => return,
            }
        }
    }

    async fn handle_frame(&mut self, frame: Frame) {
        match &frame {
            Frame::System(system) => self.note_system_frame(&system.event),
            Frame::User(user) => {
                if let Some(uuid) = user.uuid.clone()
                    && user.is_replay == Some(true)
                {
                    self.handle_replay(&uuid);
                }
            }
            Frame::Assistant(message) => self.live.stored(message.parent_tool_use_id.as_deref()),
            _ => {}
        }
        match classify(&frame) {
            FrameClass::Hidden => {}
            FrameClass::Live => self.add_live_frame(&frame),
            FrameClass::Durable => self.add_durable_frame(&frame),
        }
        if let Frame::Result(result) = frame {
            self.live.clear();
            self.end_turn(&result).await;
        }
    }

    fn add_live_frame(&mut self, frame: &Frame) {
        let Ok(text) = serde_json::to_string(frame) else { return };
        let begins_message = match frame {
            Frame::StreamEvent(_) => serde_json::from_str(&text).is_ok_and(|frame| self.live.add(&frame)),
            _ => false,
        };
        self.log.add_live(text, begins_message);
    }

    fn add_durable_frame(&mut self, frame: &Frame) {
        let uuid = uuid_of(frame);
        if let Some(number) = uuid.and_then(parse_uuid)
            && !self.known_uuids.insert(number)
        {
            return;
        }
        let kind = match frame {
            Frame::System(system) => system.event.subtype(),
            frame => frame.kind(),
        };
        if let Ok(text) = serde_json::to_string(frame) {
            self.log.add_raw(text, kind.to_owned(), uuid);
        }
    }

    fn note_system_frame(&mut self, event: &SystemEvent) {
        match event {
            SystemEvent::SessionStateChanged(changed)
                if changed.state == EngineState::Running && self.turn.is_none() =>
            {
                self.begin_turn(None);
            }
            SystemEvent::Init(init) => {
                self.row.model = Some(init.model.clone()).filter(|model| !model.is_empty());
                self.note_mode(init.permission_mode);
            }
            SystemEvent::Status(status) => {
                if let Some(mode) = status.permission_mode {
                    self.note_mode(mode);
                }
                if status.status == Some(StatusKind::Requesting)
                    && let Some(given) = self.given_at.take()
                {
                    self.host.metrics.first_request.record(given.elapsed());
                }
            }
            SystemEvent::TaskStarted(task) => {
                if let Some(engine) = &mut self.engine {
                    engine.tasks.insert(task.task_id.clone());
                }
            }
            SystemEvent::TaskNotification(task) => {
                if let Some(engine) = &mut self.engine {
                    engine.tasks.remove(&task.task_id);
                }
            }
            _ => {}
        }
    }

    /// Begins a turn: of a message, or of the engine itself.
    pub(super) fn begin_turn(&mut self, message: Option<&str>) -> String {
        let id = clock::new_id();
        let cause = if message.is_some() { turns::CAUSE_MESSAGE } else { turns::CAUSE_BACKGROUND };
        self.log.add_step(turns::begin(&id, &self.row.id, cause, message));
        self.turn = Some(RunningTurn { id: id.clone(), message: message.map(str::to_owned) });
        self.host.metrics.turns_running.fetch_add(1, Ordering::Relaxed);
        self.update_state();
        id
    }

    /// The engine has recorded a message that it got ahead of its turn.
    fn handle_replay(&mut self, uuid: &str) {
        if !self.sent_ahead.remove(uuid) {
            return;
        }
        let is_context = self.queue.iter().any(|row| row.id == uuid && StoredBody::is_context_only(row));
        self.queue.retain(|message| message.id != uuid);
        if is_context {
            let turn = self.turn.as_ref().map(|turn| turn.id.clone());
            self.log.add_step(messages::change_state(uuid, "queued", "done", turn.as_deref()));
            self.add_host_event("given", json!({"uuid": uuid, "turn": turn}));
            return;
        }
        let turn = match &self.turn {
            Some(turn) => turn.id.clone(),
            None => self.begin_turn(Some(uuid)),
        };
        self.log.add_step(messages::change_state(uuid, "queued", "given", Some(&turn)));
        self.add_host_event("given", json!({"uuid": uuid, "turn": turn}));
    }

    /// Ends the turn that a result is about.
    async fn end_turn(&mut self, result: &TurnResult) {
        let (usage, cost_micros) = self.take_usage(result);
        self.row.cost_micros += cost_micros;
        let outcome = match result.subtype {
            Outcome::Success if !result.is_error => TurnOutcome::Done,
            _ => TurnOutcome::Failed,
        };
        let state = outcome.as_str();
        let is_other = self.turn.as_ref().is_some_and(|turn| {
            turn.message.as_deref().is_some_and(|message| !result.answers(message)) && result.origin.is_some()
        });
        let turn = if is_other { None } else { self.turn.take() };
        let has_message = turn.as_ref().is_some_and(|turn| turn.message.is_some());
        let id = match turn {
            Some(turn) => {
                self.host.metrics.turns_running.fetch_sub(1, Ordering::Relaxed);
                turn.id
            }
            None => {
                let id = clock::new_id();
                self.log.add_step(turns::begin(&id, &self.row.id, turns::CAUSE_BACKGROUND, None));
                id
            }
        };
        self.host.metrics.turns.count(outcome, has_message);
        self.log.add_step(turns::end(&id, state, Some(&usage), cost_micros));
        self.log.add_step(messages::finish_given(&self.row.id, &id, state));
        if self.requests.is_empty() {
            // Cards of an earlier host that were not asked for again.
            self.log.add_step(requests::lose_all(&self.row.id));
        }
        self.mark_used();
        self.update_state();
    }

    /// What a result says of its own turn: the engine counts from the start of its process.
    fn take_usage(&mut self, result: &TurnResult) -> (String, i64) {
        let Some(engine) = &mut self.engine else { return ("{}".into(), 0) };
        let cost = (result.total_cost_usd - engine.cost_before).max(0.0);
        engine.cost_before = engine.cost_before.max(result.total_cost_usd);
        let mut by_model = BTreeMap::new();
        for (model, usage) in &result.model_usage {
            let usage_of_turn = match engine.usage_before.get(model) {
                Some(before) => subtract(usage, before),
                None => usage.clone(),
            };
            engine.usage_before.insert(model.clone(), usage.clone());
            if usage_of_turn.input_tokens + usage_of_turn.output_tokens > 0 || usage_of_turn.cost_usd > 0.0 {
                by_model.insert(model.clone(), usage_of_turn);
            }
        }
        (serde_json::to_string(&by_model).unwrap_or_else(|_| "{}".into()), to_micros(cost))
    }

    /// The engine's session has ended by itself.
    async fn handle_engine_end(&mut self, error: Option<String>) {
        self.close_engine();
        let was_running = self.turn.is_some() || !self.requests.is_empty();
        self.lose_requests();
        if let Some(turn) = self.turn.take() {
            self.host.metrics.turns_running.fetch_sub(1, Ordering::Relaxed);
            self.host.metrics.turns.count(TurnOutcome::Failed, turn.message.is_some());
            self.log.add_step(turns::end(&turn.id, "failed", None, 0));
            self.log.add_step(messages::finish_given(&self.row.id, &turn.id, "failed"));
        }
        if let Some(message) = error.or_else(|| was_running.then(|| "the engine has ended".to_owned())) {
            self.add_host_event("error", json!({"code": "engine_ended", "message": message}));
            self.set_state(SessionState::Failed);
        } else {
            self.update_state();
        }
        self.flush_facts().await;
        self.finish_rest_waiters();
    }

    pub(super) fn finish_rest_waiters(&mut self) {
        for reply in self.waiting_for_rest.drain(..) {
            let _ = reply.send(Ok(()));
        }
    }
}

fn subtract(usage: &ModelUsage, before: &ModelUsage) -> ModelUsage {
    ModelUsage {
        input_tokens: usage.input_tokens.saturating_sub(before.input_tokens),
        output_tokens: usage.output_tokens.saturating_sub(before.output_tokens),
        cache_read_input_tokens: usage.cache_read_input_tokens.saturating_sub(before.cache_read_input_tokens),
        cache_creation_input_tokens: usage
            .cache_creation_input_tokens
            .saturating_sub(before.cache_creation_input_tokens),
        cost_usd: (usage.cost_usd - before.cost_usd).max(0.0),
        ..usage.clone()
    }
}

/// Dollars as millionths.
#[expect(clippy::cast_possible_truncation, reason = "a turn costs less than nine trillion dollars")]
fn to_micros(dollars: f64) -> i64 {
    (dollars * 1e6).round() as i64
}
