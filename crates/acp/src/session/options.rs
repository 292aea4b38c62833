//! Changes of mode, model and effort, by the editor or by the engine.

use agent_client_protocol::v1::Responder;
use agent_client_protocol::v1::schema::{
    ConfigOptionUpdate, CurrentModeUpdate, SessionUpdate, SetSessionConfigOptionRequest,
    SetSessionConfigOptionResponse, SetSessionModeResponse,
};
use serde_json::{Map, Value};
use whimbrel::wire::control::ApplyFlagSettings;
use whimbrel::{Controls, PermissionMode};

use super::{SessionEvent, SessionTask, respond};
use crate::config_options::ConfigChange;
use crate::errors::invalid_params;

/// The request that a change answers.
pub(crate) enum ConfigAnswer {
    Mode(Responder<SetSessionModeResponse>),
    Option(Responder<SetSessionConfigOptionResponse>),
}

impl SessionTask {
    pub(super) fn set_mode(&self, mode: &str, responder: Responder<SetSessionModeResponse>) {
        match self.config.parse_mode(mode) {
            Ok(mode) => self.request_change(ConfigChange::Mode(mode), ConfigAnswer::Mode(responder)),
            Err(error) => respond(responder, Err(error)),
        }
    }

    pub(super) fn set_option(
        &self,
        request: &SetSessionConfigOptionRequest,
        responder: Responder<SetSessionConfigOptionResponse>,
    ) {
        match self.config.parse_change(&request.config_id.0, &request.value) {
            Ok(change) => self.request_change(change, ConfigAnswer::Option(responder)),
            Err(error) => respond(responder, Err(error)),
        }
    }

    /// Records and answers a change that the engine has accepted or rejected.
    pub(super) fn finish_change(
        &mut self,
        change: ConfigChange,
        outcome: Result<(), whimbrel::Error>,
        answer: ConfigAnswer,
    ) {
        let outcome = outcome.map_err(|error| invalid_params(error.to_string()));
        if outcome.is_ok() {
            match change {
                ConfigChange::Mode(mode) => self.take_over_mode(mode),
                ConfigChange::Model(_) => {
                    self.config.apply(change);
                    self.fetch_window();
                }
                ConfigChange::Effort(_) => self.config.apply(change),
            }
        }
        match answer {
            ConfigAnswer::Mode(responder) => {
                respond(responder, outcome.map(|()| SetSessionModeResponse::new()));
            }
            ConfigAnswer::Option(responder) => {
                respond(
                    responder,
                    outcome.map(|()| SetSessionConfigOptionResponse::new(self.config.options())),
                );
            }
        }
    }

    /// Tells the editor about a mode that is in force, in both interfaces.
    pub(super) fn take_over_mode(&mut self, mode: PermissionMode) {
        if self.config.mode == mode {
            return;
        }
        self.config.apply(ConfigChange::Mode(mode));
        self.outbox.send(SessionUpdate::CurrentModeUpdate(CurrentModeUpdate::new(mode.to_string())));
        self.outbox.send(SessionUpdate::ConfigOptionUpdate(ConfigOptionUpdate::new(self.config.options())));
    }

    /// Tells the editor about a model that a command has set.
    pub(super) fn take_over_model(&mut self, model: &str) {
        if self.config.take_over_model(model) {
            self.outbox
                .send(SessionUpdate::ConfigOptionUpdate(ConfigOptionUpdate::new(self.config.options())));
            self.fetch_window();
        }
    }

    fn request_change(&self, change: ConfigChange, answer: ConfigAnswer) {
        let controls = self.controls.clone();
        self.spawn(async move {
            let outcome = apply_change(&controls, &change).await;
            SessionEvent::ConfigChanged(change, outcome, answer)
        });
    }
}

async fn apply_change(controls: &Controls, change: &ConfigChange) -> Result<(), whimbrel::Error> {
    match change {
        ConfigChange::Mode(mode) => controls.set_permission_mode(*mode).await,
        ConfigChange::Model(model) => controls.set_model(model.clone()).await,
        ConfigChange::Effort(effort) => {
            let level = effort.clone().map_or(Value::Null, Value::String);
            let settings = Map::from_iter([("effortLevel".to_owned(), level)]);
            controls.call(ApplyFlagSettings { settings }).await.map(drop)
        }
    }
}
