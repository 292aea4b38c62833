//! `/model`: says which model answers, or has another one answer from now on.

use crate::commands::{Action, Command};
use crate::model_switch::{Asker, ModelSwitch};
use crate::serve::Session;

/// The command.
pub const COMMAND: Command = Command {
    name: "model",
    description: "Show the model, or choose another one",
    argument_hint: "[model]",
    action: Action::Model,
};

/// What comes of a choice.
pub(crate) enum Choice {
    /// This is all.
    Told(String),
    /// Hooks have a say in it.
    Switch(Box<ModelSwitch>),
}

/// Does what the person wants and says so.
pub(crate) fn choose(session: &Session, wanted: &str) -> Choice {
    let (engine, knobs) = (&session.engine, &session.knobs);
    if wanted.is_empty() {
        let names: Vec<&str> =
            engine.catalog().choices().map(|(alias, model)| alias.unwrap_or(&model.name)).collect();
        return Choice::Told(format!("The model is {}. Others: {}.", knobs.borrow().model, names.join(", ")));
    }
    let model = session.setup.model(engine, Some(wanted));
    if let Err(fault) = engine.providers().resolve(&model) {
        return Choice::Told(format!("The model stays {}: {}", knobs.borrow().model, fault.message));
    }
    match session.model_switch(Asker::Person, &model, Some(wanted)) {
        None => Choice::Told(chosen(&model)),
        Some(switch) => Choice::Switch(Box::new(switch)),
    }
}

/// What the person is told of the model from now on.
pub(super) fn chosen(model: &str) -> String {
    format!("The model is {model} now.")
}
