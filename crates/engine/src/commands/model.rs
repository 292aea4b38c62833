//! `/model`: says which model answers, or has another one answer from now on.

use crate::commands::{BuiltinAction, BuiltinCommand};
use crate::model_switch::{SwitchRequester, ModelSwitch, SwitchRequest};
use crate::event_loop::Session;

/// The command.
pub const COMMAND: BuiltinCommand = BuiltinCommand {
    name: "model",
    description: "Show the model, or choose another one",
    argument_hint: "[model]",
    action: BuiltinAction::Model,
};

/// What comes of a choice.
pub(crate) enum ModelChoice {
    /// This is all.
    Answer(String),
    /// Hooks have a say in it, or others come first.
    Switch(Box<ModelSwitch>),
}

/// Does what the person wants and says so.
pub(crate) fn choose(session: &mut Session, wanted: &str) -> ModelChoice {
    let (engine, knobs) = (&session.engine, &session.runtime_settings);
    if wanted.is_empty() {
        let names: Vec<&str> =
            engine.catalog().models_with_aliases().map(|(alias, model)| alias.unwrap_or(&model.name)).collect();
        return ModelChoice::Answer(format!("The model is {}. Others: {}.", knobs.borrow().model, names.join(", ")));
    }
    let model = session.setup.model(engine, Some(wanted));
    if let Err(fault) = engine.providers().resolve(&model) {
        return ModelChoice::Answer(format!("The model stays {}: {}", knobs.borrow().model, fault.message));
    }
    let told = model_notice(&model);
    match session.request_model_switch(SwitchRequest { requester: SwitchRequester::User, model, requested_name: Some(wanted.into()) }) {
        None => ModelChoice::Answer(told),
        Some(switch) => ModelChoice::Switch(Box::new(switch)),
    }
}

/// What the person is told of the model from now on.
pub(super) fn model_notice(model: &str) -> String {
    format!("The model is {model} now.")
}
