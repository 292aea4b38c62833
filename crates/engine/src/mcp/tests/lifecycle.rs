//! Tests of servers that crash, reconnect or shut down.

use std::time::Duration;

use serde_json::json;

use super::fixture::{TEST_TIMEOUT, TestServers};
use super::scripts::{LIST_ONE_TOOL, reply_text, server_entry, shell_entry};
use crate::mcp::{McpLimits, ReconnectBackoff, ServerDeps};
use whimbrel_process::test_support::{exits, read_pid};

#[tokio::test]
async fn a_crash_fails_calls_at_once_and_the_server_reconnects() {
    let stage = TestServers::start_test_server().await;
    let waiting = stage.tool("mcp__play__wait");
    let waiting = waiting.run(json!({}), stage.tool_context());
    let (died, waited) = tokio::join!(stage.call_text("mcp__play__die", json!({})), waiting);
    let why = "MCP server play: its program ended with exit code 7. It said: I give up";
    assert_eq!(died, format!("error: {why}"));
    assert_eq!(waited.unwrap_err().reason(), why);
    // The next call waits for the reconnect; the tools stay meanwhile.
    assert_eq!(stage.call_text("mcp__play__echo", json!({"word": "again"})).await, "echo:again");
    assert_eq!(stage.status_and_error("play"), ("connected".into(), String::new()));
    stage.registry.close().await;
}

#[tokio::test]
async fn repeated_crashes_exhaust_the_retries() {
    let once = "test -e started && exit 5; echo > started;";
    let mut entry = server_entry(LIST_ONE_TOOL, "exit 4");
    let script = entry["args"][1].as_str().unwrap().to_owned();
    entry["args"][1] = format!("{once} {script}").into();
    let stage = TestServers::start(json!({"frail": entry})).await;
    let tool = stage.tool("mcp__frail__go");
    let died = tool.run(json!({}), stage.tool_context()).await.unwrap_err();
    assert!(died.reason().contains("exit code 4"), "{died:?}");
    stage.wait_status("frail", "failed").await;
    assert_eq!(stage.status_and_error("frail").1, "its program ended with exit code 5.");
    assert_eq!(stage.tool_names(), Vec::<String>::new());
    let after = tool.run(json!({}), stage.tool_context()).await.unwrap_err();
    assert_eq!(after.reason(), "MCP server frail: its program ended with exit code 5.");
    // The user can reconnect.
    std::fs::remove_file(stage.dir().join("started")).unwrap();
    stage.registry.reconnect("frail").await.unwrap();
    assert_eq!(stage.status_and_error("frail").0, "connected");
    stage.registry.close().await;
}

#[tokio::test]
async fn a_reconnecting_server_is_shown_as_pending() {
    let stage =
        TestServers::start_with(json!({"s": server_entry(LIST_ONE_TOOL, "exit 4")}), |surroundings| {
            ServerDeps {
                limits: McpLimits {
                    backoff: ReconnectBackoff { initial_delay: TEST_TIMEOUT * 10, max_attempts: 1 },
                    ..surroundings.limits
                },
                ..surroundings
            }
        })
        .await;
    stage.call_text("mcp__s__go", json!({})).await;
    stage.wait_status("s", "pending").await;
    assert_eq!(stage.status_and_error("s").1, "its program ended with exit code 4. It is being looked for.");
    assert_eq!(stage.tool_names(), ["mcp__s__go"]);
    // A cancelled call stops waiting for the server.
    stage.cancel.cancel();
    let said = stage.call_text("mcp__s__go", json!({})).await;
    assert_eq!(said, "error: MCP server s: the call was cancelled.");
    stage.registry.close().await;
}

#[tokio::test]
async fn closing_or_dropping_the_registry_ends_all_programs() {
    for dropped in [false, true] {
        let stubborn = shell_entry(
            "trap '' TERM; sleep 300 & echo $! > child; echo $$ > starting; while :; do sleep 1; done",
        );
        let mut good = server_entry(LIST_ONE_TOOL, &reply_text("ok"));
        good["args"][1] = format!("echo $$ > running; {}", good["args"][1].as_str().unwrap()).into();
        let stage = TestServers::start_without_waiting(&json!({"good": good, "stubborn": stubborn}), |it| it);
        stage.wait_status("good", "connected").await;
        let mut pids = Vec::new();
        for name in ["running", "starting", "child"] {
            pids.push(read_pid(&stage.dir().join(name)).await);
        }
        // A tool that is still held does not keep the server alive.
        let tool = stage.tool("mcp__good__go");
        let call = stage.tool_context();
        if dropped {
            let TestServers { registry, .. } = stage;
            drop(registry);
        } else {
            tokio::time::timeout(TEST_TIMEOUT, stage.registry.close()).await.unwrap();
        }
        for pid in pids {
            assert!(exits(pid).await, "dropped: {dropped}");
        }
        assert!(tool.run(json!({}), call).await.is_err());
    }
}

#[tokio::test]
async fn a_server_that_exits_on_eof_is_not_killed() {
    let polite = server_entry(LIST_ONE_TOOL, &reply_text("ok"));
    let script = format!("{}\n echo bye > bye", polite["args"][1].as_str().unwrap());
    let stage = TestServers::start(json!({"polite": shell_entry(&script)})).await;
    tokio::time::timeout(Duration::from_secs(20), stage.registry.close()).await.unwrap();
    assert!(stage.dir().join("bye").exists());
}
