use serde_json::json;

use super::*;

fn filtered(value: &Value, trust: Trust) -> (Value, Vec<Withheld>) {
    let (filtered, withheld) = filter_values(value.as_object().unwrap().clone(), LayerScope::Project, trust);
    (Value::Object(filtered), withheld)
}

#[test]
fn settings_apply_from_their_trust_level() {
    use Trust::{Full, Limited, Untrusted};
    /// Level from which on the setting applies; `None` for never.
    type Row = (&'static str, Value, Option<Trust>);
    let rows: Vec<Row> = vec![
        ("deny rules", json!({"permissions": {"deny": ["Bash"]}}), Some(Untrusted)),
        ("ask rules", json!({"permissions": {"ask": ["Bash"]}}), Some(Untrusted)),
        ("allow rules", json!({"permissions": {"allow": ["Bash"]}}), Some(Full)),
        ("an empty list of allow rules", json!({"permissions": {"allow": []}}), Some(Untrusted)),
        ("directories", json!({"permissions": {"additionalDirectories": ["/"]}}), Some(Full)),
        ("something new about permissions", json!({"permissions": {"grantAll": true}}), Some(Full)),
        ("no bypass", json!({"permissions": {"disableBypassPermissionsMode": "disable"}}), Some(Untrusted)),
        ("the mode plan", json!({"permissions": {"defaultMode": "plan"}}), Some(Untrusted)),
        ("the mode dontAsk", json!({"permissions": {"defaultMode": "dontAsk"}}), Some(Untrusted)),
        ("the mode manual", json!({"permissions": {"defaultMode": "manual"}}), Some(Untrusted)),
        ("the mode acceptEdits", json!({"permissions": {"defaultMode": "acceptEdits"}}), Some(Limited)),
        ("the mode bypassPermissions", json!({"permissions": {"defaultMode": "bypassPermissions"}}), None),
        ("the mode auto", json!({"permissions": {"defaultMode": "auto"}}), None),
        ("hooks", json!({"hooks": {"Stop": []}}), Some(Limited)),
        ("hooks that decide for the user", json!({"hooks": {"PermissionRequest": []}}), Some(Full)),
        ("hooks that answer a server", json!({"hooks": {"Elicitation": []}}), Some(Full)),
        ("hooks that change the user's answer", json!({"hooks": {"ElicitationResult": []}}), Some(Full)),
        ("a variable", json!({"env": {"DATABASE_URL": "x"}}), Some(Full)),
        ("the address of the model", json!({"env": {"ANTHROPIC_BASE_URL": "x"}}), None),
        ("a proxy in small letters", json!({"env": {"https_proxy": "x"}}), None),
        ("a helper that fetches the key", json!({"apiKeyHelper": "x"}), None),
        ("a status line", json!({"statusLine": {"command": "x"}}), Some(Full)),
        ("MCP servers", json!({"enableAllProjectMcpServers": true}), Some(Full)),
        ("approved MCP servers", json!({"enabledMcpjsonServers": ["x"]}), Some(Full)),
        ("refused MCP servers", json!({"disabledMcpjsonServers": ["x"]}), Some(Untrusted)),
        ("plugins", json!({"enabledPlugins": {"x": true}}), Some(Full)),
        ("marketplaces", json!({"extraKnownMarketplaces": {"x": {}}}), Some(Full)),
        ("something unknown", json!({"newThing": 1}), Some(Full)),
        ("a model", json!({"model": "m"}), Some(Untrusted)),
        ("how long transcripts are kept", json!({"cleanupPeriodDays": 0}), None),
        (
            "a sandbox",
            json!({"sandbox": {"enabled": true, "allowUnsandboxedCommands": false}}),
            Some(Untrusted),
        ),
        ("no sandbox", json!({"sandbox": {"enabled": false}}), None),
        ("a way out of the sandbox", json!({"sandbox": {"excludedCommands": ["x"]}}), None),
        ("a host to talk to", json!({"sandbox": {"network": {"allowedDomains": ["x"]}}}), None),
        ("a server of its own", json!({"sandbox": {"network": {"allowLocalBinding": true}}}), Some(Full)),
        ("a host not to talk to", json!({"sandbox": {"network": {"deniedDomains": ["x"]}}}), Some(Untrusted)),
        ("another proxy for the sandbox", json!({"sandbox": {"network": {"httpProxyPort": 1}}}), None),
        ("files not to read", json!({"sandbox": {"filesystem": {"denyRead": ["x"]}}}), Some(Untrusted)),
        ("a switch of an administrator", json!({"allowManagedHooksOnly": true}), None),
    ];
    for (name, value, from) in rows {
        for trust in [Untrusted, Limited, Full] {
            let (filtered, withheld) = filtered(&value, trust);
            let applies = from.is_some_and(|from| trust >= from);
            assert_eq!(
                (filtered == value, withheld.is_empty()),
                (applies, applies),
                "{name} at {trust:?}: {withheld:?}"
            );
        }
    }
}

#[test]
fn user_settings_are_not_filtered() {
    let own = json!({"apiKeyHelper": "x", "env": {"PATH": "x"}, "permissions": {"defaultMode": "bypassPermissions"}});
    let (filtered, withheld) =
        filter_values(own.as_object().unwrap().clone(), LayerScope::User, Trust::Untrusted);
    assert_eq!((Value::Object(filtered), withheld), (own, vec![]));
}

#[test]
fn values_of_wrong_type_are_left_to_validation() {
    for value in [json!({"permissions": 1}), json!({"permissions": {"deny": 1}}), json!({"sandbox": []})] {
        assert_eq!(filtered(&value, Trust::Untrusted).0, value);
    }
}

#[test]
fn one_warning_lists_all_withheld_values() {
    let value = json!({
        "permissions": {"allow": ["A", "B", "C", "D", "E", "F", "G"], "deny": ["X"], "defaultMode": "bypassPermissions"},
        "hooks": {"Stop": [], "a\u{1b}[2J": []},
        "model": "m",
    });
    let (_, withheld) = filtered(&value, Trust::Untrusted);
    let warning = render_warning("/p/.claude/settings.json", &withheld).unwrap();
    for part in [
        "/p/.claude/settings.json",
        "(A, B, C, D, E and 2 more)",
        "hooks (Stop, a\\u{1b}[2J)",
        "bypassPermissions",
    ] {
        assert!(warning.contains(part), "{part}: {warning}");
    }
    assert!(!warning.contains("deny") && !warning.contains("model"), "{warning}");
    assert_eq!(render_warning("x", &[]), None);
}
