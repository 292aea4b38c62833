//! One layer of settings: what one source says, checked, with what does not count taken out.

use std::path::PathBuf;

use serde_json::{Map, Value};
use whimbrel_wire::hook::HookEvent;
use whimbrel_wire::permission::PermissionBehavior;

use super::error::{InvalidKeyError, escape_text};
use super::hooks::{ValidationError, HookActionConfig};
use super::http_hooks::Authority;
use super::typos;
use super::read::SettingsDocument;
use super::schema::{self, dotted_key};
use super::sources::{LayerOrigin, LayerSource};
use super::trust::{self, Trust};

/// A permission rule, and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfiguredRule {
    /// What it says about the calls that it matches.
    pub behavior: PermissionBehavior,
    /// Its text.
    pub text: String,
    /// Who wrote it.
    pub source: LayerSource,
    /// What a path in it that begins with one `/` starts from.
    pub base: PathBuf,
    /// The file that it stands in.
    pub file: Option<PathBuf>,
    /// The line there.
    pub line: Option<u32>,
}

/// A hook, and where it comes from.
#[derive(Debug, Clone, PartialEq)]
pub struct ConfiguredHook {
    /// When it runs.
    pub event: HookEvent,
    /// Which of these events, as it is written; none means all.
    pub matcher: Option<String>,
    /// What it does.
    pub action: HookActionConfig,
    /// Who wrote it.
    pub source: LayerSource,
    /// How much its writer may decide.
    pub authority: Authority,
    /// The file that it stands in.
    pub file: Option<PathBuf>,
    /// The line there.
    pub line: Option<u32>,
}

/// What one source says.
#[derive(Debug, Clone, PartialEq)]
pub struct SettingsLayer {
    /// Where it comes from.
    pub origin: LayerOrigin,
    /// All that it says, as it was written.
    pub raw: Map<String, Value>,
    /// What counts of it.
    pub values: Map<String, Value>,
    /// Its rules.
    pub rules: Vec<ConfiguredRule>,
    /// Its hooks.
    pub hooks: Vec<ConfiguredHook>,
}

/// A layer, and what is to be said about it.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckedLayer {
    /// The layer.
    pub layer: SettingsLayer,
    /// What may have cost a guard.
    pub critical: Vec<InvalidKeyError>,
    /// What else is wrong.
    pub minor: Vec<InvalidKeyError>,
    /// What is held back because it came with the project.
    pub withheld: Option<String>,
}

/// Makes a layer of what a source says.
pub fn check_layer(origin: LayerOrigin, document: SettingsDocument, trust: Trust) -> CheckedLayer {
    let (values, held) = trust::filter_values(document.values.clone(), origin.scope, trust);
    let held = trust::render_warning(&origin.display_name(), &held);
    let checked = schema::check_values(values);
    let flaws = checked.errors.into_iter().chain(typos::find_typos(&document.values));
    let (grave, slight): (Vec<ValidationError>, Vec<ValidationError>) = flaws.partition(|flaw| flaw.is_critical);
    let problems = |flaws: &[ValidationError]| flaws.iter().map(|flaw| to_key_error(flaw, &origin, &document)).collect();
    let (grave, slight) = (problems(&grave), problems(&slight));
    let rules = checked.rules.into_iter().map(|rule| ConfiguredRule {
        behavior: rule.behavior,
        text: rule.text,
        source: origin.source,
        base: origin.base.clone(),
        file: origin.file.clone(),
        line: document.line(&rule.pointer),
    });
    let hooks = checked.hooks.into_iter().map(|hook| ConfiguredHook {
        event: hook.event,
        matcher: hook.matcher,
        action: hook.action,
        source: origin.source,
        authority: Authority::from_origin(&origin),
        file: origin.file.clone(),
        line: document.line(&hook.pointer),
    });
    let (rules, hooks) = (rules.collect(), hooks.collect());
    let layer = SettingsLayer { origin, values: checked.values, rules, hooks, raw: document.values };
    CheckedLayer { layer, critical: grave, minor: slight, withheld: held }
}

fn to_key_error(flaw: &ValidationError, origin: &LayerOrigin, document: &SettingsDocument) -> InvalidKeyError {
    let line = document.line(&flaw.pointer);
    InvalidKeyError { name: origin.display_name(), line, key: escape_text(&dotted_key(&flaw.pointer)), cause: escape_text(&flaw.cause) }
}
