//! The Monitor tool: output of a watched command starts turns.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use whimbrel_testkit::{Host, ModelRequest, Reply, Script};
use whimbrel_wire::control::{GetContextUsage, StopTask};
use whimbrel_wire::permission::PermissionResult;

#[tokio::test]
async fn monitor_output_starts_a_turn() {
    let monitor_input = json!({"description": "errors", "command": "echo ready; echo ERROR one; exec sleep 60", "timeout_ms": 60_000});
    let script = [Reply::tool("Monitor", monitor_input), Reply::text("I wait."), Reply::text("I see.")];
    let mut host = Host::with_script(script)
        .can_use_tool(|request| {
            assert_eq!(request.tool_name, "Monitor");
            PermissionResult::allow()
        })
        .start()
        .await
        .unwrap();
    let first = host.run("Watch it.").await.unwrap();
    assert_eq!(first.result.as_deref(), Some("I wait."));
    let second = host.next_result().await.unwrap();
    assert_eq!(second.result.as_deref(), Some("I see."));
    let requests = host.model_requests();
    let text = requests.last().unwrap().last_text();
    assert!(text.contains("\"errors\" printed:") && text.contains("ready\nERROR one"), "{text}");
    host.finish().await.unwrap();
}

#[tokio::test]
async fn flooding_monitor_does_not_block_prompts() {
    let monitor_input = json!({"description": "flood", "command": "exec yes", "timeout_ms": 600_000});
    let has_started = AtomicBool::new(false);
    let script = Script::from_fn(move |request| {
        let text = request.last_text();
        if text.contains("Answer: ") {
            Reply::text("Here I am.")
        } else if text.contains("Watch it.") && !has_started.swap(true, Ordering::SeqCst) {
            Reply::tool("Monitor", monitor_input.clone())
        } else {
            Reply::text("I see.")
        }
    });
    let mut host =
        Host::with_script(script).can_use_tool(|_| PermissionResult::allow()).start().await.unwrap();
    let first = host.run("Watch it.").await.unwrap();
    assert_eq!(first.result.as_deref(), Some("I see."));
    // It receives the flood and still answers prompts in between.
    host.next_result().await.unwrap();
    for nth in 0..3 {
        host.send_prompt(format!("Answer: {nth}").as_str()).await.unwrap();
        while host.next_result().await.unwrap().result.as_deref() != Some("Here I am.") {}
        host.send_request(GetContextUsage::default()).await.unwrap();
    }
    let requests = host.model_requests();
    let floods =
        requests.iter().map(ModelRequest::last_text).filter(|text| text.contains("\"flood\" printed:"));
    let longest = floods.map(|text| text.len()).max().unwrap();
    assert!(longest < 10_000, "{longest}");
    let running =
        host.received().iter().rev().find_map(|received| received.json["tasks"][0]["task_id"].as_str());
    let task_id = running.unwrap().to_owned();
    host.send_request(StopTask { task_id }).await.unwrap();
    host.finish().await.unwrap();
}

#[tokio::test]
async fn denied_monitor_command_does_not_run() {
    let monitor_input = json!({"description": "x", "command": "touch made", "timeout_ms": 1000});
    let script = [Reply::tool("Monitor", monitor_input), Reply::text("No.")];
    let mut host =
        Host::with_script(script).can_use_tool(|_| PermissionResult::deny("not that")).start().await.unwrap();
    host.run("Watch it.").await.unwrap();
    assert!(host.model_requests()[1].contains_text("not that"));
    assert!(host.dirs().files().unwrap().is_empty());
}
