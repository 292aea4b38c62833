//! Tests of calls to a well-behaved server.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt;
use serde_json::{Map, Value, json};
use whimbrel_process::test_support::read_pid;
use whimbrel_wire::Block;
use whimbrel_wire::control::{Elicitation, ElicitationAction, ElicitationReply};

use super::fixture::TestServers;
use super::test_server;
use crate::{McpLimits, ServerDeps, ServerNotification};

#[tokio::test]
async fn tools_are_listed_over_all_pages_and_called() {
    let servers = TestServers::start_test_server().await;
    let names = servers.tool_names();
    assert_eq!(names[..3], ["mcp__play__echo", "mcp__play__env", "mcp__play__boom"]);
    assert_eq!(names.len(), 13);
    let blocks = servers.call("mcp__play__echo", json!({"word": "hey"})).await.unwrap();
    assert_eq!(blocks, [Block::text("echo:hey")]);
    let boom = servers.call("mcp__play__boom", json!({})).await;
    assert_eq!(boom, Err("boom happened".into()));
    servers.registry.close().await;
}

#[tokio::test]
async fn a_program_gets_the_session_environment_and_its_own() {
    let mut entry = test_server::entry();
    entry["env"]["OWN"] = "own".into();
    entry["env"]["BOTH"] = "own".into();
    entry["env"]["OPENAI_API_KEY"] = "own".into();
    let servers = TestServers::start_with(json!({"play": entry}), |mut deps| {
        for name in ["SESSION", "BOTH", "ANTHROPIC_API_KEY", "OPENAI_API_KEY"] {
            deps.environment.insert(name.into(), "session".into());
        }
        deps
    })
    .await;
    let expected = [
        ("OWN", "own"),
        ("SESSION", "session"),
        ("BOTH", "own"),
        ("HOME", ""),
        ("ANTHROPIC_API_KEY", ""),
        ("OPENAI_API_KEY", "own"),
    ];
    for (name, value) in expected {
        let text = servers.call_text("mcp__play__env", json!({"word": name})).await;
        assert_eq!(text.replace("(no output)", ""), value, "{name}");
    }
    servers.registry.close().await;
}

#[tokio::test]
async fn a_call_sends_its_id_and_reports_progress() {
    let received = Arc::new(Mutex::new(Vec::new()));
    let recorder = Arc::clone(&received);
    let servers = TestServers::start_with(json!({"play": test_server::entry()}), |deps| ServerDeps {
        notify: Some(Arc::new(move |notification| {
            let ServerNotification::Progress(progress) = notification else { panic!("{notification:?}") };
            recorder.lock().unwrap().push(progress);
        })),
        ..deps
    })
    .await;
    let meta: Value = serde_json::from_str(&servers.call_text("mcp__play__meta", json!({})).await).unwrap();
    assert_eq!(meta["claudecode/toolUseId"], "toolu_1");
    assert!(meta["progressToken"].is_number());
    assert_eq!(servers.call_text("mcp__play__work", json!({})).await, "worked");
    servers.registry.close().await;
    let received = received.lock().unwrap();
    // The last notification may arrive after the response.
    assert!(received.len() >= 2, "{received:?}");
    assert_eq!(
        (received[0].progress, received[0].total, received[0].message.as_deref()),
        (1.0, Some(3.0), Some("at it"))
    );
    assert_eq!((received[0].tool.as_str(), received[0].tool_use_id.as_str()), ("mcp__play__work", "toolu_1"));
}

#[tokio::test]
async fn a_cancelled_or_dropped_call_is_cancelled_at_the_server() {
    for method in ["token", "drop"] {
        let servers = TestServers::start_test_server().await;
        let tool = servers.tool("mcp__play__wait");
        let mut call = tool.call(servers.request(json!({}))).boxed();
        let marker = servers.dir().join("waiting");
        while !marker.exists() {
            assert!(tokio::time::timeout(Duration::from_millis(5), &mut call).await.is_err(), "{method}");
        }
        if method == "token" {
            servers.cancel.cancel();
            let result = call.await;
            assert_eq!(result, Err("MCP server play: the call was cancelled.".into()));
        } else {
            drop(call);
        }
        servers.wait_file("cancelled").await;
        if method == "drop" {
            assert_eq!(servers.call_text("mcp__play__echo", json!({"word": "still"})).await, "echo:still");
        }
        servers.registry.close().await;
    }
}

#[tokio::test]
async fn a_timed_out_call_is_cancelled_at_the_server() {
    let mut entry = test_server::entry();
    entry["timeout"] = 300.into();
    let servers = TestServers::start(json!({"play": entry})).await;
    let text = servers.call_text("mcp__play__wait", json!({})).await;
    assert_eq!(text, "error: MCP server play: it did not answer within 300 ms.");
    servers.wait_file("cancelled").await;
    assert_eq!(servers.call_text("mcp__play__echo", json!({"word": "x"})).await, "echo:x");
    servers.registry.close().await;
}

#[tokio::test]
async fn a_server_can_elicit_input_from_the_user() {
    let elicitations = Arc::new(Mutex::new(Vec::<Elicitation>::new()));
    let recorder = Arc::clone(&elicitations);
    let content = Map::from_iter([("name".to_owned(), json!("Zed"))]);
    let servers = TestServers::start_with(json!({"play": test_server::entry()}), |deps| ServerDeps {
        elicit: Some(Arc::new(move |elicitation| {
            recorder.lock().unwrap().push(elicitation);
            let content = Some(content.clone());
            async move { ElicitationReply { action: ElicitationAction::Accept, content } }.boxed()
        })),
        ..deps
    })
    .await;
    let answer: Value = serde_json::from_str(&servers.call_text("mcp__play__ask", json!({})).await).unwrap();
    assert_eq!(answer, json!({"action": "accept", "content": {"name": "Zed"}}));
    let elicitation = elicitations.lock().unwrap().pop().unwrap();
    assert_eq!(
        (elicitation.mcp_server_name.as_str(), elicitation.message.as_str()),
        ("play", "Who are you?")
    );
    assert_eq!(elicitation.mode.as_deref(), Some("form"));
    assert_eq!(elicitation.requested_schema.unwrap()["properties"]["name"]["type"], "string");
    servers.registry.close().await;
}

#[tokio::test]
async fn unsupported_requests_get_an_error() {
    let servers = TestServers::start_test_server().await;
    let sample = servers.call_text("mcp__play__sample", json!({})).await;
    assert!(sample.contains("-32601") && sample.contains("does not support sampling"), "{sample}");
    let ask = servers.call_text("mcp__play__ask", json!({})).await;
    assert!(ask.contains("-32601") && ask.contains("does not support elicitation"), "{ask}");
    let roots = servers.call_text("mcp__play__roots", json!({})).await;
    assert!(roots.contains(&format!("file://{}", servers.dir().display())), "{roots}");
    servers.registry.close().await;
}

#[tokio::test]
async fn a_new_tool_is_listed_after_list_changed() {
    let servers = TestServers::start_test_server().await;
    assert!(!servers.tool_names().contains(&"mcp__play__grown".to_owned()));
    assert_eq!(servers.call_text("mcp__play__grow", json!({})).await, "grown");
    servers.wait_until(|servers| servers.tool_names().contains(&"mcp__play__grown".to_owned())).await;
    assert_eq!(servers.call_text("mcp__play__grown", json!({})).await, "I am new");
    servers.registry.close().await;
}

#[tokio::test]
async fn resources_are_listed_and_read() {
    let servers = TestServers::start_test_server().await;
    assert!(servers.registry.has_resources());
    let (listed, problems) = servers.registry.list_resources(None).await.unwrap();
    let one = json!({"uri": "play://one", "name": "one", "mimeType": "text/plain", "server": "play"});
    assert_eq!((&listed[0], listed.len(), problems.len()), (&one, 2, 0));
    let unknown = servers.registry.list_resources(Some("other")).await.unwrap_err();
    assert_eq!(unknown, "Server not found: other. Available: play.");
    let read = servers.registry.read_resource("play", "play://one").await.unwrap();
    assert_eq!(read.contents[0].text.as_deref(), Some("the first"));
    let missing = servers.registry.read_resource("play", "play://no").await.unwrap_err();
    assert!(missing.contains("there is no play://no"), "{missing}");
    servers.registry.close().await;
}

#[tokio::test]
async fn prompts_are_commands() {
    let servers = TestServers::start_test_server().await;
    let commands = servers.registry.prompts();
    let hello = &commands[0];
    assert_eq!((hello.name.as_str(), hello.description.as_str()), ("mcp__play__hello", "says hello"));
    for (arguments, expected) in [("Zed", "Hello Zed"), ("", "Hello world")] {
        let blocks = servers.registry.get_prompt(hello, arguments, servers.dir()).await.unwrap();
        assert_eq!(serde_json::to_value(blocks).unwrap(), json!([{"type": "text", "text": expected}]));
    }
    assert_eq!(servers.registry.instructions(), [("play".to_owned(), "Play fair.".to_owned())]);
    servers.registry.close().await;
}

#[tokio::test]
async fn long_results_are_truncated_and_saved() {
    let servers = TestServers::start_with(json!({"play": test_server::entry()}), |deps| ServerDeps {
        limits: McpLimits { max_output_bytes: 40_000, ..deps.limits },
        ..deps
    })
    .await;
    let short = servers.call_text("mcp__play__flood", json!({"bytes": 40_000})).await;
    assert_eq!(short.len(), 40_000);
    let long = servers.call_text("mcp__play__flood", json!({"bytes": 3_000_000})).await;
    assert!(long.len() < 20_000 && long.contains("<persisted-output>\n3.0 MB of output"), "{long}");
    servers.registry.close().await;
}

#[tokio::test]
async fn daemons_of_a_server_end_with_it() {
    let servers = TestServers::start_test_server().await;
    servers.call_text("mcp__play__daemon", json!({})).await;
    let daemon = read_pid(&servers.dir().join("daemon")).await;
    servers.registry.close().await;
    assert!(whimbrel_process::test_support::exits(daemon).await);
}
