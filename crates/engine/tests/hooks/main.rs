//! Hooks that decide on permissions and model switches, and settings or rules that cannot be read.

#![expect(clippy::unwrap_used, reason = "what helps a test fails as a test does")]

use std::sync::mpsc;

use serde_json::{Value, json};
use whimbrel_testkit::{Host, HostResponse, Reply};
use whimbrel_wire::control::{GetSettings, Initialize, SetModel};
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
    let (sender, told) = mpsc::channel();
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
    let told: Vec<String> = told.try_iter().collect();
    assert!(told.contains(&"PermissionRequest".to_owned()), "{told:?}");
    assert!(told.contains(&"Notification".to_owned()), "{told:?}");
}

/// A session whose hooks respond by event; also returns the inputs that they received.
async fn host_with_hooks(
    script: Vec<Reply>,
    events: &[&str],
    reply: impl Fn(&str) -> Value + Send + 'static,
) -> (Host, mpsc::Receiver<Value>) {
    let (sender, told) = mpsc::channel();
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
    (host, told)
}

const SWITCH_EVENTS: [&str; 2] = ["PreModelSwitch", "PostModelSwitch"];

#[tokio::test]
async fn model_switch_hooks_run_and_can_add_context() {
    let script = vec![Reply::text("One."), Reply::text("Two.")];
    let context = json!({"hookEventName": "PostModelSwitch", "additionalContext": "You are the other one."});
    let reply = move |event: &str| match event {
        "PostModelSwitch" => json!({ "hookSpecificOutput": context }),
        _ => json!({}),
    };
    let (mut host, told) = host_with_hooks(script, &SWITCH_EVENTS, reply).await;
    host.run("Go.").await.unwrap();
    let switched = host.send_request(SetModel { model: Some("opus".into()) }).await.unwrap();
    let told: Vec<Value> = told.try_iter().collect();
    let events: Vec<&str> = told.iter().filter_map(|input| input["hook_event_name"].as_str()).collect();
    assert_eq!(events, SWITCH_EVENTS);
    for input in &told {
        assert_eq!((&input["source"], &input["requested_model"]), (&json!("sdk"), &json!("opus")), "{input}");
        assert_eq!(input["to_model"].as_str(), switched.model.as_deref());
        assert_ne!(input["from_model"], input["to_model"]);
    }
    host.run("Again.").await.unwrap();
    assert!(
        host.model_requests()[1].contains_text("You are the other one."),
        "{:?}",
        host.model_requests()[1].messages()
    );
}

#[tokio::test]
async fn hook_can_deny_a_model_switch() {
    let script = vec![Reply::text("One."), Reply::text("Two.")];
    let refusal = json!({"hookEventName": "PreModelSwitch", "permissionDecision": "deny", "permissionDecisionReason": "too dear"});
    let (mut host, told) =
        host_with_hooks(script, &SWITCH_EVENTS, move |_| json!({ "hookSpecificOutput": refusal })).await;
    let refused = host.send_request(SetModel { model: Some("opus".into()) }).await.unwrap_err().to_string();
    assert!(refused.contains("too dear") && refused.contains("stays"), "{refused}");
    let said = host.run("/model opus").await.unwrap().result.unwrap_or_default();
    assert!(said.contains("too dear") && said.contains("stays"), "{said}");
    let told: Vec<Value> = told.try_iter().collect();
    let sources: Vec<&str> = told.iter().filter_map(|input| input["source"].as_str()).collect();
    assert_eq!(sources, ["sdk", "command"], "nothing is told of a switch that was not made");
}

/// A session whose model switch hook gets its response from the test.
async fn host_with_manual_hooks() -> Host {
    let mut host =
        Host::with_script(Vec::new()).on_request(|_| HostResponse::NoResponse).start().await.unwrap();
    host.send_request(hook_registration(&SWITCH_EVENTS[..1])).await.unwrap();
    host
}

/// Sends a control request without waiting for the response.
async fn send_control_request(host: &mut Host, id: &str, request: Value) {
    let line = json!({"type": "control_request", "request_id": id, "request": request});
    host.send_line(&line.to_string()).await.unwrap();
}

/// Waits for the hook request, responds to it and returns the models of the switch (from, to).
async fn answer_hook(host: &mut Host, decision: &str) -> (String, String) {
    let asked = host.next_matching(&json!({"type": "control_request"})).await.unwrap();
    let input = &asked["request"]["input"];
    let switch = ["from_model", "to_model"].map(|name| input[name].as_str().unwrap().to_owned());
    let said = json!({"hookEventName": "PreModelSwitch", "permissionDecision": decision});
    let answer = json!({"subtype": "success", "request_id": asked["request_id"], "response": {"hookSpecificOutput": said}});
    let line = json!({"type": "control_response", "response": answer});
    host.send_line(&line.to_string()).await.unwrap();
    switch.into()
}

async fn current_model(host: &mut Host) -> String {
    let settings = host.send_request(GetSettings {}).await.unwrap();
    serde_json::to_value(settings).unwrap()["applied"]["model"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn model_switches_are_applied_in_request_order() {
    let mut host = host_with_manual_hooks().await;
    let first = current_model(&mut host).await;
    send_control_request(&mut host, "a", json!({"subtype": "set_model", "model": "sonnet"})).await;
    // The current model, one whose switch is denied, and a change by settings that runs no hook.
    send_control_request(&mut host, "b", json!({"subtype": "set_model", "model": first})).await;
    send_control_request(&mut host, "c", json!({"subtype": "set_model", "model": "sonnet"})).await;
    send_control_request(
        &mut host,
        "d",
        json!({"subtype": "apply_flag_settings", "settings": {"model": "haiku"}}),
    )
    .await;
    host.send_prompt("/model sonnet").await.unwrap();
    let (from, sonnet) = answer_hook(&mut host, "allow").await;
    assert_eq!(from, first);
    assert_eq!(answer_hook(&mut host, "allow").await, (sonnet.clone(), first.clone()));
    assert_eq!(answer_hook(&mut host, "deny").await, (first.clone(), sonnet.clone()));
    let (haiku, to) = answer_hook(&mut host, "allow").await;
    assert!(haiku.contains("haiku") && to == sonnet, "{haiku} {to}");
    let said = host.next_result().await.unwrap().result.unwrap_or_default();
    assert!(said.contains(&sonnet), "{said}");
    assert_eq!(current_model(&mut host).await, sonnet);
    let answers: Vec<&Value> = host.received().iter().map(|heard| &heard.json["response"]).collect();
    let ids = answers.iter().filter_map(|answer| answer["request_id"].as_str());
    let ids: Vec<&str> = ids.filter(|id| id.len() == 1).collect();
    assert_eq!(ids, ["a", "b", "c", "d"]);
    let refused = answers.iter().find(|answer| answer["request_id"] == "c").unwrap();
    assert!(refused["error"].as_str().unwrap().contains(&format!("stays {first}")), "{refused}");
}

#[tokio::test]
async fn model_command_waiting_for_a_switch_can_be_interrupted() {
    let mut host = host_with_manual_hooks().await;
    let first = current_model(&mut host).await;
    send_control_request(&mut host, "a", json!({"subtype": "set_model", "model": "sonnet"})).await;
    host.next_matching(&json!({"type": "control_request"})).await.unwrap();
    host.send_prompt("/model haiku").await.unwrap();
    host.next_matching(&json!({"type": "system", "subtype": "init"})).await.unwrap();
    send_control_request(&mut host, "b", json!({"subtype": "interrupt"})).await;
    let said = host.next_result().await.unwrap().result.unwrap_or_default();
    assert!(said.contains(&format!("stays {first}")), "{said}");
    assert_eq!(current_model(&mut host).await, first);
}

fn project_options() -> Options {
    Options { setting_sources: Some(vec![SettingSource::Project]), ..Options::default() }
}

#[tokio::test]
async fn command_file_with_unreadable_deny_rules_is_not_run() {
    let rule = "---\ndescription: Greets\ndisallowed-tools: Bash(ls\n---\nSay hello.";
    let head = "---\ndescription: Greets\ndisallowed-tools: {a: b}\n---\nSay hello.";
    let (command, skill) = (".claude/commands/greet.md", ".claude/skills/greet/SKILL.md");
    let call = || Reply::tool("Skill", json!({"skill": "greet"}));
    // Invoked by the user and by the model; with an invalid rule and with an invalid front matter.
    for (path, text, told) in [
        (command, rule, "/greet was not run. "),
        (skill, rule, "/greet was not run. "),
        (command, head, "greet.md cannot be read"),
        (skill, head, "SKILL.md cannot be read"),
    ] {
        let script = [call(), Reply::text("Done."), Reply::text("Done.")];
        let mut host =
            Host::with_script(script).options(project_options()).file(path, text).start().await.unwrap();
        host.run("/greet").await.unwrap();
        host.run("Greet.").await.unwrap();
        let heard: Vec<String> = host.received().iter().map(|heard| heard.json.to_string()).collect();
        assert!(heard.iter().any(|line| line.contains(told)), "{path} {text}: {heard:#?}");
        assert!(heard.iter().any(|line| line.contains("disallowed-tools")), "{path} {text}: {heard:#?}");
        assert!(
            host.model_requests().iter().all(|asked| !asked.contains_text("Say hello.")),
            "{path} {text}"
        );
    }
}

#[tokio::test]
async fn settings_with_unreadable_deny_rules_prevent_the_start() {
    let rows = [
        ("a rule", r#"{"permissions":{"deny":["Bash(ls"]}}"#, "Bash(ls"),
        ("a rule that asks", "{\"permissions\":{\"ask\":[\n\"Read(a) b\"]}}", "settings.json, line 2"),
        ("a list", r#"{"permissions":{"deny":"Bash"}}"#, "permissions.deny"),
        ("a file", r#"{"permissions":{"deny":["Bash"]},}"#, "settings.json"),
    ];
    for (name, text, told) in rows {
        let host = Host::with_script([Reply::text("Never said.")]).options(project_options());
        let mut host = host.file(".claude/settings.json", text).start().await.unwrap();
        host.send_prompt("Go.").await.unwrap();
        let result = host.next_result().await.unwrap();
        let said = serde_json::to_value(&result).unwrap().to_string();
        assert!(result.is_error && said.contains(told), "{name}: {said}");
        assert_eq!((host.model_requests().len(), host.finish().await.unwrap().code), (0, 1), "{name}");
        let lenient = Options { tolerate_bad_settings: true, ..project_options() };
        let host = Host::with_script([Reply::text("Said.")]).options(lenient);
        let mut host = host.file(".claude/settings.json", text).start().await.unwrap();
        assert_eq!(host.run("Go.").await.unwrap().result.as_deref(), Some("Said."), "{name}");
        let mut lines = host.received().iter().map(|heard| &heard.json);
        assert!(lines.any(|line| line["level"] == "warning" && line.to_string().contains(told)), "{name}");
    }
}

#[tokio::test]
async fn unreadable_permission_response_denies_with_one_warning() {
    let rows = [
        ("no behavior", json!({"message": "sure"})),
        ("an unknown one", json!({"behavior": "maybe"})),
        ("a list", json!(["allow"])),
        ("an input that is none", json!({"behavior": "allow", "updatedInput": 5})),
    ];
    for (name, reply) in rows {
        let script = [Reply::tool("Bash", json!({"command": "touch made"})), Reply::text("Done.")];
        let mut host = Host::with_script(script)
            .configure(|options| options.permission_prompt_tool = Some(PermissionPromptTool::Stdio))
            .on_request(move |_| HostResponse::Success(reply.clone()))
            .start()
            .await
            .unwrap();
        let result = host.run("Go.").await.unwrap();
        assert_eq!(result.permission_denials.len(), 1, "{name}");
        assert!(!host.dirs().workspace().join("made").exists(), "{name}");
        assert!(host.model_requests()[1].contains_text("Tool permission request failed"), "{name}");
        let lines = host.received().iter().map(|heard| &heard.json);
        let warnings = lines.filter(|line| line["subtype"] == "informational" && line["level"] == "warning");
        let told: Vec<String> = warnings.map(|line| line["content"].to_string()).collect();
        assert!(
            told.len() == 1 && told[0].contains("the question about Bash cannot be read"),
            "{name}: {told:?}"
        );
    }
}

#[tokio::test]
async fn session_start_and_pre_compact_hooks_run() {
    let hook = |command: &str| json!([{"hooks": [{"type": "command", "command": command}]}]);
    let hooks = json!({
        "SessionStart": hook("echo FROM THE START"),
        "PreCompact": hook("cat > told.json; echo keep it all >&2; exit 2"),
    });
    let settings = json!({ "hooks": hooks }).to_string();
    let host =
        Host::with_script([Reply::text("One."), Reply::text("Never said.")]).options(project_options());
    let mut host = host.file(".claude/settings.json", settings).start().await.unwrap();
    host.run("Go.").await.unwrap();
    let said = host.run("/compact the names").await.unwrap().result.unwrap_or_default();
    assert!(said.contains("keep it all"), "{said}");
    let asked = host.model_requests();
    assert!(asked.len() == 1 && asked[0].contains_text("FROM THE START"), "{:?}", asked[0].messages());
    let told = std::fs::read(host.dirs().workspace().join("told.json")).unwrap();
    let told: Value = serde_json::from_slice(&told).unwrap();
    assert_eq!((&told["trigger"], &told["custom_instructions"]), (&json!("manual"), &json!("the names")));
}

#[tokio::test]
async fn flag_settings_are_merged_shown_and_removed() {
    let touch = || Reply::tool("Bash", json!({"command": "touch made"}));
    let script = [touch(), Reply::text("One."), touch(), Reply::text("Two.")];
    let settings = r#"{"permissions":{"allow":["Bash(touch *)"]},"theirs":{"kept":true}}"#;
    let host = Host::with_script(script).options(project_options()).file(".claude/settings.json", settings);
    let mut host = host.start().await.unwrap();
    let lay_over = |permissions: Value| json!({"subtype": "apply_flag_settings", "settings": {"permissions": permissions}});
    host.send_raw_request(lay_over(json!({"deny": ["Bash(touch *)"]}))).await.unwrap();
    let shown = serde_json::to_value(host.send_request(GetSettings {}).await.unwrap()).unwrap();
    let effective = &shown["effective"];
    assert_eq!(effective["permissions"]["deny"], json!(["Bash(touch *)"]), "{shown}");
    assert_eq!(effective["permissions"]["allow"], json!(["Bash(touch *)"]), "{shown}");
    assert_eq!(effective["theirs"], json!({"kept": true}), "{shown}");
    let refused = host.run("Go.").await.unwrap();
    assert_eq!(refused.permission_denials.len(), 1);
    assert!(!host.dirs().workspace().join("made").exists());
    host.send_raw_request(lay_over(Value::Null)).await.unwrap();
    assert!(host.run("Again.").await.unwrap().permission_denials.is_empty());
    assert!(host.dirs().workspace().join("made").exists());
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
        let (mut host, told) = host_with_hooks(script, &["PostToolUse"], move |_| answer.clone()).await;
        host.run("Go.").await.unwrap();
        assert_eq!(told.try_iter().count(), 1, "{name}");
        assert_eq!(host.model_requests()[1].last_text(), result, "{name}");
        let lines = host.received().iter().map(|heard| &heard.json);
        let warnings: Vec<&Value> =
            lines.filter(|line| line["level"] == "warning").map(|line| &line["content"]).collect();
        let warning = json!(
            "PostToolUse hook: what it says in place of the result of Bash has not the shape of one, so it does not count"
        );
        let expected = if result == "OTHER" { vec![] } else { vec![&warning] };
        assert_eq!(warnings, expected, "{name}");
    }
}
