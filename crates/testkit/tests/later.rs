//! What comes to an agent by itself: lines of a watched command.

use serde_json::json;
use whimbrel_testkit::{Host, Reply};
use whimbrel_wire::permission::PermissionResult;

#[tokio::test]
async fn a_watched_command_wakes_the_agent_with_what_it_prints() {
    let watch = json!({"description": "errors", "command": "echo ready; echo ERROR one; exec sleep 60", "timeout_ms": 60_000});
    let script = [Reply::tool("Monitor", watch), Reply::text("I wait."), Reply::text("I see.")];
    let mut host = Host::with(script)
        .can_use_tool(|ask| {
            assert_eq!(ask.tool_name, "Monitor");
            PermissionResult::allow()
        })
        .start()
        .await
        .unwrap();
    let first = host.run("Watch it.").await.unwrap();
    assert_eq!(first.result.as_deref(), Some("I wait."));
    let second = host.result().await.unwrap();
    assert_eq!(second.result.as_deref(), Some("I see."));
    let asked = host.asked();
    let told = asked.last().unwrap().last_text();
    assert!(told.contains("\"errors\" printed:") && told.contains("ready\nERROR one"), "{told}");
    host.finish().await.unwrap();
}

#[tokio::test]
async fn a_command_that_may_not_run_is_not_watched() {
    let watch = json!({"description": "x", "command": "touch made", "timeout_ms": 1000});
    let script = [Reply::tool("Monitor", watch), Reply::text("No.")];
    let mut host =
        Host::with(script).can_use_tool(|_| PermissionResult::deny("not that")).start().await.unwrap();
    host.run("Watch it.").await.unwrap();
    assert!(host.asked()[1].says("not that"));
    assert!(host.stage().files().unwrap().is_empty());
}
