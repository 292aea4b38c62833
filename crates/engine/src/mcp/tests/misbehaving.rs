//! Tests of misbehaving servers.

use std::time::Duration;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::fixture::{TEST_TIMEOUT, TestServers};
use super::player;
use super::scripts::{LIST_ONE_TOOL, reply_text, server_entry, shell_entry};
use crate::mcp::{McpLimits, ServerDeps};
use crate::tools::ToolContext;
use whimbrel_process::test_support::{exits, read_pid};

#[tokio::test]
async fn a_failing_server_is_retried_and_does_not_affect_others() {
    let broken = shell_entry("echo start >> starts; echo broken >&2; exit 3");
    let stage = TestServers::start(json!({"broken": broken, "play": player::entry()})).await;
    assert_eq!(
        stage.status_and_error("broken"),
        ("failed".into(), "its program ended with exit code 3. It said: broken".into())
    );
    assert_eq!(stage.call_text("mcp__play__echo", json!({"word": "fine"})).await, "echo:fine");
    let starts = || std::fs::read_to_string(stage.dir().join("starts")).unwrap().lines().count();
    stage.wait_until(|_| starts() == 4).await;
    stage.registry.close().await;
    assert_eq!(starts(), 4);
}

#[tokio::test]
async fn a_program_that_cannot_start_is_not_retried() {
    let entries = json!({
        "missing": {"command": "no-such-program-at-all"},
        "folder": {"command": "/"},
    });
    let stage = TestServers::start(entries).await;
    let (state, error) = stage.status_and_error("missing");
    assert_eq!(state, "failed");
    assert!(error.starts_with("its program was not found. It said:"), "{error}");
    let (state, error) = stage.status_and_error("folder");
    assert_eq!(state, "failed");
    assert!(error.starts_with("its program cannot be run. It said:"), "{error}");
    stage.registry.close().await;
}

#[tokio::test]
async fn a_silent_server_times_out_and_is_killed() {
    let silent = shell_entry("echo $$ > pid; exec sleep 300");
    let stage = TestServers::start_without_waiting(&json!({"silent": silent}), |surroundings| ServerDeps {
        limits: McpLimits { connect_timeout: Duration::from_millis(500), ..surroundings.limits },
        ..surroundings
    });
    let pid = read_pid(&stage.dir().join("pid")).await;
    stage.wait_status("silent", "failed").await;
    assert_eq!(stage.status_and_error("silent").1, "it did not answer within 500 ms.");
    assert!(exits(pid).await);
    stage.registry.close().await;
}

#[tokio::test]
async fn a_slow_server_does_not_block_others() {
    let stage = TestServers::start_without_waiting(
        &json!({"silent": shell_entry("sleep 300"), "play": player::entry()}),
        |it| it,
    );
    stage.wait_status("play", "connected").await;
    assert_eq!(stage.status_and_error("silent").0, "pending");
    stage.registry.wait_ready(Duration::from_millis(10)).await;
    assert_eq!(stage.call_text("mcp__play__echo", json!({"word": "a"})).await, "echo:a");
    stage.registry.close().await;
}

#[tokio::test]
async fn other_output_is_ignored() {
    let call =
        format!("echo 'calling {{'; echo; echo '{{\"level\":\"info\"}}'; {}; echo done", reply_text("ok"));
    let list = format!("echo Starting...; {LIST_ONE_TOOL}");
    let stage = TestServers::start(json!({"noisy": server_entry(&list, &call)})).await;
    for _ in 0..3 {
        assert_eq!(stage.call_text("mcp__noisy__go", json!({})).await, "ok");
    }
    stage.registry.close().await;
}

#[tokio::test]
async fn an_endless_line_ends_the_server() {
    let call = "head -c 40000000 /dev/zero | tr '\\0' x";
    let stage = TestServers::start(json!({"endless": server_entry(LIST_ONE_TOOL, call)})).await;
    let said = stage.call_text("mcp__endless__go", json!({})).await;
    assert_eq!(said, "error: MCP server endless: it sent more than 33.6 MB in one line and was ended.");
    stage.registry.close().await;
}

#[tokio::test]
async fn unrequested_responses_are_ignored() {
    let wrong = r#"printf '{"jsonrpc":"2.0","id":9999,"result":{"content":[]}}\n{"jsonrpc":"2.0","id":"x","error":{"code":1,"message":"no"}}\n'"#;
    let right = reply_text("right");
    let stage =
        TestServers::start(json!({"s": server_entry(LIST_ONE_TOOL, &format!("{wrong}; {right}; {right}"))}))
            .await;
    for _ in 0..3 {
        assert_eq!(stage.call_text("mcp__s__go", json!({})).await, "right");
    }
    stage.registry.close().await;
}

#[tokio::test]
async fn a_response_after_cancellation_is_ignored() {
    // The first call is answered only after its cancellation has arrived.
    let call = format!(
        "if test -e begun; then {}; else echo > begun; read -r cancellation; {}; echo > answered; fi",
        reply_text("in time"),
        reply_text("too late")
    );
    let stage = TestServers::start(json!({"s": server_entry(LIST_ONE_TOOL, &call)})).await;
    let tool = stage.tool("mcp__s__go");
    let (ended, ()) = tokio::join!(tool.run(json!({}), stage.tool_context()), async {
        stage.wait_file("begun").await;
        stage.cancel.cancel();
    });
    assert_eq!(ended.unwrap_err().reason(), "MCP server s: the call was cancelled.");
    stage.wait_file("answered").await;
    let again = ToolContext { cancel: CancellationToken::new(), ..stage.tool_context() };
    let done = tokio::time::timeout(TEST_TIMEOUT, tool.run(json!({}), again)).await.unwrap().unwrap();
    assert_eq!(done.meta[0]["text"], "in time");
    stage.registry.close().await;
}

#[tokio::test]
async fn a_deeply_nested_response_is_truncated() {
    let deep = r#"{ printf '{"jsonrpc":"2.0","id":%s,"result":{"content":' "$id"; head -c 100000 /dev/zero | tr '\0' '['; head -c 100000 /dev/zero | tr '\0' ']'; echo '}}'; }"#;
    let stage = TestServers::start(json!({"deep": server_entry(LIST_ONE_TOOL, deep)})).await;
    let said = stage.call_text("mcp__deep__go", json!({})).await;
    assert!(said.contains("[[[null]]]"), "{said}");
    stage.registry.close().await;
}

#[tokio::test]
async fn many_and_invalid_tools_are_limited() {
    let strange = r##"{"name":"a.b","inputSchema":{"type":"object"}},{"name":"a_b","inputSchema":{"type":"object"}},{"name":"self","inputSchema":{"type":"object","properties":{"me":{"$ref":"#"}},"required":["me"]}},{"name":"bad","inputSchema":{"type":"object","properties":{"a b":{}}}},{"name":7},"##;
    let list = format!(
        r#"{{ printf '{{"jsonrpc":"2.0","id":%s,"result":{{"tools":[{strange}' "$id"; seq -f '{{"name":"t%g","inputSchema":{{"type":"object"}}}},' 5000 | tr -d '\n'; printf '{{"name":"last","inputSchema":{{"type":"object"}}}}],"nextCursor":"again"}}}}\n'; }}"#
    );
    let stage = TestServers::start(json!({"many": server_entry(&list, &reply_text("ok"))})).await;
    assert_eq!(stage.status_and_error("many"), ("connected".into(), String::new()));
    let names = stage.tool_names();
    assert_eq!(names[..3], ["mcp__many__a_b", "mcp__many__a_b_2", "mcp__many__self"]);
    assert_eq!(names.len(), 999);
    let notes = stage.registry.notes().join("\n");
    for says in ["more than 1000 tools", "1 of its tools cannot be read", "bad is left out"] {
        assert!(notes.contains(says), "{notes}");
    }
    // Each name leads to the tool that it was made from.
    assert_eq!(stage.call_text("mcp__many__a_b_2", json!({})).await, "ok");
    stage.registry.close().await;
}

#[tokio::test]
async fn a_repeating_cursor_ends_the_list() {
    let list = r#"printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"go","inputSchema":{"type":"object"}}],"nextCursor":"same"}}\n' "$id""#;
    let stage = TestServers::start(json!({"round": server_entry(list, &reply_text("ok"))})).await;
    assert_eq!(stage.tool_names(), ["mcp__round__go", "mcp__round__go_2"]);
    stage.registry.close().await;
}

#[tokio::test]
async fn a_server_that_does_not_read_blocks_nothing() {
    let mut deaf = server_entry(LIST_ONE_TOOL, "exec sleep 300");
    deaf["timeout"] = 400.into();
    let stage = TestServers::start(json!({"deaf": deaf})).await;
    let large = json!({"text": "x".repeat(3_000_000)});
    let (first, second) = tokio::join!(
        stage.call_text("mcp__deaf__go", large.clone()),
        stage.call_text("mcp__deaf__go", large)
    );
    for said in [first, second] {
        assert_eq!(said, "error: MCP server deaf: it did not answer within 400 ms.");
    }
    tokio::time::timeout(TEST_TIMEOUT, stage.registry.close()).await.unwrap();
}

#[tokio::test]
async fn a_handshake_error_is_reported() {
    let refuses = shell_entry(
        r#"read -r line; echo '{"jsonrpc":"2.0","id":0,"error":{"code":-32000,"message":"no licence"}}'; sleep 300"#,
    );
    let stage = TestServers::start(json!({"no": refuses})).await;
    assert_eq!(stage.status_and_error("no"), ("failed".into(), "it refused to begin: no licence".into()));
    let wrong =
        shell_entry(r#"read -r line; echo '{"jsonrpc":"2.0","id":0,"result":{"hello":true}}'; sleep 300"#);
    let stage = TestServers::start(json!({"no": wrong})).await;
    assert!(
        stage.status_and_error("no").1.contains("no answer to `initialize`"),
        "{:?}",
        stage.status_and_error("no")
    );
    let value: Value = serde_json::to_value(stage.registry.status()).unwrap();
    assert_eq!(value[0]["status"], "failed");
    stage.registry.close().await;
}
