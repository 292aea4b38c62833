//! Tests of servers that crash, reconnect or shut down.

use std::time::Duration;

use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::fixture::{TEST_TIMEOUT, TestServers, tool_request};
use super::scripts::{LIST_ONE_TOOL, reply_text, server_entry, shell_entry};
use crate::{McpLimits, ReconnectBackoff, ServerDeps};
use whimbrel_process::test_support::{exits, read_pid};

#[tokio::test]
async fn a_crash_fails_calls_at_once_and_the_server_reconnects() {
    let servers = TestServers::start_test_server().await;
    let waiting = servers.tool("mcp__play__wait");
    let waiting = waiting.call(servers.request(json!({})));
    let (died, waited) = tokio::join!(servers.call_text("mcp__play__die", json!({})), waiting);
    let error = "MCP server play: its program exited with code 7. Its stderr: I give up";
    assert_eq!(died, format!("error: {error}"));
    assert_eq!(waited.unwrap_err().text(), error);
    // The next call waits for the reconnect; the tools stay meanwhile.
    assert_eq!(servers.call_text("mcp__play__echo", json!({"word": "again"})).await, "echo:again");
    assert_eq!(servers.status_and_error("play"), ("connected".into(), String::new()));
    servers.registry.close().await;
}

#[tokio::test]
async fn repeated_crashes_exhaust_the_retries() {
    let once = "test -e started && exit 5; echo > started;";
    let mut entry = server_entry(LIST_ONE_TOOL, "exit 4");
    let script = entry["args"][1].as_str().unwrap().to_owned();
    entry["args"][1] = format!("{once} {script}").into();
    let servers = TestServers::start(json!({"frail": entry})).await;
    let tool = servers.tool("mcp__frail__go");
    let died = tool.call(servers.request(json!({}))).await.unwrap_err().text();
    assert!(died.contains("with code 4"), "{died:?}");
    servers.wait_status("frail", "failed").await;
    assert_eq!(servers.status_and_error("frail").1, "its program exited with code 5.");
    assert_eq!(servers.tool_names(), Vec::<String>::new());
    let after = tool.call(servers.request(json!({}))).await.unwrap_err().text();
    assert_eq!(after, "MCP server frail: its program exited with code 5.");
    // The user can reconnect.
    std::fs::remove_file(servers.dir().join("started")).unwrap();
    servers.registry.reconnect("frail").await.unwrap();
    assert_eq!(servers.status_and_error("frail").0, "connected");
    servers.registry.close().await;
}

#[tokio::test]
async fn a_reconnecting_server_is_shown_as_pending() {
    let servers =
        TestServers::start_with(json!({"s": server_entry(LIST_ONE_TOOL, "exit 4")}), |deps| ServerDeps {
            limits: McpLimits {
                backoff: ReconnectBackoff { initial_delay: TEST_TIMEOUT * 10, max_attempts: 1 },
                ..deps.limits
            },
            ..deps
        })
        .await;
    servers.call_text("mcp__s__go", json!({})).await;
    servers.wait_status("s", "pending").await;
    assert_eq!(servers.status_and_error("s").1, "its program exited with code 4. Reconnecting.");
    assert_eq!(servers.tool_names(), ["mcp__s__go"]);
    // A cancelled call stops waiting for the server.
    servers.cancel.cancel();
    let text = servers.call_text("mcp__s__go", json!({})).await;
    assert_eq!(text, "error: MCP server s: the call was cancelled.");
    servers.registry.close().await;
}

#[tokio::test]
async fn closing_or_dropping_the_registry_ends_all_programs() {
    for dropped in [false, true] {
        let stubborn = shell_entry(
            "trap '' TERM; sleep 300 & echo $! > child; echo $$ > starting; while :; do sleep 1; done",
        );
        let mut good = server_entry(LIST_ONE_TOOL, &reply_text("ok"));
        good["args"][1] = format!("echo $$ > running; {}", good["args"][1].as_str().unwrap()).into();
        let servers =
            TestServers::start_without_waiting(&json!({"good": good, "stubborn": stubborn}), |deps| deps);
        servers.wait_status("good", "connected").await;
        let mut pids = Vec::new();
        for name in ["running", "starting", "child"] {
            pids.push(read_pid(&servers.dir().join(name)).await);
        }
        // A tool that is still held does not keep the server alive.
        let tool = servers.tool("mcp__good__go");
        let (never, dir) = (CancellationToken::new(), servers.dir().to_path_buf());
        if dropped {
            let TestServers { registry, .. } = servers;
            drop(registry);
        } else {
            tokio::time::timeout(TEST_TIMEOUT, servers.registry.close()).await.unwrap();
        }
        for pid in pids {
            assert!(exits(pid).await, "dropped: {dropped}");
        }
        assert!(tool.call(tool_request(json!({}), &dir, &never)).await.is_err());
    }
}

#[tokio::test]
async fn a_server_that_exits_on_eof_is_not_killed() {
    let polite = server_entry(LIST_ONE_TOOL, &reply_text("ok"));
    let script = format!("{}\n echo bye > bye", polite["args"][1].as_str().unwrap());
    let servers = TestServers::start(json!({"polite": shell_entry(&script)})).await;
    tokio::time::timeout(Duration::from_secs(120), servers.registry.close()).await.unwrap();
    assert!(servers.dir().join("bye").exists());
}
