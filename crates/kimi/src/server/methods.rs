//! Requests of the client: one method each.

use serde_json::{Map, Value, json};
use whimbrel::PermissionMode;
use whimbrel::wire::content::Content;
use whimbrel::wire::message::{Priority, User};

use super::turns::{Steer, Turn};
use super::{Background, Server};
use crate::hooks::Subscriptions;
use crate::ids::new_uuid;
use crate::json_rpc::{
    INPUT_NOT_SUPPORTED, INTERNAL_ERROR, INVALID_STATE, METHOD_NOT_FOUND, MODEL_NOT_SET, Outgoing, RpcError,
};
use crate::model_choice::Capability;
use crate::open_session::ClientFeatures;
use crate::slash_commands::{self, PromptKind};
use crate::translate::{Event, Translator, plan_mode_event};
use crate::user_input;
use crate::versions::WireVersion;
use crate::wire_log;

type Params = Map<String, Value>;
type Reply = Result<Value, RpcError>;

impl Server {
    pub(super) async fn handle_request(&mut self, id: String, method: &str, params: Params) {
        let result = match method {
            "initialize" => self.initialize(&params).await,
            // Answered at the end of the turn.
            "prompt" => match self.prompt(&id, &params).await {
                Ok(()) => return,
                Err(error) => Err(error),
            },
            "steer" => self.steer(&params).await,
            "cancel" => return self.cancel(id).await,
            "replay" => self.replay().await,
            "set_plan_mode" => self.set_plan_mode(&params).await,
            _ => Err(RpcError::new(METHOD_NOT_FOUND, format!("There is no method {method:?}."))),
        };
        self.reply(id, result).await;
    }

    async fn initialize(&mut self, params: &Params) -> Reply {
        self.require_idle()?;
        let Some(version) = params.get("protocol_version").and_then(Value::as_str) else {
            return Err(RpcError::invalid_params("`protocol_version` is missing or not a text."));
        };
        let version = WireVersion::parse(version);
        let hooks = match params.get("hooks").filter(|hooks| !hooks.is_null()) {
            Some(list) => Some(Subscriptions::parse(list).map_err(RpcError::invalid_params)?),
            None => None,
        };
        let tools = match params.get("external_tools").filter(|tools| !tools.is_null()) {
            Some(list) => Some(self.client.tools.add(list).map_err(RpcError::invalid_params)?),
            None => None,
        };
        let has_hooks = hooks.is_some();
        self.client.subscriptions = hooks.unwrap_or_default();
        self.client.version = version;
        self.client.features = read_features(params.get("capabilities"));
        if let Some(client) = params.get("client") {
            let part = |name: &str| client[name].as_str().unwrap_or_default();
            self.client.name = format!("{} {}", part("name"), part("version")).trim().to_owned();
        }
        let window = self.setup.model.as_ref().map_or(0, |model| model.window);
        self.translator = Translator::new(version, window);
        // What the client offers is fixed for a session of the engine.
        self.close_engine().await;
        self.open_engine().await.map_err(|error| RpcError::new(INTERNAL_ERROR, error))?;
        let mut result = json!({
            "protocol_version": version.to_string(),
            "server": {"name": "Whimbrel", "version": env!("CARGO_PKG_VERSION")},
            "slash_commands": slash_commands::list(self.commands()),
            "capabilities": {"supports_question": true},
        });
        if let Some(tools) = tools {
            result["external_tools"] = tools;
        }
        if has_hooks || version >= WireVersion(1, 7) {
            result["hooks"] = json!({
                "supported_events": Subscriptions::supported_events(),
                "configured": self.client.subscriptions.counts(),
            });
        }
        Ok(result)
    }

    async fn prompt(&mut self, id: &str, params: &Params) -> Result<(), RpcError> {
        self.require_idle()?;
        let (input, content) = read_input(params)?;
        let turn = |kind| Turn::new(id.to_owned(), input.clone(), kind);
        let model = match &self.setup.model {
            Ok(model) => model,
            Err(reason) => {
                let error = RpcError::new(MODEL_NOT_SET, format!("There is no model: {reason}"));
                return self.run_local_turn(turn(None), None, Err(error)).await;
            }
        };
        if user_input::has_image(&content) && !model.capabilities.contains(&Capability::ImageIn) {
            let text = format!(
                "The model {} does not take images: its configuration lacks `image_in`.",
                model.model
            );
            let error = RpcError::new(INPUT_NOT_SUPPORTED, text);
            return self.run_local_turn(turn(None), None, Err(error)).await;
        }
        self.open_engine().await.map_err(|error| RpcError::new(INTERNAL_ERROR, error))?;
        let content = match slash_commands::classify(&user_input::text(&content), self.commands()) {
            PromptKind::Text(text) if matches!(content, Content::Text(_)) => Content::Text(text),
            PromptKind::Text(_) => content,
            PromptKind::ToggleYolo => {
                self.is_yolo = !self.is_yolo;
                let text = match self.is_yolo {
                    true => "Tool calls are approved without asking.",
                    false => "Tool calls need your approval again.",
                };
                return self.run_local_turn(turn(None), Some(text.into()), Ok(())).await;
            }
            PromptKind::SetPlanMode(enabled) => {
                let enabled = enabled.unwrap_or(!self.state.plan_mode);
                self.change_plan_mode(enabled).await?;
                let text = if enabled { "Plan mode is on." } else { "Plan mode is off." };
                return self.run_local_turn(turn(None), Some(text.into()), Ok(())).await;
            }
            PromptKind::Unknown(name) => {
                let text = format!("There is no command /{name}.");
                return self.run_local_turn(turn(None), Some(text), Ok(())).await;
            }
        };
        self.start_turn(turn(Some(new_uuid())), content).await
    }

    async fn steer(&mut self, params: &Params) -> Reply {
        let (input, content) = read_input(params)?;
        let (Some(turn), Some(engine)) = (&mut self.turn, &self.engine) else {
            return Err(no_turn("steer"));
        };
        let steer = Steer { uuid: new_uuid(), input };
        let message = User { uuid: Some(steer.uuid.clone()), ..User::prompt(content) };
        turn.steers.push(steer);
        let sent = engine.controls.send(message.with_priority(Priority::Next)).await;
        sent.map_err(|error| RpcError::new(INTERNAL_ERROR, error.to_string()))?;
        Ok(json!({"status": "steered"}))
    }

    /// Answers first; the turn ends after it.
    async fn cancel(&mut self, id: String) {
        let (Some(turn), Some(engine)) = (&mut self.turn, &self.engine) else {
            return self.reply(id, Err(no_turn("cancel"))).await;
        };
        turn.is_cancelled = true;
        let controls = engine.controls.clone();
        let steers: Vec<String> = turn.steers.drain(..).map(|steer| steer.uuid).collect();
        self.background.push(Box::pin(async move {
            for steer in steers {
                // One that the model has got ends with its turn.
                let _ = controls.cancel_message(steer).await;
            }
            // Without a running turn there is nothing to interrupt.
            let _ = controls.interrupt().await;
            Background::Cancelled
        }));
        self.reply(id, Ok(json!({}))).await;
    }

    async fn replay(&mut self) -> Reply {
        self.require_idle()?;
        let recorded = wire_log::read(&self.setup.session_dir.wire_log());
        let version = self.client.version;
        let known: Vec<_> = recorded.into_iter().filter(|event| version.knows(&event.kind)).collect();
        let count = known.len();
        for event in known {
            self.send(Outgoing::Event { kind: event.kind, payload: event.payload }).await;
        }
        Ok(json!({"status": "finished", "events": count, "requests": 0}))
    }

    async fn set_plan_mode(&mut self, params: &Params) -> Reply {
        let Some(enabled) = params.get("enabled").and_then(Value::as_bool) else {
            return Err(RpcError::invalid_params("`enabled` is missing or not a boolean."));
        };
        self.change_plan_mode(enabled).await?;
        Ok(json!({"status": "ok", "plan_mode": enabled}))
    }

    pub(super) async fn change_plan_mode(&mut self, enabled: bool) -> Result<(), RpcError> {
        if let Some(engine) = &self.engine {
            let mode = if enabled { PermissionMode::Plan } else { PermissionMode::Default };
            let changed = engine.controls.set_permission_mode(mode).await;
            changed.map_err(|error| RpcError::new(INTERNAL_ERROR, error.to_string()))?;
        }
        self.state.plan_mode = enabled;
        self.save_state();
        self.emit(plan_mode_event(enabled)).await;
        Ok(())
    }

    /// Runs a turn without the model: it says a text, or fails.
    async fn run_local_turn(
        &mut self,
        turn: Turn,
        text: Option<String>,
        end: Result<(), RpcError>,
    ) -> Result<(), RpcError> {
        let id = turn.request.clone();
        self.open_logs();
        self.emit(Event::new("TurnBegin", json!({"user_input": turn.input}))).await;
        if let Some(text) = text {
            self.emit(Event::text(&text)).await;
        }
        self.emit(Event::bare("TurnEnd")).await;
        self.wire_log.flush();
        self.save_state();
        self.reply(id, end.map(|()| json!({"status": "finished"}))).await;
        Ok(())
    }

    fn require_idle(&self) -> Result<(), RpcError> {
        match self.turn {
            None => Ok(()),
            Some(_) => {
                Err(RpcError::new(INVALID_STATE, "A turn is running. Cancel it, or wait for its end."))
            }
        }
    }
}

fn no_turn(method: &str) -> RpcError {
    RpcError::new(INVALID_STATE, format!("No turn is running, so there is nothing to {method}."))
}

fn read_input(params: &Params) -> Result<(Value, Content), RpcError> {
    let input =
        params.get("user_input").ok_or_else(|| RpcError::invalid_params("`user_input` is missing."))?;
    Ok((input.clone(), user_input::to_content(input)?))
}

/// Without `capabilities` the client answers no questions.
fn read_features(capabilities: Option<&Value>) -> ClientFeatures {
    let has = |name: &str| capabilities.is_some_and(|capabilities| capabilities[name] == true);
    ClientFeatures { questions: has("supports_question"), plan_mode: has("supports_plan_mode") }
}
