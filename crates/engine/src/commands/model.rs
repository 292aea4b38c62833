//! `/model`: says which model answers, or has another one answer from now on.

use crate::commands::{Action, Command};
use crate::engine::Engine;
use crate::knobs::KnobsWriter;
use crate::setup::Setup;

/// The command.
pub const COMMAND: Command = Command {
    name: "model",
    description: "Show the model, or choose another one",
    argument_hint: "[model]",
    action: Action::Model,
};

/// Does what the person wants and says so.
pub fn choose(engine: &Engine, setup: &Setup, knobs: &KnobsWriter, wanted: &str) -> String {
    if wanted.is_empty() {
        let names: Vec<&str> =
            engine.catalog().choices().map(|(alias, model)| alias.unwrap_or(&model.name)).collect();
        return format!("The model is {}. Others: {}.", knobs.borrow().model, names.join(", "));
    }
    let model = setup.model(engine, Some(wanted));
    if let Err(fault) = engine.providers().resolve(&model) {
        return format!("The model stays {}: {}", knobs.borrow().model, fault.message);
    }
    knobs.send_modify(|knobs| knobs.model.clone_from(&model));
    format!("The model is {model} now.")
}
