//! Hooks of the host for agents and task notifications.

#![expect(clippy::unwrap_used, reason = "test support may panic")]

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use whimbrel_testkit::{Host, HostBuilder, HostResponse, Reply, Script};
use whimbrel_wire::control::Initialize;

use super::{background_script, call_agent, find_agent_id, nth_tool_use_result};

type HookInputs = Arc<Mutex<Vec<Value>>>;

/// Starts a host with hooks for these events; returns the inputs that they receive.
async fn host_with_hooks(
    host: HostBuilder,
    events: &[&str],
    respond: fn(&Value) -> Value,
) -> (Host, HookInputs) {
    let inputs = HookInputs::default();
    let log = Arc::clone(&inputs);
    let host = host.on_request(move |request| {
        let input = serde_json::to_value(request).unwrap()["input"].clone();
        let output = respond(&input);
        log.lock().unwrap().push(input);
        HostResponse::Success(output)
    });
    let mut host = host.start().await.unwrap();
    let hooks: Value =
        events.iter().map(|event| ((*event).to_owned(), json!([{"hookCallbackIds": ["h"]}]))).collect();
    host.send_request(serde_json::from_value::<Initialize>(json!({"hooks": hooks})).unwrap()).await.unwrap();
    (host, inputs)
}

/// One field of all hook inputs.
fn field_values(inputs: &HookInputs, field: &str) -> Vec<String> {
    inputs.lock().unwrap().iter().map(|input| input[field].as_str().unwrap_or_default().to_owned()).collect()
}

#[tokio::test]
async fn start_and_stop_hooks_run_for_every_agent_run() {
    let script = Script::from_fn(|request| {
        let text = request.last_text();
        let id = find_agent_id(&text);
        if request.contains_text("FROM-THE-HOOK") {
            Reply::text(if request.contains_text("Go on.") { "Twice." } else { "Once." })
        } else if let Some(id) = id.filter(|_| text.contains("Once.")) {
            call_agent("Go on.", json!({"resume": id}))
        } else if text.contains("Twice.") {
            Reply::text("Done.")
        } else {
            call_agent("Look.", json!({}))
        }
    });
    let (mut host, inputs) =
        host_with_hooks(Host::with_script(script), &["SubagentStart", "SubagentStop"], |input| {
            let more = json!({"hookEventName": "SubagentStart", "additionalContext": "FROM-THE-HOOK"});
            match input["hook_event_name"] == "SubagentStart" {
                true => json!({"hookSpecificOutput": more}),
                false => json!({}),
            }
        })
        .await;
    assert_eq!(host.run("Go.").await.unwrap().result.as_deref(), Some("Done."));
    let events = field_values(&inputs, "hook_event_name");
    assert_eq!(events, ["SubagentStart", "SubagentStop", "SubagentStart", "SubagentStop"]);
    let ids = field_values(&inputs, "agent_id");
    assert!(ids.iter().all(|id| *id == nth_tool_use_result(&host, 0)["agentId"]), "{ids:?}");
}

#[tokio::test]
async fn subagent_start_hook_runs_for_teammates() {
    let script = Script::from_fn(|request| {
        let text = request.last_text();
        if request.system_prompt().contains("You are m1,") {
            Reply::text("Rested.")
        } else if text.contains("Created the team") {
            call_agent("Look.", json!({"name": "m1", "team_name": "crew", "subagent_type": "Explore"}))
        } else if text.contains("Go.") {
            Reply::tool("TeamCreate", json!({"team_name": "crew"}))
        } else {
            Reply::text("Fine.")
        }
    });
    let host = Host::with_script(script).env("CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS", "1");
    let (mut host, inputs) = host_with_hooks(host, &["SubagentStart"], |_| {
        json!({"hookSpecificOutput": {"hookEventName": "SubagentStart", "additionalContext": "FROM-THE-HOOK"}})
    })
    .await;
    host.run("Go.").await.unwrap();
    assert_eq!(host.finish().await.unwrap().code, 0);
    let task = nth_tool_use_result(&host, 1)["task_id"].as_str().unwrap().to_owned();
    assert_eq!(field_values(&inputs, "hook_event_name"), ["SubagentStart"]);
    assert_eq!(
        (field_values(&inputs, "agent_id"), field_values(&inputs, "agent_type")),
        (vec![task], vec!["Explore".to_owned()])
    );
    let requests = host.model_requests();
    let first = requests.iter().find(|request| request.system_prompt().contains("You are m1,")).unwrap();
    assert!(first.contains_text("FROM-THE-HOOK"), "{:?}", first.messages());
}

#[tokio::test]
async fn notification_that_starts_a_turn_runs_prompt_hooks() {
    let (mut host, inputs) =
        host_with_hooks(Host::with_script(background_script()), &["UserPromptSubmit"], |_| json!({})).await;
    host.run("Go.").await.unwrap();
    host.api().unwrap().release("agent");
    assert_eq!(host.next_result().await.unwrap().result.as_deref(), Some("Noticed."));
    assert_eq!(field_values(&inputs, "source"), ["sdk", "system"]);
    assert!(field_values(&inputs, "prompt")[1].contains("<result>Late news.</result>"));
}

#[tokio::test]
async fn notification_blocked_by_hook_reaches_only_the_host() {
    let (mut host, _) =
        host_with_hooks(Host::with_script(background_script()), &["UserPromptSubmit"], |input| {
            let is_notification = input["source"] == "system";
            if is_notification { json!({"decision": "block", "reason": "not now"}) } else { json!({}) }
        })
        .await;
    host.run("Go.").await.unwrap();
    let requests_before = host.model_requests().len();
    host.api().unwrap().release("agent");
    let result = host.next_result().await.unwrap();
    assert_eq!(result.origin.unwrap().kind, "task-notification");
    assert!(result.result.unwrap().contains("not now"));
    let notices = host.system_frames("informational");
    assert!(
        notices.iter().any(|notice| notice["content"].as_str().unwrap().contains("not now")),
        "{notices:?}"
    );
    assert_eq!(host.model_requests().len(), requests_before, "no request is sent to the model");
}

#[tokio::test]
async fn permission_denied_frame_names_the_agent() {
    let write = Reply::tool("Write", json!({"file_path": "w.txt", "content": "x"}));
    let script = [call_agent("Write.", json!({})), write, Reply::text("I may not."), Reply::text("Done.")];
    let mut host = Host::with_script(script).start().await.unwrap();
    host.run("Go.").await.unwrap();
    let denials = host.system_frames("permission_denied");
    assert_eq!((denials.len(), &denials[0]["agent_id"]), (1, &nth_tool_use_result(&host, 0)["agentId"]));
}
