//! The running turn: from the prompt to its answer.

use serde_json::{Value, json};
use whimbrel::Frame;
use whimbrel::wire::content::Content;
use whimbrel::wire::message::{Outcome, TurnResult, User};
use whimbrel::wire::system::SystemEvent;
use whimbrel::{Error, PermissionMode};

use super::Server;
use crate::json_rpc::{INTERNAL_ERROR, PROVIDER_ERROR, RpcError};
use crate::model_layer::ArgumentPiece;
use crate::translate::{Event, plan_mode_event};

/// The running turn.
pub(super) struct Turn {
    /// Id of the request that is answered at its end.
    pub(super) request: String,
    /// What the client sent.
    pub(super) input: Value,
    /// Uuid of the prompt; `None` for a turn that the engine does not see.
    prompt: Option<String>,
    has_begun: bool,
    has_said_something: bool,
    pub(super) is_cancelled: bool,
    /// A rejection without a reason ends the turn.
    pub(super) is_rejected: bool,
    /// A hook blocked the prompt, with this reason.
    pub(super) blocked: Option<String>,
    pub(super) steers: Vec<Steer>,
    /// The engine has sent a result, and a steer still waits.
    pub(super) has_result: bool,
}

/// Input for the running turn that the conversation does not have yet.
pub(super) struct Steer {
    pub(super) uuid: String,
    pub(super) input: Value,
}

impl Turn {
    pub(super) fn new(request: String, input: Value, prompt: Option<String>) -> Self {
        Self {
            request,
            input,
            prompt,
            has_begun: false,
            has_said_something: false,
            is_cancelled: false,
            is_rejected: false,
            blocked: None,
            steers: Vec::new(),
            has_result: false,
        }
    }
}

impl Server {
    /// Sends a prompt to the engine.
    pub(super) async fn start_turn(&mut self, turn: Turn, content: Content) -> Result<(), RpcError> {
        let Some(engine) = &self.engine else {
            return Err(RpcError::new(INTERNAL_ERROR, "The session is not open."));
        };
        let message = User { uuid: turn.prompt.clone(), ..User::prompt(content) };
        let sent = engine.controls.send(message).await;
        sent.map_err(|error| RpcError::new(INTERNAL_ERROR, error.to_string()))?;
        self.open_logs();
        self.context_log.record_prompt(&turn.input);
        self.translator.begin_turn();
        self.turn = Some(turn);
        // A hook of the client may block the prompt; its requests come before the first event.
        if !self.client.subscriptions.has("UserPromptSubmit") {
            self.begin_turn_events().await;
        }
        Ok(())
    }

    /// Sends the first event of the turn, if it was not sent yet.
    pub(super) async fn begin_turn_events(&mut self) {
        if let Some(turn) = &mut self.turn
            && !std::mem::replace(&mut turn.has_begun, true)
        {
            let input = turn.input.clone();
            self.emit(Event::new("TurnBegin", json!({"user_input": input}))).await;
        }
    }

    /// Creates the files of the session with its first turn.
    pub(super) fn open_logs(&mut self) {
        let dir = &self.setup.session_dir;
        // The conversation itself is the engine's transcript: without these files only hosts lack it.
        if dir.create().is_ok() {
            let _ = self.wire_log.open(&dir.wire_log());
            let _ = self.context_log.open(&dir.context());
        }
        let _ = self.setup.share_dir.record_last_session(&self.setup.work_dir, &self.setup.session_id);
    }

    pub(super) fn save_state(&self) {
        if self.setup.session_dir.wire_log().exists() {
            // What was approved is asked about again after a restart.
            let _ = self.setup.session_dir.write_state(&self.state);
        }
    }

    pub(super) async fn handle_frame(&mut self, frame: Result<Frame, Error>) {
        let frame = match frame {
            Ok(frame) => frame,
            Err(error) => return self.fail_turn(&error.to_string()).await,
        };
        // Pieces of arguments were sent before the frame that ends their call.
        while let Ok(piece) = self.arguments.1.try_recv() {
            self.handle_arguments(piece).await;
        }
        if self.turn.is_none() {
            return self.handle_idle_frame(&frame).await;
        }
        self.context_log.record_frame(&frame);
        self.consume_steers(&frame).await;
        let events = self.translator.translate(&frame);
        if !events.is_empty() {
            self.begin_turn_events().await;
            let said = events.iter().any(|event| event.kind == "ContentPart");
            if let Some(turn) = &mut self.turn {
                turn.has_said_something |= said;
            }
            self.emit_all(events).await;
        }
        self.handle_mode_change(&frame).await;
        match &frame {
            Frame::Result(result) => self.handle_result(result).await,
            Frame::ConversationReset(_) => self.handle_reset(&frame),
            _ => {}
        }
    }

    pub(super) async fn handle_arguments(&mut self, piece: ArgumentPiece) {
        if self.turn.is_some() {
            let events = self.translator.translate_arguments(&piece.call, &piece.text);
            self.emit_all(events).await;
        }
    }

    /// Nothing is sent between turns.
    async fn handle_idle_frame(&mut self, frame: &Frame) {
        if let Frame::ConversationReset(_) = frame {
            self.handle_reset(frame);
        }
    }

    /// Tells the client which of its steers the conversation has now.
    async fn consume_steers(&mut self, frame: &Frame) {
        let (Some(turn), Frame::User(user)) = (&mut self.turn, frame) else { return };
        if user.is_replay != Some(true) {
            return;
        }
        let Some(index) = turn.steers.iter().position(|steer| Some(&steer.uuid) == user.uuid.as_ref()) else {
            return;
        };
        let steer = turn.steers.remove(index);
        self.context_log.record_prompt(&steer.input);
        self.emit(Event::new("SteerInput", json!({"user_input": steer.input}))).await;
    }

    /// The engine leaves plan mode when a plan is approved, and enters it by itself.
    async fn handle_mode_change(&mut self, frame: &Frame) {
        let Frame::System(system) = frame else { return };
        let mode = match &system.event {
            SystemEvent::Status(status) => status.permission_mode,
            SystemEvent::Init(init) => Some(init.permission_mode),
            _ => None,
        };
        let Some(mode) = mode else { return };
        let plan_mode = mode == PermissionMode::Plan;
        if plan_mode != self.state.plan_mode {
            self.state.plan_mode = plan_mode;
            self.emit(plan_mode_event(plan_mode)).await;
        }
    }

    /// `/clear`: the engine goes on in a session of its own.
    fn handle_reset(&mut self, frame: &Frame) {
        if let Frame::ConversationReset(reset) = frame {
            self.state.engine_session = Some(reset.new_conversation_id.clone());
            self.context_log.rotate(&self.setup.session_dir.context());
        }
    }

    async fn handle_result(&mut self, result: &TurnResult) {
        let Some(turn) = &mut self.turn else { return };
        // Steers that came too late start another turn of the engine, which belongs to this one.
        let is_waiting = turn.steers.iter().any(|steer| !result.answers(&steer.uuid));
        let can_continue = !turn.is_cancelled && !turn.is_rejected && !result.is_error;
        if is_waiting && can_continue {
            turn.has_result = true;
            return;
        }
        self.take_back_steers().await;
        let end = self.turn_end(result);
        self.end_turn(end).await;
    }

    /// Takes back the input that the model has not got, so that it starts no turn of its own.
    pub(super) async fn take_back_steers(&mut self) {
        let (Some(turn), Some(engine)) = (&mut self.turn, &self.engine) else { return };
        for steer in std::mem::take(&mut turn.steers) {
            let taken = engine.controls.cancel_message(steer.uuid).await;
            if taken.is_ok_and(|reply| !reply.cancelled) {
                // The engine has started a turn with it.
                let _ = engine.controls.interrupt().await;
            }
        }
    }

    /// The client has cancelled. Without a running turn of the engine no result would come.
    pub(super) async fn handle_cancelled(&mut self) {
        if self.turn.as_ref().is_some_and(|turn| turn.is_cancelled && turn.has_result) {
            self.end_turn(TurnEnd::Cancelled).await;
        }
    }

    /// What the prompt is answered with.
    fn turn_end(&self, result: &TurnResult) -> TurnEnd {
        let Some(turn) = &self.turn else { return TurnEnd::Finished { text: None } };
        if turn.is_cancelled {
            return TurnEnd::Cancelled;
        }
        if let Some(reason) = &turn.blocked {
            return TurnEnd::Finished { text: Some(reason.clone()) };
        }
        if turn.is_rejected {
            return TurnEnd::Finished { text: None };
        }
        match &result.subtype {
            Outcome::ErrorMaxTurns => TurnEnd::MaxSteps(self.translator.steps()),
            Outcome::Success if !result.is_error => {
                // A command of the engine says nothing else.
                let text = result.result.clone().filter(|text| !turn.has_said_something && !text.is_empty());
                TurnEnd::Finished { text }
            }
            _ => TurnEnd::Failed(error_of(result)),
        }
    }

    async fn end_turn(&mut self, end: TurnEnd) {
        self.begin_turn_events().await;
        self.context_log.finish_reply();
        let mut events = Vec::new();
        let result = match end {
            TurnEnd::Finished { text } => {
                events.extend(text.map(|text| Event::text(&text)));
                Ok(json!({"status": "finished"}))
            }
            TurnEnd::Cancelled => Ok(json!({"status": "cancelled"})),
            TurnEnd::MaxSteps(steps) => Ok(json!({"status": "max_steps_reached", "steps": steps})),
            TurnEnd::Failed(error) => {
                events.extend(self.translator.interrupt_step());
                Err(error)
            }
        };
        events.extend(self.translator.end_turn());
        events.push(Event::bare("TurnEnd"));
        self.emit_all(events).await;
        self.close_withdrawn_requests().await;
        self.wire_log.flush();
        self.save_state();
        if let Some(turn) = self.turn.take() {
            self.reply(turn.request, result).await;
        }
    }

    /// The turn cannot go on.
    pub(super) async fn fail_turn(&mut self, reason: &str) {
        if self.turn.is_some() {
            let error = RpcError::new(INTERNAL_ERROR, reason);
            self.end_turn(TurnEnd::Failed(error)).await;
        }
    }

    /// The session of the engine has ended by itself. The next prompt opens it again.
    pub(super) async fn handle_engine_end(&mut self) {
        self.engine = None;
        self.fail_turn("The session has ended unexpectedly. Send the prompt again.").await;
    }
}

/// How a turn ends.
enum TurnEnd {
    /// The text is said at the end.
    Finished {
        text: Option<String>,
    },
    Cancelled,
    MaxSteps(u32),
    Failed(RpcError),
}

/// The error of a failed turn.
fn error_of(result: &TurnResult) -> RpcError {
    let texts = result.errors.iter().flatten().map(String::as_str);
    let text = result.result.as_deref().into_iter().chain(texts).collect::<Vec<_>>().join("\n");
    let text = if text.is_empty() { "The turn failed without a reason.".to_owned() } else { text };
    // A failed call of the provider is a success with an error flag.
    let code = if result.subtype == Outcome::Success { PROVIDER_ERROR } else { INTERNAL_ERROR };
    RpcError::new(code, text)
}
