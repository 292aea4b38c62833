//! Restrictions by an administrator, and `disableAllHooks`: which rules and hooks of the other layers apply.
//!
//! - `allowManagedPermissionRulesOnly`: only an administrator's rules apply, and restrictive ones of the host; if a file
//!   of the administrator sets it, the host's managed layer may deny but not allow
//! - `allowManagedHooksOnly`: only an administrator's hooks run
//! - `disableAllHooks`: set by an administrator, no hook runs; by the user or the host, only an administrator's run; by
//!   the project, its own do not run: it cannot disable hooks of the user

use serde_json::Value;
use whimbrel_wire::control::HookPolicy;
use whimbrel_wire::permission::PermissionBehavior;

use crate::settings::http_hooks;
use crate::settings::layer::SettingsLayer;
use crate::settings::sources::{LayerScope, LayerSource};

/// Whether hooks of plugins run. A project cannot disable them.
pub fn are_plugin_hooks_enabled(layers: &[SettingsLayer]) -> bool {
    let off = |layer: &SettingsLayer| {
        layer.origin.scope == LayerScope::User && is_enabled(layer, "disableAllHooks")
    };
    !layers.iter().any(off) && !is_enabled_by_administrator(layers, "allowManagedHooksOnly")
}

/// Describes which settings decide whether hooks run.
pub fn describe_hook_policy(layers: &[SettingsLayer]) -> HookPolicy {
    let disabling = layers.iter().filter(|layer| is_enabled(layer, "disableAllHooks"));
    HookPolicy {
        disabled_by: disabling.map(|layer| layer.origin.source.name().to_owned()).collect(),
        allow_managed_hooks_only: is_enabled_by_administrator(layers, "allowManagedHooksOnly"),
        plugin_hooks_enabled: are_plugin_hooks_enabled(layers),
    }
}

/// Applies the administrator's restrictions on other layers, and `disableAllHooks`.
pub(super) fn apply_managed_policy(layers: &[SettingsLayer]) -> Vec<SettingsLayer> {
    let rules_only = is_enabled_by_administrator(layers, "allowManagedPermissionRulesOnly");
    let is_set_in_file = layers.iter().any(|layer| {
        is_managed(layer)
            && layer.origin.file.is_some()
            && is_enabled(layer, "allowManagedPermissionRulesOnly")
    });
    let hooks_only = is_enabled_by_administrator(layers, "allowManagedHooksOnly");
    let off = |by: fn(&SettingsLayer) -> bool| {
        layers.iter().any(|layer| by(layer) && is_enabled(layer, "disableAllHooks"))
    };
    let off_by_project = off(|layer| layer.origin.scope == LayerScope::Project);
    let off_by_user = off(|layer| layer.origin.scope == LayerScope::User && !is_managed(layer));
    let off_for_all = off(is_managed);
    let mut is_managed_only = layers.to_vec();
    for layer in &mut is_managed_only {
        if !is_managed(layer) {
            drop_managed_switches(layer);
        }
        if layer.origin.scope == LayerScope::Project {
            layer.values.remove(http_hooks::ALLOWED_URLS_KEY);
            layer.values.remove(http_hooks::ALLOWED_ENV_VARS_KEY);
        }
        if rules_only && layer.origin.source == LayerSource::Flag {
            drop_rules(layer, &[PermissionBehavior::Allow]);
        } else if rules_only && !is_managed(layer) {
            drop_rules(layer, PermissionBehavior::ALL);
        } else if is_set_in_file && layer.origin.file.is_none() {
            drop_rules(layer, &[PermissionBehavior::Allow]);
        }
        let runs = match (is_managed(layer), layer.origin.scope) {
            (true, _) => !off_for_all,
            (false, LayerScope::Project) => !(off_for_all || off_by_user || off_by_project || hooks_only),
            (false, LayerScope::User) => !(off_for_all || off_by_user || hooks_only),
        };
        if !runs {
            layer.hooks.clear();
            layer.values.remove("hooks");
        }
    }
    is_managed_only
}

fn drop_managed_switches(layer: &mut SettingsLayer) {
    for key in ["allowManagedPermissionRulesOnly", "allowManagedHooksOnly"] {
        layer.values.remove(key);
        if let Some(Value::Object(permissions)) = layer.values.get_mut("permissions") {
            permissions.remove(key);
        }
    }
}

fn drop_rules(layer: &mut SettingsLayer, behaviors: &[PermissionBehavior]) {
    layer.rules.retain(|rule| !behaviors.contains(&rule.behavior));
    if let Some(Value::Object(permissions)) = layer.values.get_mut("permissions") {
        for behavior in behaviors {
            permissions.remove(behavior.as_str());
        }
    }
}

fn is_enabled(layer: &SettingsLayer, key: &str) -> bool {
    [layer.values.get(key), layer.permission_value(key)].contains(&Some(&Value::Bool(true)))
}

fn is_managed(layer: &SettingsLayer) -> bool {
    layer.origin.source == LayerSource::Managed
}

pub(super) fn is_enabled_by_administrator(layers: &[SettingsLayer], key: &str) -> bool {
    layers.iter().any(|layer| is_managed(layer) && is_enabled(layer, key))
}
