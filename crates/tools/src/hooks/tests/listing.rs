//! Tests of the list of hooks for the host.

use serde_json::{Value, json};
use whimbrel_config::settings::LayerSource;
use whimbrel_config::settings::hooks::HttpHookConfig;

use super::super::{CommandHook, HookOrigin, HookSet, HookSource};

#[test]
fn each_kind_of_hook_is_listed_with_its_source() {
    let initialize =
        json!({"hooks": {"Stop": [{"matcher": "ignored", "hookCallbackIds": ["hook_0"], "timeout": 5}]}});
    let mut set = HookSet::from_initialize(&serde_json::from_value(initialize).unwrap()).unwrap();
    let file = HookOrigin::new(HookSource::Settings(LayerSource::Project), "/w/settings.json, line 3");
    let command = CommandHook {
        command: "./check".into(),
        timeout: Some(7.0),
        background: true,
        condition: Some("Bash(rm *)".into()),
        once: true,
        ..CommandHook::default()
    };
    set.add_commands("PreToolUse", Some(" Bash "), vec![command], &file).unwrap();
    let plugin = HookOrigin::new(HookSource::Plugin { name: "fmt".into() }, "fmt/hooks.json");
    let http: HttpHookConfig =
        serde_json::from_value(json!({"url": "https://h.example/a?key=secret#x", "timeout": 2})).unwrap();
    set.add_http("PostToolUse", None, &http, &plugin).unwrap();
    set.add_unavailable("PreToolUse", None, "no such type", &file).unwrap();
    let expected: [Value; 4] = [
        json!({"event": "Stop", "matcher": "ignored", "source": "sessionHook", "origin": "the host (initialize)",
            "type": "callback", "callbackId": "hook_0", "timeout": 5.0}),
        json!({"event": "PreToolUse", "matcher": "Bash", "source": "projectSettings",
            "origin": "/w/settings.json, line 3", "type": "command", "command": "./check", "timeout": 7.0,
            "if": "Bash(rm *)", "async": true, "once": true}),
        json!({"event": "PostToolUse", "source": "pluginHook", "pluginName": "fmt", "origin": "fmt/hooks.json",
            "type": "http", "url": "https://h.example/a", "timeout": 2.0}),
        json!({"event": "PreToolUse", "source": "projectSettings", "origin": "/w/settings.json, line 3",
            "type": "unavailable", "error": "/w/settings.json, line 3: no such type", "timeout": 86400.0,
            "onFailure": "block"}),
    ];
    assert_eq!(json!(set.list()), json!(expected));
}
