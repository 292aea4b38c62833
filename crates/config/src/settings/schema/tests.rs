//! Valid and invalid values.

use serde_json::json;

use super::*;
use crate::settings::schema::TypedSettings;

fn check_json(value: Value) -> CheckedValues {
    match value {
        Value::Object(values) => check_values(values),
        other => panic!("{other} is not an object"),
    }
}

#[test]
fn valid_and_unknown_values_are_kept() {
    let value = json!({
        "permissions": {
            "allow": ["A"], "ask": [], "deny": ["D"], "additionalDirectories": ["/x"],
            "defaultMode": "manual", "disableBypassPermissionsMode": "disable", "later": {"x": 1},
        },
        "env": {"A": "1"}, "model": "m", "cleanupPeriodDays": 30, "statusLine": {"type": "command", "command": "x"},
        "sandbox": {"enabled": true, "network": {"allowedDomains": ["x"]}}, "enabledMcpjsonServers": ["s"],
        "somethingNew": [1, {"a": null}],
    });
    let checked = check_json(value.clone());
    assert_eq!((Value::Object(checked.values), checked.errors), (value, vec![]));
}

#[test]
fn invalid_values_are_reported_and_dropped() {
    let rows = [
        ("deny that is a text", json!({"permissions": {"deny": "Bash"}}), "/permissions/deny", true),
        ("ask that holds a number", json!({"permissions": {"ask": ["A", 5]}}), "/permissions/ask/1", true),
        ("permissions that are a list", json!({"permissions": []}), "/permissions", true),
        ("allow that is an object", json!({"permissions": {"allow": {}}}), "/permissions/allow", false),
        (
            "an unknown mode",
            json!({"permissions": {"defaultMode": "yolo"}}),
            "/permissions/defaultMode",
            true,
        ),
        ("a sandbox that is a text", json!({"sandbox": {"enabled": "yes"}}), "/sandbox/enabled", true),
        (
            "a host that is a number",
            json!({"sandbox": {"network": {"allowedDomains": [1]}}}),
            "/sandbox/network/allowedDomains/0",
            true,
        ),
        (
            "a path that is a number",
            json!({"sandbox": {"filesystem": {"denyRead": ["/a", 1]}}}),
            "/sandbox/filesystem/denyRead",
            true,
        ),
        (
            "a port too high",
            json!({"sandbox": {"network": {"httpProxyPort": 70000}}}),
            "/sandbox/network/httpProxyPort",
            true,
        ),
        (
            "a credential without a name",
            json!({"sandbox": {"credentials": {"envVars": [{"mode": "deny"}]}}}),
            "/sandbox/credentials/envVars",
            true,
        ),
        ("deny that is null", json!({"permissions": {"deny": null}}), "/permissions/deny", true),
        ("permissions that are null", json!({"permissions": null}), "/permissions", true),
        ("hooks that are null", json!({"hooks": null}), "/hooks", true),
        ("hooks that are a list", json!({"hooks": []}), "/hooks", true),
        ("a model that is a number", json!({"model": 5}), "/model", false),
        ("a negative number of days", json!({"cleanupPeriodDays": -1}), "/cleanupPeriodDays", false),
        ("a variable that is a list", json!({"env": {"A": []}}), "/env/A", false),
        ("a variable with an impossible name", json!({"env": {"A=B": "x"}}), "/env/A=B", false),
        ("a variable with a NUL", json!({"env": {"A": "x\u{0}"}}), "/env/A", false),
    ];
    for (name, value, pointer, is_critical) in rows {
        let errors = check_json(value).errors;
        let text: Vec<(&str, bool)> =
            errors.iter().map(|error| (error.pointer.as_str(), error.is_critical)).collect();
        assert_eq!(text, [(pointer, is_critical)], "{name}");
    }
    assert!(!check_json(json!({"model": 5})).values.contains_key("model"));
    assert_eq!(
        check_json(json!({"permissions": {"allow": ["A", 1]}})).values["permissions"]["allow"],
        json!(["A"])
    );
}

#[test]
fn rules_keep_their_index_after_an_invalid_one() {
    let rules = check_json(json!({"permissions": {"allow": [1, "A"], "deny": ["D"]}})).rules;
    let row = |behavior, text: &str, pointer: &str| RuleText {
        behavior,
        text: text.into(),
        pointer: pointer.into(),
    };
    assert_eq!(
        rules,
        [
            row(PermissionBehavior::Deny, "D", "/permissions/deny/0"),
            row(PermissionBehavior::Allow, "A", "/permissions/allow/1"),
        ]
    );
}

#[test]
fn unambiguous_values_are_converted() {
    let value = json!({
        "permissions": {"disableBypassPermissionsMode": true}, "env": {"N": 5, "B": false}, "model": null,
    });
    let checked = check_json(value);
    let expected = json!({
        "permissions": {"disableBypassPermissionsMode": "disable"}, "env": {"N": "5", "B": "false"},
    });
    assert_eq!((Value::Object(checked.values), checked.errors), (expected, vec![]));
}

#[test]
fn validated_values_deserialize() {
    let valid_values: Map<String, Value> = KEYS
        .iter()
        .filter(|(path, shape, _)| path.len() == 1 && *shape != ValueType::Hooks)
        .map(|(path, shape, _)| {
            let value = match shape {
                ValueType::Text => json!("x"),
                ValueType::Bool => json!(true),
                ValueType::Number => json!(2.5),
                ValueType::TextList => json!(["x"]),
                ValueType::Variables | ValueType::Object | ValueType::ObjectOrSwitch | ValueType::Hooks => {
                    json!({"a": "x"})
                }
                ValueType::Mode | ValueType::Disable => json!("plan"),
                ValueType::Port => json!(1),
                ValueType::PathList | ValueType::Credentials(_) | ValueType::TextLists => json!([]),
            };
            (path[0].to_owned(), value)
        })
        .collect();
    let checked = check_values(valid_values.clone());
    assert_eq!((&checked.values, checked.errors), (&valid_values, vec![]));
    let known: TypedSettings = serde_json::from_value(Value::Object(checked.values)).unwrap();
    assert_eq!((known.cleanup_period_days, known.claude_md_excludes), (Some(2.5), vec!["x".to_owned()]));
}

#[test]
fn every_typed_key_is_in_the_schema() {
    let Value::Object(typed) = serde_json::to_value(TypedSettings::default()).unwrap() else {
        panic!("no object")
    };
    for key in typed.keys() {
        assert!(KEYS.iter().any(|(path, ..)| *path == [key.as_str()]), "{key}");
    }
}
