//! `/model`: shows the model, or switches to another one.

use crate::commands::{BuiltinAction, BuiltinCommand};
use crate::event_loop::Session;
use crate::model_switch::{ModelSwitch, SwitchRequest, SwitchRequester};

pub const COMMAND: BuiltinCommand = BuiltinCommand {
    name: "model",
    description: "Show the model, or choose another one",
    argument_hint: "[model]",
    action: BuiltinAction::Model,
};

/// Result of `/model`.
pub(crate) enum ModelChoice {
    Answer(String),
    /// Must wait for hooks or for earlier requests.
    Switch(Box<ModelSwitch>),
}

/// Shows or switches the model.
pub(crate) fn choose(session: &mut Session, wanted: &str) -> ModelChoice {
    let (engine, knobs) = (&session.engine, &session.runtime_settings);
    if wanted.is_empty() {
        let names: Vec<&str> = engine
            .catalog()
            .models_with_aliases()
            .map(|(alias, model)| alias.unwrap_or(&model.name))
            .collect();
        return ModelChoice::Answer(format!(
            "The model is {}. Others: {}.",
            knobs.borrow().model,
            names.join(", ")
        ));
    }
    let model = session.setup.model(engine, Some(wanted));
    if let Err(fault) = engine.providers().resolve(&model) {
        return ModelChoice::Answer(format!("The model stays {}: {}", knobs.borrow().model, fault.message));
    }
    let told = model_notice(&model);
    match session.request_model_switch(SwitchRequest {
        requester: SwitchRequester::User,
        model,
        requested_name: Some(wanted.into()),
    }) {
        None => ModelChoice::Answer(told),
        Some(switch) => ModelChoice::Switch(Box::new(switch)),
    }
}

pub(super) fn model_notice(model: &str) -> String {
    format!("The model is {model} now.")
}
