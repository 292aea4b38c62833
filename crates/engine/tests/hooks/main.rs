//! Hooks of a session: their decisions, their output, and the events that run them.

#![expect(clippy::unwrap_used, reason = "test support may panic")]

mod model_switch;

use std::sync::mpsc;

use serde_json::{Value, json};
use whimbrel_testkit::{Host, HostResponse, Reply};
use whimbrel_wire::control::Initialize;
use whimbrel_wire::options::{Options, PermissionPromptTool, SettingSource};

/// An `initialize` request that registers a callback hook for these events.
fn hook_registration(events: &[&str]) -> Initialize {
    let hook = json!([{"hookCallbackIds": ["h"]}]);
    let hooks: serde_json::Map<String, Value> =
        events.iter().map(|event| ((*event).to_owned(), hook.clone())).collect();
    serde_json::from_value(json!({ "hooks": hooks })).unwrap()
}

#[tokio::test]
async fn permission_hook_does_not_wait_for_notification_hook() {
    let script = [Reply::tool("Bash", json!({"command": "touch made"})), Reply::text("Done.")];
    let (sender, inputs) = mpsc::channel();
    let mut host = Host::with_script(script)
        .configure(|options| options.permission_prompt_tool = Some(PermissionPromptTool::Stdio))
        .on_request(move |request| {
            let request = serde_json::to_value(request).unwrap();
            let event = request["input"]["hook_event_name"].as_str().unwrap_or("can_use_tool").to_owned();
            let allow = json!({"hookEventName": "PermissionRequest", "decision": {"behavior": "allow"}});
            let answer = match event.as_str() {
                "PermissionRequest" => HostResponse::Success(json!({ "hookSpecificOutput": allow })),
                // No response to the permission request nor to the notification hook.
                _ => HostResponse::NoResponse,
            };
            sender.send(event).unwrap();
            answer
        })
        .start()
        .await
        .unwrap();
    host.send_request(hook_registration(&["PermissionRequest", "Notification"])).await.unwrap();
    host.run("Go.").await.unwrap();
    assert!(host.dirs().workspace().join("made").exists());
    let inputs: Vec<String> = inputs.try_iter().collect();
    assert!(inputs.contains(&"PermissionRequest".to_owned()), "{inputs:?}");
    assert!(inputs.contains(&"Notification".to_owned()), "{inputs:?}");
}

/// A session whose hooks respond by event; also returns the inputs that they received.
async fn host_with_hooks(
    script: Vec<Reply>,
    events: &[&str],
    reply: impl Fn(&str) -> Value + Send + 'static,
) -> (Host, mpsc::Receiver<Value>) {
    let (sender, inputs) = mpsc::channel();
    let mut host = Host::with_script(script)
        .on_request(move |request| {
            let input = serde_json::to_value(request).unwrap()["input"].clone();
            let answer = reply(input["hook_event_name"].as_str().unwrap_or_default());
            sender.send(input).unwrap();
            HostResponse::Success(answer)
        })
        .start()
        .await
        .unwrap();
    host.send_request(hook_registration(events)).await.unwrap();
    (host, inputs)
}

fn project_options() -> Options {
    Options { setting_sources: Some(vec![SettingSource::Project]), ..Options::default() }
}

#[tokio::test]
async fn session_start_and_pre_compact_hooks_run() {
    let hook = |command: &str| json!([{"hooks": [{"type": "command", "command": command}]}]);
    let hooks = json!({
        "SessionStart": hook("echo FROM THE START"),
        "PreCompact": hook("cat > input.json; echo keep it all >&2; exit 2"),
    });
    let settings = json!({ "hooks": hooks }).to_string();
    let host =
        Host::with_script([Reply::text("One."), Reply::text("Never said.")]).options(project_options());
    let mut host = host.file(".claude/settings.json", settings).start().await.unwrap();
    host.run("Go.").await.unwrap();
    let result = host.run("/compact the names").await.unwrap().result.unwrap_or_default();
    assert!(result.contains("keep it all"), "{result}");
    let requests = host.model_requests();
    assert!(
        requests.len() == 1 && requests[0].contains_text("FROM THE START"),
        "{:?}",
        requests[0].messages()
    );
    let text = std::fs::read(host.dirs().workspace().join("input.json")).unwrap();
    let text: Value = serde_json::from_slice(&text).unwrap();
    assert_eq!((&text["trigger"], &text["custom_instructions"]), (&json!("manual"), &json!("the names")));
}

#[tokio::test]
async fn replaced_tool_output_is_valid_or_ignored_with_warning() {
    let rows = [
        ("some fields", json!({"stdout": "OTHER"}), "OTHER"),
        ("some fields and another", json!({"stdout": "OTHER", "exit": 0}), "THE RESULT"),
        ("another field", json!({"output": "OTHER"}), "THE RESULT"),
        ("a number", json!(5), "THE RESULT"),
        ("a list of no blocks", json!(["OTHER"]), "THE RESULT"),
    ];
    for (name, output, result) in rows {
        let script = vec![Reply::tool("Bash", json!({"command": "echo THE RESULT"})), Reply::text("Done.")];
        let answer =
            json!({"hookSpecificOutput": {"hookEventName": "PostToolUse", "updatedToolOutput": output}});
        let (mut host, inputs) = host_with_hooks(script, &["PostToolUse"], move |_| answer.clone()).await;
        host.run("Go.").await.unwrap();
        assert_eq!(inputs.try_iter().count(), 1, "{name}");
        assert_eq!(host.model_requests()[1].last_text(), result, "{name}");
        let lines = host.received().iter().map(|received| &received.json);
        let warnings: Vec<&Value> =
            lines.filter(|line| line["level"] == "warning").map(|line| &line["content"]).collect();
        let warning = json!(
            "PostToolUse hook: its replacement for the result of Bash does not have the shape of a result and is ignored"
        );
        let expected = if result == "OTHER" { vec![] } else { vec![&warning] };
        assert_eq!(warnings, expected, "{name}");
    }
}
