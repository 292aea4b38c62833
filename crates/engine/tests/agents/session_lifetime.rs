//! Session state frames, and background work at the end of a session.

use serde_json::json;
use whimbrel_testkit::{Host, Reply, Script};

use super::{background_script, call_agent};

fn session_states(host: &Host) -> Vec<String> {
    host.system_frames("session_state_changed")
        .iter()
        .map(|notice| notice["state"].as_str().unwrap_or_default().to_owned())
        .collect()
}

#[tokio::test]
async fn session_is_idle_only_without_background_work() {
    let mut host = Host::with_script(background_script())
        .env("CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS", "1")
        .start()
        .await
        .unwrap();
    host.run("Go.").await.unwrap();
    assert_eq!(session_states(&host), ["running"], "an agent runs in the background");
    host.api().unwrap().release("agent");
    assert_eq!(host.next_result().await.unwrap().result.as_deref(), Some("Noticed."));
    host.next_matching(&json!({"subtype": "session_state_changed", "state": "idle"})).await.unwrap();
    assert_eq!(session_states(&host), ["running", "running", "idle"], "each turn is reported");
    let kinds: Vec<String> = host
        .received()
        .iter()
        .filter(|received| {
            received.json["type"] == "result" || received.json["subtype"] == "session_state_changed"
        })
        .map(|received| received.json["state"].as_str().unwrap_or("result").to_owned())
        .collect();
    assert_eq!(kinds, ["running", "result", "running", "result", "idle"]);
}

#[tokio::test]
async fn permission_request_sets_state_requires_action() {
    let script = [Reply::tool("Bash", json!({"command": "touch made"})), Reply::text("Done.")];
    let mut host = Host::with_script(script)
        .can_use_tool(|_| whimbrel_wire::permission::PermissionResult::allow())
        .env("CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS", "1")
        .start()
        .await
        .unwrap();
    host.run("Go.").await.unwrap();
    host.finish().await.unwrap();
    assert_eq!(session_states(&host), ["running", "requires_action", "running", "idle"]);
}

#[tokio::test]
async fn background_work_can_be_stopped_at_exit_or_after_timeout() {
    for (name, value) in
        [("WHIMBREL_BACKGROUND_AT_END", "stop"), ("CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS", "50")]
    {
        let mut host = Host::with_script(background_script()).env(name, value).start().await.unwrap();
        host.send_prompt("Go.").await.unwrap();
        host.finish_input();
        assert_eq!(host.next_result().await.unwrap().result.as_deref(), Some("Launched."), "{name}");
        assert_eq!(host.finish().await.unwrap().code, 0, "{name}");
        assert_eq!(host.system_frames("task_notification")[0]["status"], "stopped", "{name}");
    }
}

#[tokio::test]
async fn background_command_is_awaited_at_exit_if_configured() {
    let command = json!({"command": "sleep 4; echo finished", "run_in_background": true});
    let script = [Reply::tool("Bash", command), Reply::text("It runs."), Reply::text("It has ended.")];
    let mut host = Host::with_script(script)
        .options(whimbrel_wire::options::Options {
            allowed_tools: vec!["Bash".into()],
            ..whimbrel_wire::options::Options::default()
        })
        .env("WHIMBREL_BACKGROUND_AT_END", "wait")
        .start()
        .await
        .unwrap();
    host.send_prompt("Go.").await.unwrap();
    host.finish_input();
    assert_eq!(host.next_result().await.unwrap().result.as_deref(), Some("It runs."));
    assert_eq!(host.next_result().await.unwrap().result.as_deref(), Some("It has ended."));
}

#[tokio::test]
async fn prompts_run_while_background_agents_work() {
    let script = Script::from_fn(|request| {
        let text = request.last_text();
        if text.contains("Look.") {
            Reply::text("Late news.").hold_until("agent")
        } else if text.contains("Hurry!") {
            Reply::text("I hurry.")
        } else if text.contains("<task-notification>") {
            Reply::text("Noticed.")
        } else if text.contains("in the background") {
            Reply::text("Launched.")
        } else {
            call_agent("Look.", json!({"run_in_background": true}))
        }
    });
    let mut host = Host::with_script(script).start().await.unwrap();
    host.run("Go.").await.unwrap();
    assert_eq!(host.run("Hurry!").await.unwrap().result.as_deref(), Some("I hurry."));
    host.finish_input();
    host.api().unwrap().release("agent");
    assert_eq!(host.next_result().await.unwrap().result.as_deref(), Some("Noticed."));
    assert_eq!(host.finish().await.unwrap().code, 0);
    let delivered: Vec<bool> =
        host.model_requests().iter().map(|request| request.last_text().contains("Hurry!")).collect();
    assert_eq!(delivered.iter().filter(|delivered| **delivered).count(), 1, "a message is delivered once");
}
