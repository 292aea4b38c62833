//! One layer of settings: the values of one source, validated and filtered by trust.

use std::path::PathBuf;

use serde_json::{Map, Value};
use whimbrel_wire::hook::HookEvent;
use whimbrel_wire::permission::PermissionBehavior;

use crate::settings::document::SettingsDocument;
use crate::settings::error::{InvalidKeyError, escape_text};
use crate::settings::hooks::{HookActionConfig, ValidationError};
use crate::settings::http_hooks::Authority;
use crate::settings::schema::{self, dotted_key};
use crate::settings::sources::{LayerOrigin, LayerSource};
use crate::settings::trust::{self, Trust};
use crate::settings::typos;

/// A permission rule and its origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleSetting {
    pub behavior: PermissionBehavior,
    pub text: String,
    pub source: LayerSource,
    /// Base of paths in the rule that begin with one `/`.
    pub base: PathBuf,
    pub file: Option<PathBuf>,
    pub line: Option<u32>,
}

/// A hook and its origin.
#[derive(Debug, Clone, PartialEq)]
pub struct HookSetting {
    pub event: HookEvent,
    /// Matcher text; `None` matches everything.
    pub matcher: Option<String>,
    pub action: HookActionConfig,
    pub source: LayerSource,
    pub authority: Authority,
    pub file: Option<PathBuf>,
    pub line: Option<u32>,
}

/// The settings of one source.
#[derive(Debug, Clone, PartialEq)]
pub struct SettingsLayer {
    pub origin: LayerOrigin,
    /// All values as written.
    pub raw: Map<String, Value>,
    /// The values in force: valid, and permitted by trust.
    pub values: Map<String, Value>,
    pub rules: Vec<RuleSetting>,
    pub hooks: Vec<HookSetting>,
}

impl SettingsLayer {
    /// A value of the object `permissions`.
    pub(super) fn permission_value(&self, key: &str) -> Option<&Value> {
        self.values.get("permissions")?.get(key)
    }
}

/// A layer and the problems found in it.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckedLayer {
    pub layer: SettingsLayer,
    /// Errors by which a restriction may be lost.
    pub critical: Vec<InvalidKeyError>,
    /// Other errors.
    pub minor: Vec<InvalidKeyError>,
    /// Warning about values withheld because they came with the project.
    pub withheld: Option<String>,
}

/// Builds a layer from a document.
pub fn check_layer(origin: LayerOrigin, document: SettingsDocument, trust: Trust) -> CheckedLayer {
    let (values, withheld) = trust::filter_values(document.values.clone(), origin.scope, trust);
    let withheld = trust::render_warning(&origin.display_name(), &withheld);
    let checked = schema::check_values(values);
    let errors = checked.errors.into_iter().chain(typos::find_typos(&document.values));
    let (critical, minor): (Vec<ValidationError>, Vec<ValidationError>) =
        errors.partition(|error| error.is_critical);
    let to_errors = |errors: &[ValidationError]| {
        errors.iter().map(|error| to_key_error(error, &origin, &document)).collect()
    };
    let (critical, minor) = (to_errors(&critical), to_errors(&minor));
    let rules = checked.rules.into_iter().map(|rule| RuleSetting {
        behavior: rule.behavior,
        text: rule.text,
        source: origin.source,
        base: origin.base.clone(),
        file: origin.file.clone(),
        line: document.line(&rule.pointer),
    });
    let hooks = checked.hooks.into_iter().map(|hook| HookSetting {
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
    CheckedLayer { layer, critical, minor, withheld }
}

fn to_key_error(
    error: &ValidationError,
    origin: &LayerOrigin,
    document: &SettingsDocument,
) -> InvalidKeyError {
    let line = document.line(&error.pointer);
    InvalidKeyError {
        name: origin.display_name(),
        line,
        key: escape_text(&dotted_key(&error.pointer)),
        cause: escape_text(&error.cause),
    }
}
