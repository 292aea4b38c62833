//! `/model`: says which model answers, or has another one answer from now on.

use crate::commands::{Action, Command};
use crate::model_switch::{Asker, ModelSwitch, Wish};
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
    /// Hooks have a say in it, or others come first.
    Switch(Box<ModelSwitch>),
}

/// Does what the person wants and says so.
pub(crate) fn choose(session: &mut Session, wanted: &str) -> Choice {
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
    let told = chosen(&model);
    match session.model_switch(Wish { asker: Asker::Person, to: model, requested: Some(wanted.into()) }) {
        None => Choice::Told(told),
        Some(switch) => Choice::Switch(Box::new(switch)),
    }
}

/// What the person is told of the model from now on.
pub(super) fn chosen(model: &str) -> String {
    format!("The model is {model} now.")
}
