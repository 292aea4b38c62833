//! What this version does not have yet. Asking for it is an error that says so: nothing is silently left out.

use serde_json::{Map, Value};
use whimbrel_wire::options::Options;

use crate::settings::{Layer, Settings, Source};

/// The first option that cannot be honoured, in words.
pub fn in_options(options: &Options) -> Option<String> {
    let rows = [
        (options.sandbox.as_ref().is_some_and(is_enabled), SANDBOX),
        (!options.tool_aliases.is_empty(), "aliases for tools"),
    ];
    rows.iter().find(|(asked, _)| *asked).map(|(_, what)| sentence(what))
}

const SANDBOX: &str = "a sandbox";

/// What the host or an administrator set, and what would be weakened by leaving it out.
pub fn in_settings(settings: &Settings) -> Option<String> {
    let sandbox =
        |layer: &Layer| layer.values.get("sandbox").and_then(Value::as_object).is_some_and(is_enabled);
    let said = settings.layers().iter().any(|layer| layer.origin.source >= Source::Flag && sandbox(layer));
    let needed = settings.effective().known.sandbox.get("failIfUnavailable") == Some(&Value::Bool(true));
    (said || needed).then(|| sentence(SANDBOX))
}

/// What settings ask for that the session goes on without, for the person.
pub fn unheeded(settings: &Settings) -> Vec<String> {
    let known = &settings.effective().known;
    let rows = [(is_enabled(&known.sandbox), "sandbox: commands run without one")];
    rows.iter()
        .filter(|(asked, _)| *asked)
        .map(|(_, what)| format!("This version of Whimbrel does not have what a setting asks for: {what}."))
        .collect()
}

fn is_enabled(sandbox: &Map<String, Value>) -> bool {
    sandbox.get("enabled") == Some(&Value::Bool(true))
}

fn sentence(what: &str) -> String {
    format!("This version of Whimbrel does not have {what} yet. Leave it out, or use a newer version.")
}
