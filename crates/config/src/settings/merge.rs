//! Merges layers. Pure.
//!
//! In this order:
//! 1. a single value: the strongest source applies; objects are merged key by key
//! 2. lists: concatenated, strongest source first, without duplicates
//! 3. restrictions by an administrator, and `disableAllHooks`: see [`managed_policy`](crate::settings::managed_policy)
//! 4. `disableBypassPermissionsMode` applies from any source
//! 5. URLs of HTTP hooks: see [`http_hooks`](crate::settings::http_hooks); a project limits only its own

use std::collections::{BTreeMap, HashSet};

use serde_json::{Map, Value, json};
use whimbrel_policy::mode::is_more_permissive;
use whimbrel_wire::control::SettingsReport;
use whimbrel_wire::permission::PermissionMode;

use crate::settings::http_hooks::HttpHookLimits;
use crate::settings::layer::{HookSetting, RuleSetting, SettingsLayer};
use crate::settings::managed_policy::{apply_managed_policy, is_enabled_by_administrator};
use crate::settings::schema::TypedSettings;
use crate::settings::sources::{LayerScope, LayerSource};

#[derive(Debug, Clone, Default, PartialEq)]
pub struct EffectiveSettings {
    /// Permission rules, strongest source first.
    pub rules: Vec<RuleSetting>,
    /// Only an administrator's rules apply. Rules of the host then apply only if they are restrictive, and nothing can
    /// be loosened.
    pub managed_rules_only: bool,
    /// Additional directories, as written.
    pub directories: Vec<AdditionalDirectory>,
    /// Default permission mode and its source.
    pub mode: Option<(PermissionMode, LayerSource)>,
    /// The mode `bypassPermissions` is disabled.
    pub bypass_disabled: bool,
    /// Environment variables for the engine and its commands.
    pub env: BTreeMap<String, String>,
    /// Hooks, strongest source first.
    pub hooks: Vec<HookSetting>,
    pub http_limits: HttpHookLimits,
    /// Values of the other keys that the engine uses.
    pub typed: TypedSettings,
    /// All values in force, as they would be in one file.
    pub values: Map<String, Value>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdditionalDirectory {
    /// As written.
    pub path: String,
    pub source: LayerSource,
}

/// Merges layers, weakest first.
pub fn merge(layers: &[SettingsLayer]) -> EffectiveSettings {
    let http_limits = HttpHookLimits::from_layers(layers);
    let layers: Vec<SettingsLayer> = apply_managed_policy(layers);
    let mut values = Map::new();
    for layer in layers.iter().rev() {
        merge_missing(&mut values, &layer.values);
    }
    EffectiveSettings {
        rules: dedup_rules(layers.iter().rev().flat_map(|layer| &layer.rules)),
        managed_rules_only: is_enabled_by_administrator(&layers, "allowManagedPermissionRulesOnly"),
        directories: merge_directories(&layers),
        mode: effective_mode(&layers),
        bypass_disabled: layers
            .iter()
            .any(|layer| layer.permission_value("disableBypassPermissionsMode").is_some()),
        env: env_variables(&values),
        hooks: layers.iter().rev().flat_map(|layer| layer.hooks.clone()).collect(),
        http_limits,
        // The values were validated, so deserialization does not fail.
        typed: serde_json::from_value(Value::Object(values.clone())).unwrap_or_default(),
        values,
    }
}

/// The mode of the strongest source; a project cannot raise the mode that the user chose.
fn effective_mode(layers: &[SettingsLayer]) -> Option<(PermissionMode, LayerSource)> {
    let chosen = |layer: &SettingsLayer| -> Option<PermissionMode> {
        layer.permission_value("defaultMode")?.as_str()?.parse().ok()
    };
    let is_user_layer = |layer: &&SettingsLayer| {
        layer.origin.scope == LayerScope::User && layer.origin.source == LayerSource::User
    };
    let user_mode = layers.iter().find(is_user_layer).and_then(chosen);
    layers.iter().rev().find_map(|layer| {
        let mode = chosen(layer)?;
        let is_project_layer = layer.origin.scope == LayerScope::Project;
        let raises =
            is_project_layer && user_mode.is_some_and(|user_mode| is_more_permissive(mode, user_mode));
        (!raises).then_some((mode, layer.origin.source))
    })
}

/// Removes duplicates from the same source and base. Equal rules of different sources are kept: their paths may have
/// different bases, and reports show both. The same applies to directories.
fn dedup_rules<'a>(rules: impl Iterator<Item = &'a RuleSetting>) -> Vec<RuleSetting> {
    let mut seen = HashSet::new();
    rules.filter(|rule| seen.insert((rule.behavior, &rule.text, rule.source, &rule.base))).cloned().collect()
}

fn merge_directories(layers: &[SettingsLayer]) -> Vec<AdditionalDirectory> {
    let mut seen = HashSet::new();
    let mut directories = Vec::new();
    for layer in layers.iter().rev() {
        let paths =
            layer.permission_value("additionalDirectories").and_then(Value::as_array).into_iter().flatten();
        let source = layer.origin.source;
        let new = |path: &&str| seen.insert(((*path).to_owned(), source));
        for path in paths.filter_map(Value::as_str).filter(new) {
            directories.push(AdditionalDirectory { path: path.into(), source });
        }
    }
    directories
}

fn env_variables(values: &Map<String, Value>) -> BTreeMap<String, String> {
    let env = values.get("env").and_then(Value::as_object).into_iter().flatten();
    env.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect()
}

/// Adds weaker values where there is no stronger one.
fn merge_missing(strong: &mut Map<String, Value>, weak: &Map<String, Value>) {
    for (key, weak) in weak {
        match (strong.get_mut(key), weak) {
            (Some(Value::Object(strong)), Value::Object(weak)) => merge_missing(strong, weak),
            (Some(Value::Array(strong)), Value::Array(weak)) => {
                let seen: HashSet<String> = strong.iter().map(Value::to_string).collect();
                strong.extend(weak.iter().filter(|item| !seen.contains(&item.to_string())).cloned());
            }
            (Some(_), _) => {}
            (None, weak) => {
                strong.insert(key.clone(), weak.clone());
            }
        }
    }
}

/// The response to `get_settings`: effective settings and each layer, weakest first. `applied` is what the session derived from them.
pub fn build_report(
    effective: &EffectiveSettings,
    layers: &[SettingsLayer],
    applied: Map<String, Value>,
) -> SettingsReport {
    SettingsReport {
        effective: effective.values.clone(),
        sources: layers.iter().map(render_layer).collect(),
        applied,
    }
}

fn render_layer(layer: &SettingsLayer) -> Value {
    let mut source = json!({"source": layer.origin.source.name(), "settings": layer.raw});
    if let Some(file) = &layer.origin.file {
        source["path"] = file.display().to_string().into();
    }
    source
}

#[cfg(test)]
mod tests;
