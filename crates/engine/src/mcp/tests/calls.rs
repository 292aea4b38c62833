//! Tests of calls to a well-behaved server.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt;
use serde_json::{Map, Value, json};
use whimbrel_wire::content::ResultContent;
use whimbrel_wire::control::{Elicitation, ElicitationAction, ElicitationReply};

use super::fixture::TestServers;
use super::player;
use crate::mcp::{McpLimits, ServerDeps, ServerNotification};
use crate::tools::{Effects, ToolError};
use whimbrel_process::test_support::read_pid;

#[tokio::test]
async fn tools_are_listed_over_all_pages_and_called() {
    let stage = TestServers::start_test_server().await;
    let names = stage.tool_names();
    assert_eq!(names[..3], ["mcp__play__echo", "mcp__play__env", "mcp__play__boom"]);
    assert_eq!(names[names.len() - 2..], ["ListMcpResourcesTool", "ReadMcpResourceTool"]);
    assert_eq!(names.len(), 15);
    let done = stage.run_tool("mcp__play__echo", json!({"word": "hey"})).await.unwrap();
    let blocks = json!([{"type": "text", "text": "echo:hey"}]);
    assert_eq!(done.meta, blocks);
    assert!(matches!(done.content, ResultContent::Blocks(_)));
    let boom = stage.run_tool("mcp__play__boom", json!({})).await;
    assert_eq!(boom, Err(ToolError::Failed("boom happened".into())));
    // Null input is accepted, other types are not.
    assert_eq!(stage.call_text("mcp__play__echo", Value::Null).await, "echo:");
    let refused = stage.tool("mcp__play__echo").effects(&json!([1]));
    assert!(matches!(refused, Err(ToolError::Rejected(_))));
    stage.registry.close().await;
}

#[tokio::test]
async fn a_tool_has_the_servers_spec() {
    let stage = TestServers::start_test_server().await;
    let echo = stage.tool("mcp__play__echo");
    let spec = echo.spec();
    assert_eq!((spec.name.as_str(), spec.description.as_str()), ("mcp__play__echo", "The tool echo"));
    assert_eq!(
        spec.input_schema.as_str(),
        r#"{"type":"object","properties":{"word":{"type":"string"}},"required":["word"]}"#
    );
    assert_eq!(echo.effects(&json!({"word": "a"})), Ok(Effects::Reads(Vec::new())));
    assert_eq!(stage.tool("mcp__play__env").effects(&json!({})), Ok(Effects::RunsProgram));
    assert_eq!((echo.server(), echo.needs_user()), (Some("play"), false));
    stage.registry.close().await;
}

#[tokio::test]
async fn a_program_gets_the_session_environment_and_its_own() {
    let mut entry = player::entry();
    entry["env"]["OWN"] = "own".into();
    entry["env"]["BOTH"] = "own".into();
    let stage = TestServers::start_with(json!({"play": entry}), |mut surroundings| {
        for name in ["SESSION", "BOTH"] {
            surroundings.environment.insert(name.into(), "session".into());
        }
        surroundings
    })
    .await;
    for (name, value) in [("OWN", "own"), ("SESSION", "session"), ("BOTH", "own"), ("HOME", "")] {
        let said = stage.call_text("mcp__play__env", json!({"word": name})).await;
        assert_eq!(said.replace("(no output)", ""), value, "{name}");
    }
    stage.registry.close().await;
}

#[tokio::test]
async fn a_call_sends_its_id_and_reports_progress() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let hears = Arc::clone(&told);
    let stage = TestServers::start_with(json!({"play": player::entry()}), |surroundings| ServerDeps {
        notify: Some(Arc::new(move |news| {
            let ServerNotification::Progress(progress) = news else { panic!("{news:?}") };
            hears.lock().unwrap().push(progress);
        })),
        ..surroundings
    })
    .await;
    let meta: Value = serde_json::from_str(&stage.call_text("mcp__play__meta", json!({})).await).unwrap();
    assert_eq!(meta["claudecode/toolUseId"], "toolu_1");
    assert!(meta["progressToken"].is_number());
    assert_eq!(stage.call_text("mcp__play__work", json!({})).await, "worked");
    stage.registry.close().await;
    let told = told.lock().unwrap();
    // The last notification may arrive after the response.
    assert!(told.len() >= 2, "{told:?}");
    assert_eq!(
        (told[0].progress, told[0].total, told[0].message.as_deref()),
        (1.0, Some(3.0), Some("at it"))
    );
    assert_eq!((told[0].tool.as_str(), told[0].tool_use_id.as_str()), ("mcp__play__work", "toolu_1"));
}

#[tokio::test]
async fn a_cancelled_or_dropped_call_is_cancelled_at_the_server() {
    for way in ["token", "drop"] {
        let stage = TestServers::start_test_server().await;
        let tool = stage.tool("mcp__play__wait");
        let mut call = std::pin::pin!(tool.run(json!({}), stage.tool_context()));
        let began = stage.dir().join("waiting");
        while !began.exists() {
            assert!(tokio::time::timeout(Duration::from_millis(5), &mut call).await.is_err(), "{way}");
        }
        if way == "token" {
            stage.cancel.cancel();
            let ended = call.await;
            assert_eq!(ended, Err(ToolError::Failed("MCP server play: the call was cancelled.".into())));
        } else {
            call.set(Box::pin(std::future::pending()));
        }
        stage.wait_file("cancelled").await;
        if way == "drop" {
            assert_eq!(stage.call_text("mcp__play__echo", json!({"word": "still"})).await, "echo:still");
        }
        stage.registry.close().await;
    }
}

#[tokio::test]
async fn a_timed_out_call_is_cancelled_at_the_server() {
    let mut entry = player::entry();
    entry["timeout"] = 300.into();
    let stage = TestServers::start(json!({"play": entry})).await;
    let said = stage.call_text("mcp__play__wait", json!({})).await;
    assert_eq!(said, "error: MCP server play: it did not answer within 300 ms.");
    stage.wait_file("cancelled").await;
    assert_eq!(stage.call_text("mcp__play__echo", json!({"word": "x"})).await, "echo:x");
    stage.registry.close().await;
}

#[tokio::test]
async fn a_server_can_elicit_input_from_the_user() {
    let asked = Arc::new(Mutex::new(Vec::<Elicitation>::new()));
    let hears = Arc::clone(&asked);
    let content = Map::from_iter([("name".to_owned(), json!("Zed"))]);
    let stage = TestServers::start_with(json!({"play": player::entry()}), |surroundings| ServerDeps {
        elicit: Some(Arc::new(move |question| {
            hears.lock().unwrap().push(question);
            let content = Some(content.clone());
            async move { ElicitationReply { action: ElicitationAction::Accept, content } }.boxed()
        })),
        ..surroundings
    })
    .await;
    let answer: Value = serde_json::from_str(&stage.call_text("mcp__play__ask", json!({})).await).unwrap();
    assert_eq!(answer, json!({"action": "accept", "content": {"name": "Zed"}}));
    let question = asked.lock().unwrap().pop().unwrap();
    assert_eq!((question.mcp_server_name.as_str(), question.message.as_str()), ("play", "Who are you?"));
    assert_eq!(question.mode.as_deref(), Some("form"));
    assert_eq!(question.requested_schema.unwrap()["properties"]["name"]["type"], "string");
    stage.registry.close().await;
}

#[tokio::test]
async fn unsupported_requests_get_an_error() {
    let stage = TestServers::start_test_server().await;
    let sample = stage.call_text("mcp__play__sample", json!({})).await;
    assert!(sample.contains("-32601") && sample.contains("does not offer sampling"), "{sample}");
    let ask = stage.call_text("mcp__play__ask", json!({})).await;
    assert!(ask.contains("-32601") && ask.contains("nobody to ask"), "{ask}");
    let roots = stage.call_text("mcp__play__roots", json!({})).await;
    assert!(roots.contains(&format!("file://{}", stage.dir().display())), "{roots}");
    stage.registry.close().await;
}

#[tokio::test]
async fn a_new_tool_is_listed_after_list_changed() {
    let stage = TestServers::start_test_server().await;
    assert!(!stage.tool_names().contains(&"mcp__play__grown".to_owned()));
    assert_eq!(stage.call_text("mcp__play__grow", json!({})).await, "grown");
    stage.wait_until(|stage| stage.tool_names().contains(&"mcp__play__grown".to_owned())).await;
    assert_eq!(stage.call_text("mcp__play__grown", json!({})).await, "I am new");
    stage.registry.close().await;
}

#[tokio::test]
async fn resources_are_listed_and_read() {
    let stage = TestServers::start_test_server().await;
    let listed = stage.run_tool("ListMcpResourcesTool", json!({})).await.unwrap();
    let one = json!({"uri": "play://one", "name": "one", "mimeType": "text/plain", "server": "play"});
    assert_eq!(listed.meta[0], one);
    assert_eq!(listed.meta.as_array().unwrap().len(), 2);
    let said = stage.call_text("ListMcpResourcesTool", json!({"server": "play"})).await;
    assert_eq!(serde_json::from_str::<Value>(&said).unwrap(), listed.meta);
    let unknown = stage.call_text("ListMcpResourcesTool", json!({"server": "other"})).await;
    assert!(unknown.contains("Server not found: other. There are: play."), "{unknown}");
    let read =
        stage.run_tool("ReadMcpResourceTool", json!({"server": "play", "uri": "play://one"})).await.unwrap();
    let contents =
        json!({"contents": [{"uri": "play://one", "mimeType": "text/plain", "text": "the first"}]});
    assert_eq!(read.meta, contents);
    let bytes = stage
        .run_tool("ReadMcpResourceTool", json!({"server": "play", "uri": "play://bytes"}))
        .await
        .unwrap();
    let saved = bytes.meta["contents"][0]["blobSavedTo"].as_str().unwrap();
    assert_eq!(std::fs::read(saved).unwrap(), [1, 2, 3]);
    let missing = stage.call_text("ReadMcpResourceTool", json!({"server": "play", "uri": "play://no"})).await;
    assert!(missing.contains("there is no play://no"), "{missing}");
    stage.registry.close().await;
}

#[tokio::test]
async fn prompts_are_commands() {
    let stage = TestServers::start_test_server().await;
    let commands = stage.registry.prompts();
    let hello = &commands[0];
    assert_eq!((hello.name.as_str(), hello.description.as_str()), ("mcp__play__hello", "says hello"));
    for (written, says) in [("Zed", "Hello Zed"), ("", "Hello nobody")] {
        let blocks = stage.registry.get_prompt(hello, written, stage.dir()).await.unwrap();
        assert_eq!(serde_json::to_value(blocks).unwrap(), json!([{"type": "text", "text": says}]));
    }
    assert_eq!(stage.registry.instructions(), [("play".to_owned(), "Play fair.".to_owned())]);
    stage.registry.close().await;
}

#[tokio::test]
async fn long_results_are_truncated_and_saved() {
    let stage = TestServers::start_with(json!({"play": player::entry()}), |surroundings| ServerDeps {
        limits: McpLimits { max_output_bytes: 40_000, ..surroundings.limits },
        ..surroundings
    })
    .await;
    let short = stage.call_text("mcp__play__flood", json!({"bytes": 40_000})).await;
    assert_eq!(short.len(), 40_000);
    let long = stage.call_text("mcp__play__flood", json!({"bytes": 3_000_000})).await;
    assert!(long.len() < 20_000 && long.contains("<persisted-output>\n3.0 MB of output"), "{long}");
    stage.registry.close().await;
}

#[tokio::test]
async fn daemons_of_a_server_end_with_it() {
    let stage = TestServers::start_test_server().await;
    stage.call_text("mcp__play__daemon", json!({})).await;
    let daemon = read_pid(&stage.dir().join("daemon")).await;
    stage.registry.close().await;
    assert!(whimbrel_process::test_support::exits(daemon).await);
}
