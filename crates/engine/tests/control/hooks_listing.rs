//! The list of hooks.

use serde_json::json;
use whimbrel_testkit::{Host, Script};
use whimbrel_wire::control::{GetHooksListing, HookEventCount, Initialize};
use whimbrel_wire::options::Options;

#[tokio::test]
async fn hooks_of_settings_and_host_are_listed() {
    let settings = json!({
        "hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "true"}]}]},
        "disableAllHooks": false,
    });
    let options = Options { settings: Some(settings.to_string()), ..Options::default() };
    let mut host = Host::with_script(Script::from([])).options(options).start().await.unwrap();
    let hooks = json!({"hooks": {"Stop": [{"hookCallbackIds": ["hook_0", "hook_1"]}]}});
    host.send_request(serde_json::from_value::<Initialize>(hooks).unwrap()).await.unwrap();
    let listing = host.send_request(GetHooksListing {}).await.unwrap();
    let count = |event: &str, hook_count| HookEventCount { event: event.into(), hook_count };
    assert_eq!(listing.events, [count("PreToolUse", 1), count("Stop", 2)]);
    let shown: Vec<(&str, &str, Option<&str>)> = listing
        .hooks
        .iter()
        .map(|hook| (hook.source.as_str(), hook.kind.as_str(), hook.matcher.as_deref()))
        .collect();
    assert_eq!(
        shown,
        [
            ("flagSettings", "command", Some("Bash")),
            ("sessionHook", "callback", None),
            ("sessionHook", "callback", None)
        ]
    );
    assert_eq!(listing.event_catalog.len(), 33);
    let event = |name: &str| listing.event_catalog.iter().find(|event| event.name == name).unwrap();
    assert_eq!(event("PreToolUse").matcher_field.as_deref(), Some("tool_name"));
    assert!(event("PreToolUse").supported && !event("FileChanged").supported);
    let policy = listing.policy.unwrap();
    assert!(policy.plugin_hooks_enabled && policy.disabled_by.is_empty() && !policy.allow_managed_hooks_only);
}

#[tokio::test]
async fn listing_names_who_disabled_hooks() {
    let settings = json!({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}, "disableAllHooks": true});
    let options = Options { settings: Some(settings.to_string()), ..Options::default() };
    let mut host = Host::with_script(Script::from([])).options(options).start().await.unwrap();
    let listing = host.send_request(GetHooksListing {}).await.unwrap();
    assert!(listing.hooks.is_empty() && listing.events.is_empty());
    let policy = listing.policy.unwrap();
    assert_eq!((policy.disabled_by, policy.plugin_hooks_enabled), (vec!["flagSettings".to_owned()], false));
}
