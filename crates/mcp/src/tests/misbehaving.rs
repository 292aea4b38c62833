//! Tests of misbehaving servers.

use std::time::Duration;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use whimbrel_process::test_support::{exits, read_pid};
use whimbrel_wire::Block;

use super::fixture::{TEST_TIMEOUT, TestServers, tool_request};
use super::scripts::{LIST_ONE_TOOL, reply_text, server_entry, shell_entry};
use super::test_server;
use crate::{McpLimits, ServerDeps};

#[tokio::test]
async fn a_failing_server_is_retried_and_does_not_affect_others() {
    let broken = shell_entry("echo start >> starts; echo broken >&2; exit 3");
    let servers = TestServers::start(json!({"broken": broken, "play": test_server::entry()})).await;
    assert_eq!(
        servers.status_and_error("broken"),
        ("failed".into(), "its program exited with code 3. Its stderr: broken".into())
    );
    assert_eq!(servers.call_text("mcp__play__echo", json!({"word": "fine"})).await, "echo:fine");
    let starts = || std::fs::read_to_string(servers.dir().join("starts")).unwrap().lines().count();
    servers.wait_until(|_| starts() == 4).await;
    servers.registry.close().await;
    assert_eq!(starts(), 4);
}

#[tokio::test]
async fn a_program_that_cannot_start_is_not_retried() {
    let entries = json!({
        "missing": {"command": "no-such-program-at-all"},
        "folder": {"command": "/"},
    });
    let servers = TestServers::start(entries).await;
    let (state, error) = servers.status_and_error("missing");
    assert_eq!(state, "failed");
    assert!(error.starts_with("its program was not found. Its stderr:"), "{error}");
    let (state, error) = servers.status_and_error("folder");
    assert_eq!(state, "failed");
    assert!(error.starts_with("its program cannot be run. Its stderr:"), "{error}");
    servers.registry.close().await;
}

#[tokio::test]
async fn a_silent_server_times_out_and_is_killed() {
    let silent = shell_entry("echo $$ > pid; exec sleep 300");
    let servers = TestServers::start_without_waiting(&json!({"silent": silent}), |deps| ServerDeps {
        limits: McpLimits { connect_timeout: Duration::from_secs(4), ..deps.limits },
        ..deps
    });
    let pid = read_pid(&servers.dir().join("pid")).await;
    servers.wait_status("silent", "failed").await;
    assert_eq!(servers.status_and_error("silent").1, "it did not answer within 4 s.");
    assert!(exits(pid).await);
    servers.registry.close().await;
}

#[tokio::test]
async fn a_slow_server_does_not_block_others() {
    let servers = TestServers::start_without_waiting(
        &json!({"silent": shell_entry("sleep 300"), "play": test_server::entry()}),
        |deps| deps,
    );
    servers.wait_status("play", "connected").await;
    assert_eq!(servers.status_and_error("silent").0, "pending");
    servers.registry.wait_ready(Duration::from_millis(10)).await;
    assert_eq!(servers.call_text("mcp__play__echo", json!({"word": "a"})).await, "echo:a");
    servers.registry.close().await;
}

#[tokio::test]
async fn other_output_is_ignored() {
    let call =
        format!("echo 'calling {{'; echo; echo '{{\"level\":\"info\"}}'; {}; echo done", reply_text("ok"));
    let list = format!("echo Starting...; {LIST_ONE_TOOL}");
    let servers = TestServers::start(json!({"noisy": server_entry(&list, &call)})).await;
    for _ in 0..3 {
        assert_eq!(servers.call_text("mcp__noisy__go", json!({})).await, "ok");
    }
    servers.registry.close().await;
}

#[tokio::test]
async fn an_endless_line_ends_the_server() {
    let call = "head -c 40000000 /dev/zero | tr '\\0' x";
    let servers = TestServers::start(json!({"endless": server_entry(LIST_ONE_TOOL, call)})).await;
    let text = servers.call_text("mcp__endless__go", json!({})).await;
    assert_eq!(text, "error: MCP server endless: it sent more than 33.6 MB in one line and was stopped.");
    servers.registry.close().await;
}

#[tokio::test]
async fn unrequested_responses_are_ignored() {
    let wrong = r#"printf '{"jsonrpc":"2.0","id":9999,"result":{"content":[]}}\n{"jsonrpc":"2.0","id":"x","error":{"code":1,"message":"no"}}\n'"#;
    let right = reply_text("right");
    let servers =
        TestServers::start(json!({"s": server_entry(LIST_ONE_TOOL, &format!("{wrong}; {right}; {right}"))}))
            .await;
    for _ in 0..3 {
        assert_eq!(servers.call_text("mcp__s__go", json!({})).await, "right");
    }
    servers.registry.close().await;
}

#[tokio::test]
async fn a_response_after_cancellation_is_ignored() {
    // The first call is answered only after its cancellation has arrived.
    let call = format!(
        "if test -e begun; then {}; else echo > begun; read -r cancellation; {}; echo > answered; fi",
        reply_text("in time"),
        reply_text("too late")
    );
    let servers = TestServers::start(json!({"s": server_entry(LIST_ONE_TOOL, &call)})).await;
    let tool = servers.tool("mcp__s__go");
    let (ended, ()) = tokio::join!(tool.call(servers.request(json!({}))), async {
        servers.wait_file("begun").await;
        servers.cancel.cancel();
    });
    assert_eq!(ended.unwrap_err().text(), "MCP server s: the call was cancelled.");
    servers.wait_file("answered").await;
    let never = CancellationToken::new();
    let again = tool_request(json!({}), servers.dir(), &never);
    let done = tokio::time::timeout(TEST_TIMEOUT, tool.call(again)).await.unwrap().unwrap();
    assert_eq!(done, [Block::text("in time")]);
    servers.registry.close().await;
}

#[tokio::test]
async fn a_deeply_nested_response_is_truncated() {
    let deep = r#"{ printf '{"jsonrpc":"2.0","id":%s,"result":{"content":' "$id"; head -c 100000 /dev/zero | tr '\0' '['; head -c 100000 /dev/zero | tr '\0' ']'; echo '}}'; }"#;
    let servers = TestServers::start(json!({"deep": server_entry(LIST_ONE_TOOL, deep)})).await;
    let text = servers.call_text("mcp__deep__go", json!({})).await;
    assert!(text.contains("[[[null]]]"), "{text}");
    servers.registry.close().await;
}

#[tokio::test]
async fn many_and_invalid_tools_are_limited() {
    let unusual_tools = r##"{"name":"a.b","inputSchema":{"type":"object"}},{"name":"a_b","inputSchema":{"type":"object"}},{"name":"self","inputSchema":{"type":"object","properties":{"me":{"$ref":"#"}},"required":["me"]}},{"name":"bad","inputSchema":{"type":"object","properties":{"a b":{}}}},{"name":7},"##;
    let list = format!(
        r#"{{ printf '{{"jsonrpc":"2.0","id":%s,"result":{{"tools":[{unusual_tools}' "$id"; seq -f '{{"name":"t%g","inputSchema":{{"type":"object"}}}},' 5000 | tr -d '\n'; printf '{{"name":"last","inputSchema":{{"type":"object"}}}}],"nextCursor":"again"}}}}\n'; }}"#
    );
    let servers = TestServers::start(json!({"many": server_entry(&list, &reply_text("ok"))})).await;
    assert_eq!(servers.status_and_error("many"), ("connected".into(), String::new()));
    let names = servers.tool_names();
    assert_eq!(names[..3], ["mcp__many__a_b", "mcp__many__a_b_2", "mcp__many__self"]);
    assert_eq!(names.len(), 999);
    let notes = servers.registry.notes().join("\n");
    for expected in ["more than 1000 tools", "1 of its tools are not valid", "bad is left out"] {
        assert!(notes.contains(expected), "{notes}");
    }
    // Each name leads to the tool that it was made from.
    assert_eq!(servers.call_text("mcp__many__a_b_2", json!({})).await, "ok");
    servers.registry.close().await;
}

#[tokio::test]
async fn a_repeating_cursor_ends_the_list() {
    let list = r#"printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"go","inputSchema":{"type":"object"}}],"nextCursor":"same"}}\n' "$id""#;
    let servers = TestServers::start(json!({"round": server_entry(list, &reply_text("ok"))})).await;
    assert_eq!(servers.tool_names(), ["mcp__round__go", "mcp__round__go_2"]);
    servers.registry.close().await;
}

#[tokio::test]
async fn a_server_that_does_not_read_blocks_nothing() {
    let mut stuck = server_entry(LIST_ONE_TOOL, "exec sleep 300");
    stuck["timeout"] = 400.into();
    let servers = TestServers::start(json!({"stuck": stuck})).await;
    let large = json!({"text": "x".repeat(3_000_000)});
    let (first, second) = tokio::join!(
        servers.call_text("mcp__stuck__go", large.clone()),
        servers.call_text("mcp__stuck__go", large)
    );
    for text in [first, second] {
        assert_eq!(text, "error: MCP server stuck: it did not answer within 400 ms.");
    }
    tokio::time::timeout(TEST_TIMEOUT, servers.registry.close()).await.unwrap();
}

#[tokio::test]
async fn a_handshake_error_is_reported() {
    let rejecting = shell_entry(
        r#"read -r line; echo '{"jsonrpc":"2.0","id":0,"error":{"code":-32000,"message":"no license"}}'; sleep 300"#,
    );
    let servers = TestServers::start(json!({"no": rejecting})).await;
    assert_eq!(
        servers.status_and_error("no"),
        ("failed".into(), "it rejected `initialize`: no license".into())
    );
    let wrong =
        shell_entry(r#"read -r line; echo '{"jsonrpc":"2.0","id":0,"result":{"hello":true}}'; sleep 300"#);
    let servers = TestServers::start(json!({"no": wrong})).await;
    assert!(
        servers.status_and_error("no").1.contains("not a response to `initialize`"),
        "{:?}",
        servers.status_and_error("no")
    );
    let value: Value = serde_json::to_value(servers.registry.status()).unwrap();
    assert_eq!(value[0]["status"], "failed");
    servers.registry.close().await;
}

#[tokio::test]
async fn a_failed_refetch_does_not_end_list_changes() {
    let tools = |names: &[&str]| {
        let tools: Vec<Value> =
            names.iter().map(|name| json!({"name": name, "inputSchema": {"type": "object"}})).collect();
        format!(r#"printf '{{"jsonrpc":"2.0","id":%s,"result":{{"tools":{}}}}}\n' "$id""#, json!(tools))
    };
    let failure = r#"printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"busy"}}\n' "$id"; echo > failed"#;
    let list = format!(
        "count=$((count + 1)); case $count in 1) {} ;; 2) {failure} ;; *) {} ;; esac",
        tools(&["go"]),
        tools(&["go", "new"])
    );
    let changed = r#"printf '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n'"#;
    let call = format!("{changed}; {}", reply_text("ok"));
    let servers = TestServers::start(json!({"s": server_entry(&list, &call)})).await;
    servers.call_text("mcp__s__go", json!({})).await;
    servers.wait_file("failed").await;
    assert_eq!(servers.tool_names(), ["mcp__s__go"], "the known tools stay");
    servers.call_text("mcp__s__go", json!({})).await;
    servers.wait_until(|servers| servers.tool_names().len() == 2).await;
    servers.registry.close().await;
}
