//! Hooks that have a say in permissions, and who waits for them.

#![expect(clippy::unwrap_used, reason = "what helps a test fails as a test does")]

use std::sync::mpsc;

use serde_json::{Value, json};
use whimbrel_testkit::{Answer, Host, Reply};
use whimbrel_wire::control::{Initialize, SetModel};
use whimbrel_wire::options::PermissionPromptTool;

/// A host that hears of these events and answers each by this.
fn hooks(events: &[&str]) -> Initialize {
    let hook = json!([{"hookCallbackIds": ["h"]}]);
    let hooks: serde_json::Map<String, Value> =
        events.iter().map(|event| ((*event).to_owned(), hook.clone())).collect();
    serde_json::from_value(json!({ "hooks": hooks })).unwrap()
}

#[tokio::test]
async fn a_hook_that_answers_for_the_person_does_not_wait_for_one_that_calls_them() {
    let script = [Reply::tool("Bash", json!({"command": "touch made"})), Reply::text("Done.")];
    let (sender, told) = mpsc::channel();
    let mut host = Host::with(script)
        .change(|options| options.permission_prompt_tool = Some(PermissionPromptTool::Stdio))
        .answer(move |request| {
            let request = serde_json::to_value(request).unwrap();
            let event = request["input"]["hook_event_name"].as_str().unwrap_or("can_use_tool").to_owned();
            let allow = json!({"hookEventName": "PermissionRequest", "decision": {"behavior": "allow"}});
            let answer = match event.as_str() {
                "PermissionRequest" => Answer::Reply(json!({ "hookSpecificOutput": allow })),
                // The person is never there, and the hook that calls them never done.
                _ => Answer::Silence,
            };
            sender.send(event).unwrap();
            answer
        })
        .start()
        .await
        .unwrap();
    host.ask(hooks(&["PermissionRequest", "Notification"])).await.unwrap();
    host.run("Go.").await.unwrap();
    assert!(host.stage().workspace().join("made").exists());
    let told: Vec<String> = told.try_iter().collect();
    assert!(told.contains(&"PermissionRequest".to_owned()), "{told:?}");
    assert!(told.contains(&"Notification".to_owned()), "{told:?}");
}

/// A session whose hooks answer by event, and what they were told.
async fn with_hooks(
    script: Vec<Reply>,
    events: &[&str],
    reply: impl Fn(&str) -> Value + Send + 'static,
) -> (Host, mpsc::Receiver<Value>) {
    let (sender, told) = mpsc::channel();
    let mut host = Host::with(script)
        .answer(move |request| {
            let input = serde_json::to_value(request).unwrap()["input"].clone();
            let answer = reply(input["hook_event_name"].as_str().unwrap_or_default());
            sender.send(input).unwrap();
            Answer::Reply(answer)
        })
        .start()
        .await
        .unwrap();
    host.ask(hooks(events)).await.unwrap();
    (host, told)
}

const SWITCHES: [&str; 2] = ["PreModelSwitch", "PostModelSwitch"];

#[tokio::test]
async fn hooks_hear_of_another_model_and_the_model_hears_of_them() {
    let script = vec![Reply::text("One."), Reply::text("Two.")];
    let context = json!({"hookEventName": "PostModelSwitch", "additionalContext": "You are the other one."});
    let reply = move |event: &str| match event {
        "PostModelSwitch" => json!({ "hookSpecificOutput": context }),
        _ => json!({}),
    };
    let (mut host, told) = with_hooks(script, &SWITCHES, reply).await;
    host.run("Go.").await.unwrap();
    let switched = host.ask(SetModel { model: Some("opus".into()) }).await.unwrap();
    let told: Vec<Value> = told.try_iter().collect();
    let events: Vec<&str> = told.iter().filter_map(|input| input["hook_event_name"].as_str()).collect();
    assert_eq!(events, SWITCHES);
    for input in &told {
        assert_eq!((&input["source"], &input["requested_model"]), (&json!("sdk"), &json!("opus")), "{input}");
        assert_eq!(input["to_model"].as_str(), switched.model.as_deref());
        assert_ne!(input["from_model"], input["to_model"]);
    }
    host.run("Again.").await.unwrap();
    assert!(host.asked()[1].says("You are the other one."), "{:?}", host.asked()[1].messages());
}

#[tokio::test]
async fn a_model_that_a_hook_refuses_is_not_used() {
    let script = vec![Reply::text("One."), Reply::text("Two.")];
    let refusal = json!({"hookEventName": "PreModelSwitch", "permissionDecision": "deny", "permissionDecisionReason": "too dear"});
    let (mut host, told) =
        with_hooks(script, &SWITCHES, move |_| json!({ "hookSpecificOutput": refusal })).await;
    let refused = host.ask(SetModel { model: Some("opus".into()) }).await.unwrap_err().to_string();
    assert!(refused.contains("too dear") && refused.contains("stays"), "{refused}");
    let said = host.run("/model opus").await.unwrap().result.unwrap_or_default();
    assert!(said.contains("too dear") && said.contains("stays"), "{said}");
    let told: Vec<Value> = told.try_iter().collect();
    let sources: Vec<&str> = told.iter().filter_map(|input| input["source"].as_str()).collect();
    assert_eq!(sources, ["sdk", "command"], "nothing is told of a switch that was not made");
}
