//! Hooks on model switches: their input, their decision, and the order of the switches.

use serde_json::{Value, json};
use whimbrel_testkit::{Host, HostResponse, Reply};
use whimbrel_wire::control::{GetSettings, SetModel};

use super::{hook_registration, host_with_hooks};

const SWITCH_EVENTS: [&str; 2] = ["PreModelSwitch", "PostModelSwitch"];

#[tokio::test]
async fn model_switch_hooks_run_and_can_add_context() {
    let script = vec![Reply::text("One."), Reply::text("Two.")];
    let context = json!({"hookEventName": "PostModelSwitch", "additionalContext": "You are the other one."});
    let reply = move |event: &str| match event {
        "PostModelSwitch" => json!({ "hookSpecificOutput": context }),
        _ => json!({}),
    };
    let (mut host, inputs) = host_with_hooks(script, &SWITCH_EVENTS, reply).await;
    host.run("Go.").await.unwrap();
    let switched = host.send_request(SetModel { model: Some("opus".into()) }).await.unwrap();
    let inputs: Vec<Value> = inputs.try_iter().collect();
    let events: Vec<&str> = inputs.iter().filter_map(|input| input["hook_event_name"].as_str()).collect();
    assert_eq!(events, SWITCH_EVENTS);
    for input in &inputs {
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
    let denial = json!({"hookEventName": "PreModelSwitch", "permissionDecision": "deny", "permissionDecisionReason": "too expensive"});
    let (mut host, inputs) =
        host_with_hooks(script, &SWITCH_EVENTS, move |_| json!({ "hookSpecificOutput": denial })).await;
    let error = host.send_request(SetModel { model: Some("opus".into()) }).await.unwrap_err().to_string();
    assert!(error.contains("too expensive") && error.contains("is still"), "{error}");
    let text = host.run("/model opus").await.unwrap().result.unwrap_or_default();
    assert!(text.contains("too expensive") && text.contains("is still"), "{text}");
    let inputs: Vec<Value> = inputs.try_iter().collect();
    let sources: Vec<&str> = inputs.iter().filter_map(|input| input["source"].as_str()).collect();
    assert_eq!(sources, ["sdk", "command"], "PostModelSwitch does not run for a denied switch");
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
    let request = host.next_matching(&json!({"type": "control_request"})).await.unwrap();
    let input = &request["request"]["input"];
    let switch = ["from_model", "to_model"].map(|name| input[name].as_str().unwrap().to_owned());
    let output = json!({"hookEventName": "PreModelSwitch", "permissionDecision": decision});
    let answer = json!({"subtype": "success", "request_id": request["request_id"], "response": {"hookSpecificOutput": output}});
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
    let text = host.next_result().await.unwrap().result.unwrap_or_default();
    assert!(text.contains(&sonnet), "{text}");
    assert_eq!(current_model(&mut host).await, sonnet);
    let responses: Vec<&Value> = host.received().iter().map(|received| &received.json["response"]).collect();
    let ids = responses.iter().filter_map(|answer| answer["request_id"].as_str());
    let ids: Vec<&str> = ids.filter(|id| id.len() == 1).collect();
    assert_eq!(ids, ["a", "b", "c", "d"]);
    let denied = responses.iter().find(|answer| answer["request_id"] == "c").unwrap();
    assert!(denied["error"].as_str().unwrap().contains(&format!("is still {first}")), "{denied}");
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
    let text = host.next_result().await.unwrap().result.unwrap_or_default();
    assert!(text.contains(&format!("is still {first}")), "{text}");
    assert_eq!(current_model(&mut host).await, first);
}
