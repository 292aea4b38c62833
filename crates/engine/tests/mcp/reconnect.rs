//! Servers that exit, and their reconnection.

use whimbrel_testkit::Reply;
use whimbrel_wire::control::{McpConnection, McpStatus};

use crate::fixture::{host, wait_until_processes_gone, word_call};

#[tokio::test]
async fn crashed_server_fails_its_call_and_restarts() {
    let script = [
        word_call("mcp__sh__die", ""),
        word_call("mcp__sh__echo", "back"),
        Reply::text("Done."),
        Reply::text("Again."),
    ];
    let mut host = host(script).start().await.unwrap();
    host.run("Go.").await.unwrap();
    let requests = host.model_requests();
    let text = requests[1].last_text();
    assert!(text.contains("MCP server sh: its program exited with code 3. Its stderr: I give up"), "{text}");
    assert!(
        requests[2].contains_text("said: back"),
        "the next call waits for the restart: {}",
        requests[2].last_text()
    );
    assert_eq!(requests[0].body["tools"], requests[2].body["tools"], "its tools stay during the restart");
    let status = host.send_request(McpStatus::default()).await.unwrap();
    assert_eq!(status.mcp_servers[0].status, McpConnection::Connected);
    host.run("Again.").await.unwrap();
    let texts = host.info_texts();
    assert!(texts.iter().any(|text| text.contains("MCP server sh: its program exited")), "{texts:?}");
    assert!(texts.contains(&"MCP server sh is connected again."), "{texts:?}");
    let dir = host.dirs().workspace().to_path_buf();
    host.finish().await.unwrap();
    wait_until_processes_gone(&dir).await;
}

#[tokio::test]
async fn dropped_session_leaves_no_server_process() {
    let mut host = host([Reply::text("Never complete.").stall_after(1)]).start().await.unwrap();
    host.send_prompt("Go.").await.unwrap();
    host.next_matching(&serde_json::json!({"subtype": "init"})).await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let pids = std::fs::read(host.dirs().workspace().join("pids")).unwrap();
    std::fs::write(dir.path().join("pids"), pids).unwrap();
    drop(host);
    wait_until_processes_gone(dir.path()).await;
}
