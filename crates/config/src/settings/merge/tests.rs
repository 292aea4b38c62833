//! Layers and their merged result.

use std::path::PathBuf;

use serde_json::json;
use whimbrel_wire::permission::PermissionBehavior;

use super::*;
use crate::settings::document::{SettingsDocument, parse_document};
use crate::settings::hooks::HookActionConfig;
use crate::settings::layer::check_layer;
use crate::settings::managed_policy::are_plugin_hooks_enabled;
use crate::settings::sources::LayerOrigin;
use crate::settings::trust::Trust;

fn origin(source: LayerSource) -> LayerOrigin {
    LayerOrigin {
        source,
        scope: if source == LayerSource::Project { LayerScope::Project } else { LayerScope::User },
        file: Some(PathBuf::from(format!("/{}", source.name()))),
        base: PathBuf::from(format!("/base/{}", source.name())),
    }
}

fn layer(source: LayerSource, value: &Value) -> SettingsLayer {
    let values = value.as_object().unwrap().clone();
    check_layer(origin(source), SettingsDocument::from_values(values), Trust::Full).layer
}

/// A managed layer of the host.
fn host_managed_layer(value: &Value) -> SettingsLayer {
    let values = value.as_object().unwrap().clone();
    check_layer(
        LayerOrigin { file: None, ..origin(LayerSource::Managed) },
        SettingsDocument::from_values(values),
        Trust::Full,
    )
    .layer
}

fn rules(effective: &EffectiveSettings) -> Vec<String> {
    effective.rules.iter().map(|rule| format!("{} {}", rule.behavior, rule.text)).collect()
}

fn hook_commands(effective: &EffectiveSettings) -> Vec<String> {
    let command = |hook: &HookSetting| match &hook.action {
        HookActionConfig::Command(command) => command.command.clone(),
        HookActionConfig::Http(hook) => hook.url.clone(),
        HookActionConfig::Other { kind, .. } => kind.clone(),
    };
    effective.hooks.iter().map(command).collect()
}

fn with_hook(command: &str, mut other: Value) -> Value {
    other["hooks"] = json!({"Stop": [{"hooks": [{"type": "command", "command": command}]}]});
    other
}

#[test]
fn strongest_source_wins_for_single_values() {
    use LayerSource::{Flag, Local, Managed, Project, User};
    let sources = [User, Project, Local, Flag, Managed];
    for count in 1..=sources.len() {
        let layers: Vec<SettingsLayer> = sources[..count]
            .iter()
            .map(|source| {
                let name = source.name();
                layer(
                    *source,
                    &json!({"model": name, "permissions": {"defaultMode": "plan"}, "env": {"A": name}}),
                )
            })
            .collect();
        let strongest = sources[count - 1];
        let effective = merge(&layers);
        assert_eq!(effective.typed.model.as_deref(), Some(strongest.name()));
        assert_eq!(effective.mode, Some((PermissionMode::Plan, strongest)));
        assert_eq!(effective.env, BTreeMap::from([("A".into(), strongest.name().into())]));
    }
}

#[test]
fn lists_are_joined_and_objects_merged() {
    let user = json!({
        "permissions": {"allow": ["A", "B"], "additionalDirectories": ["/x"]}, "env": {"U": "1", "X": "u"},
        "sandbox": {"enabled": true, "network": {"deniedDomains": ["u"]}}, "unknown": {"a": 1, "b": [1]},
    });
    let local = json!({
        "permissions": {"allow": ["B", "C"], "deny": ["D"], "additionalDirectories": ["/y", "/x"]}, "env": {"X": "l"},
        "sandbox": {"network": {"deniedDomains": ["l"]}}, "unknown": {"a": 2, "b": [1, 2]},
    });
    let effective = merge(&[layer(LayerSource::User, &user), layer(LayerSource::Local, &local)]);
    let expected = json!({
        "permissions": {"allow": ["B", "C", "A"], "deny": ["D"], "additionalDirectories": ["/y", "/x"]},
        "env": {"X": "l", "U": "1"},
        "sandbox": {"network": {"deniedDomains": ["l", "u"]}, "enabled": true},
        "unknown": {"a": 2, "b": [1, 2]},
    });
    assert_eq!(Value::Object(effective.values.clone()), expected);
    assert_eq!(rules(&effective), ["deny D", "allow B", "allow C", "allow A", "allow B"]);
    let directories: Vec<(&str, LayerSource)> =
        effective.directories.iter().map(|directory| (directory.path.as_str(), directory.source)).collect();
    assert_eq!(
        directories,
        [("/y", LayerSource::Local), ("/x", LayerSource::Local), ("/x", LayerSource::User)]
    );
}

#[test]
fn rule_keeps_source_base_file_and_line() {
    let text = "{\n \"permissions\": {\n  \"deny\": [\n   \"Bash(x)\"]}}";
    let checked = check_layer(origin(LayerSource::User), parse_document(text, "s").unwrap(), Trust::Full);
    let expected = RuleSetting {
        behavior: PermissionBehavior::Deny,
        text: "Bash(x)".into(),
        source: LayerSource::User,
        base: "/base/userSettings".into(),
        file: Some("/userSettings".into()),
        line: Some(4),
    };
    assert_eq!(merge(&[checked.layer]).rules, [expected]);
}

#[test]
fn managed_rules_only_drops_other_rules() {
    let only = json!({"allowManagedPermissionRulesOnly": true, "permissions": {"allow": ["M"]}});
    let nested = json!({"permissions": {"allow": ["M"], "allowManagedPermissionRulesOnly": true}});
    let others = json!({"permissions": {"allow": ["A"], "deny": ["D"], "defaultMode": "plan"}});
    for managed in [&only, &nested] {
        let effective = merge(&[
            layer(LayerSource::User, &others),
            layer(LayerSource::Flag, &others),
            layer(LayerSource::Managed, managed),
        ]);
        // Deny rules of the host remain.
        assert_eq!(rules(&effective), ["allow M", "deny D"]);
        assert!(effective.managed_rules_only);
        assert_eq!(effective.values["permissions"]["allow"], json!(["M"]));
        assert_eq!(effective.mode, Some((PermissionMode::Plan, LayerSource::Flag)));
    }
    let not_managed = merge(&[layer(LayerSource::User, &only), layer(LayerSource::Local, &others)]);
    assert_eq!((not_managed.managed_rules_only, rules(&not_managed).len()), (false, 3));
}

#[test]
fn host_managed_layer_cannot_widen_administrator_file() {
    let lock =
        json!({"allowManagedPermissionRulesOnly": true, "permissions": {"allow": ["F"]}, "model": "file"});
    let host = json!({"permissions": {"allow": ["H"], "deny": ["X"]}, "model": "host"});
    let effective = merge(&[host_managed_layer(&host), layer(LayerSource::Managed, &lock)]);
    assert_eq!(rules(&effective), ["allow F", "deny X"]);
    assert_eq!(effective.typed.model.as_deref(), Some("file"));
    let managed_only = json!({"allowManagedPermissionRulesOnly": true, "permissions": {"allow": ["H"]}});
    assert_eq!(rules(&merge(&[host_managed_layer(&managed_only)])), ["allow H"]);
}

#[test]
fn hooks_are_joined_strongest_first() {
    let layers = [LayerSource::User, LayerSource::Project, LayerSource::Managed]
        .map(|source| layer(source, &with_hook(source.name(), json!({}))));
    assert_eq!(hook_commands(&merge(&layers)), ["policySettings", "projectSettings", "userSettings"]);
}

#[test]
fn disabling_hooks_depends_on_the_source() {
    let off = || json!({"disableAllHooks": true});
    let rows: [(&str, LayerSource, Value, &[&str]); 6] = [
        ("none", LayerSource::User, json!({}), &["policySettings", "projectSettings", "userSettings"]),
        ("the user", LayerSource::User, off(), &["policySettings"]),
        ("the project, only its own", LayerSource::Project, off(), &["policySettings", "userSettings"]),
        ("an administrator, all", LayerSource::Managed, off(), &[]),
        (
            "an administrator, all but managed hooks",
            LayerSource::Managed,
            json!({"allowManagedHooksOnly": true}),
            &["policySettings"],
        ),
        (
            "a user with a setting reserved for administrators",
            LayerSource::User,
            json!({"allowManagedHooksOnly": true}),
            &["policySettings", "projectSettings", "userSettings"],
        ),
    ];
    for (name, by, setting, expected) in rows {
        let layers = [LayerSource::User, LayerSource::Project, LayerSource::Managed].map(|source| {
            let other = if source == by { setting.clone() } else { json!({}) };
            layer(source, &with_hook(source.name(), other))
        });
        let effective = merge(&layers);
        assert_eq!(hook_commands(&effective), expected, "{name}");
        assert_eq!(effective.values.contains_key("hooks"), !expected.is_empty(), "{name}");
    }
}

#[test]
fn any_source_may_disable_bypass_mode() {
    let off = json!({"permissions": {"disableBypassPermissionsMode": "disable"}});
    for source in
        [LayerSource::User, LayerSource::Project, LayerSource::Local, LayerSource::Flag, LayerSource::Managed]
    {
        assert!(
            merge(&[layer(source, &off), layer(LayerSource::Flag, &json!({}))]).bypass_disabled,
            "{source:?}"
        );
    }
    assert!(!merge(&[layer(LayerSource::User, &json!({"permissions": {}}))]).bypass_disabled);
}

#[test]
fn project_may_lower_but_not_raise_the_mode() {
    use LayerSource::{Flag, Local, Project, User};
    use PermissionMode::{AcceptEdits, BypassPermissions, Default, DontAsk, Plan};
    let rows = [
        ("only the project sets a mode", vec![(Project, AcceptEdits)], AcceptEdits),
        ("the user's mode allows less", vec![(User, Default), (Project, AcceptEdits)], Default),
        ("the user's mode is plan", vec![(User, Plan), (Project, Default)], Plan),
        ("the user's mode allows more", vec![(User, AcceptEdits), (Project, Plan)], Plan),
        ("plan mode is not raised to dontAsk", vec![(User, Plan), (Project, DontAsk)], Plan),
        ("a mode that never asks", vec![(User, Default), (Project, DontAsk)], DontAsk),
        ("local settings of the user", vec![(User, Plan), (Local, AcceptEdits)], AcceptEdits),
        ("the host", vec![(User, Plan), (Project, Default), (Flag, BypassPermissions)], BypassPermissions),
    ];
    for (name, chosen, expected) in rows {
        let layers: Vec<SettingsLayer> = chosen
            .iter()
            .map(|(source, mode)| layer(*source, &json!({"permissions": {"defaultMode": mode}})))
            .collect();
        assert_eq!(merge(&layers).mode.map(|(mode, _)| mode), Some(expected), "{name}");
    }
}

#[test]
fn no_layers_yield_default_settings() {
    assert_eq!(merge(&[]), EffectiveSettings::default());
}

#[test]
fn project_cannot_disable_plugin_hooks() {
    let off = json!({"disableAllHooks": true});
    let rows = [
        (vec![], true),
        (vec![layer(LayerSource::User, &off)], false),
        (vec![layer(LayerSource::Project, &off)], true),
        (vec![layer(LayerSource::Managed, &json!({"allowManagedHooksOnly": true}))], false),
        (vec![layer(LayerSource::User, &json!({"allowManagedHooksOnly": true}))], true),
    ];
    for (row, (layers, expected)) in rows.into_iter().enumerate() {
        assert_eq!(are_plugin_hooks_enabled(&layers), expected, "row {row}");
    }
}

#[test]
fn report_contains_effective_settings_and_layers() {
    let layer = |source, scope, file: Option<&str>, value: Value| {
        let origin = LayerOrigin { source, scope, file: file.map(Into::into), base: "/".into() };
        check_layer(
            origin,
            SettingsDocument::from_values(value.as_object().unwrap().clone()),
            Trust::Untrusted,
        )
        .layer
    };
    let project = json!({"model": "p", "permissions": {"allow": ["A"], "deny": ["D"]}});
    let layers = [
        layer(LayerSource::Project, LayerScope::Project, Some("/p/s.json"), project.clone()),
        layer(LayerSource::Flag, LayerScope::User, None, json!({"model": "f"})),
    ];
    let applied = json!({"model": "full-name"}).as_object().unwrap().clone();
    let report = build_report(&merge(&layers), &layers, applied);
    let expected = json!({
        "effective": {"model": "f", "permissions": {"deny": ["D"]}},
        "sources": [
            {"source": "projectSettings", "settings": project, "path": "/p/s.json"},
            {"source": "flagSettings", "settings": {"model": "f"}},
        ],
        "applied": {"model": "full-name"},
    });
    assert_eq!(serde_json::to_value(report).unwrap(), expected);
}
