//! Valid and invalid hooks.

use serde_json::json;

use super::*;

#[test]
fn hooks_are_parsed_in_order() {
    let (entries, errors) = parse_hooks(&json!({
        "PreToolUse": [
            {"matcher": "Bash", "hooks": [
                {"type": "command", "command": "check", "timeout": 5, "onFailure": "block"},
                {"type": "http", "url": "https://example.invalid"},
            ]},
            {"hooks": [{"type": "command", "command": "log", "async": true, "args": ["-a"]}]},
        ],
    }));
    let entry = |matcher: Option<&str>, handler, pointer: &str| HookConfig {
        event: HookEvent::PreToolUse,
        matcher: matcher.map(String::from),
        action: handler,
        pointer: pointer.into(),
    };
    let check = CommandHookConfig {
        command: "check".into(),
        timeout: Some(5.0),
        on_failure: Some(OnFailure::Block),
        ..CommandHookConfig::default()
    };
    let log = CommandHookConfig {
        command: "log".into(),
        is_async: true,
        args: Some(vec!["-a".into()]),
        ..CommandHookConfig::default()
    };
    let http = HttpHookConfig { url: "https://example.invalid".into(), ..HttpHookConfig::default() };
    assert_eq!(errors, []);
    assert_eq!(
        entries,
        [
            entry(Some("Bash"), HookActionConfig::Command(check), "/hooks/PreToolUse/0/hooks/0"),
            entry(Some("Bash"), HookActionConfig::Http(http), "/hooks/PreToolUse/0/hooks/1"),
            entry(None, HookActionConfig::Command(log), "/hooks/PreToolUse/1/hooks/0"),
        ]
    );
}

#[test]
fn errors_are_reported_and_valid_hooks_kept() {
    let right = json!({"type": "command", "command": "x"});
    let rows = [
        ("no object", json!([]), "/hooks", true, 0),
        ("an unknown event", json!({"Later": [{"hooks": [right]}]}), "/hooks/Later", false, 0),
        ("no list", json!({"Stop": {}}), "/hooks/Stop", true, 0),
        (
            "a misspelled field",
            json!({"Stop": [{"hooks": [{"type": "command", "command": "x", "onfailure": "block"}]}]}),
            "/hooks/Stop/0/hooks/0/onfailure",
            false,
            1,
        ),
        ("no hooks", json!({"Stop": [{"matcher": "x"}]}), "/hooks/Stop/0", true, 0),
        (
            "a matcher that is a list",
            json!({"Stop": [{"matcher": [], "hooks": []}]}),
            "/hooks/Stop/0/matcher",
            true,
            0,
        ),
        (
            "no type",
            json!({"Stop": [{"hooks": [{"command": "x"}, right]}]}),
            "/hooks/Stop/0/hooks/0",
            true,
            1,
        ),
        (
            "no command",
            json!({"Stop": [{"hooks": [right, {"type": "command"}]}]}),
            "/hooks/Stop/0/hooks/1",
            true,
            1,
        ),
        (
            "a misspelled field of an address",
            json!({"Stop": [{"hooks": [{"type": "http", "url": "http://x.example", "header": {}}]}]}),
            "/hooks/Stop/0/hooks/0/header",
            false,
            1,
        ),
        ("no address", json!({"Stop": [{"hooks": [{"type": "http"}]}]}), "/hooks/Stop/0/hooks/0", true, 0),
        (
            "unknown terms",
            json!({"Stop": [{"hooks": [{"type": "prompt", "onFailure": "deny"}]}]}),
            "/hooks/Stop/0/hooks/0",
            true,
            0,
        ),
        (
            "an async hook that should block",
            json!({"Stop": [{"hooks": [{"type": "command", "command": "x", "async": true, "onFailure": "block"}]}]}),
            "/hooks/Stop/0/hooks/0",
            true,
            0,
        ),
        (
            "an unknown type",
            json!({"Stop": [{"hooks": [{"type": "magic"}]}]}),
            "/hooks/Stop/0/hooks/0",
            true,
            0,
        ),
    ];
    for (name, value, pointer, is_critical, count) in rows {
        let (entries, errors) = parse_hooks(&value);
        let text: Vec<(&str, bool)> =
            errors.iter().map(|error| (error.pointer.as_str(), error.is_critical)).collect();
        assert_eq!((text, entries.len()), (vec![(pointer, is_critical)], count), "{name}");
    }
}
