//! Tools that are functions of this program, with the engine in this process.
#![cfg(feature = "in-process")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Barrier;
use whimbrel::wire::Block;
use whimbrel::wire::content::Source;
use whimbrel::wire::control::McpConnection;
use whimbrel::wire::hook::{HookEvent, HookOutput};
use whimbrel::{Agent, Frame, Hook, Json, Scripted, Session, Tool, ToolOutput, ToolServer, query, tool};

#[derive(Deserialize, JsonSchema)]
struct Sum {
    /// The first number.
    a: i64,
    b: i64,
}

#[derive(Deserialize, JsonSchema)]
struct NoInput {}

fn add_tool() -> Tool {
    tool("add", "Adds", |sum: Sum| async move {
        sum.a.checked_add(sum.b).map(|sum| sum.to_string()).ok_or("That is too much.")
    })
}

fn tool_call(tool: &str, input: &Value) -> Value {
    json!({"type": "tool_use", "name": tool, "input": input})
}

/// A scripted agent with a tool server, and the script, which records its requests.
fn agent_with_server(server: ToolServer, replies: Value) -> (Agent, Arc<Scripted>) {
    let script = Arc::new(Scripted::replies(replies).unwrap());
    let agent = Agent::new()
        .cwd(std::env::temp_dir())
        .persist_session(false)
        .tool_server(server)
        .allowed_tools(["mcp__calc"])
        .script(Arc::clone(&script));
    (agent, script)
}

async fn with_timeout<T>(wait: impl IntoFuture<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(30), wait).await.unwrap()
}

/// Last message that the model received.
fn last_message(script: &Scripted) -> String {
    script.requests().last().unwrap()["messages"].as_array().unwrap().last().unwrap().to_string()
}

#[tokio::test]
async fn function_gets_its_input_and_errors_reach_the_model() {
    let rows = [
        (json!({"a": 2, "b": 3}), r#""text":"5""#, false),
        (json!({"a": i64::MAX, "b": 1}), "That is too much.", true),
        (json!({"a": 2}), "InputValidationError", true),
    ];
    for (input, expected, failed) in rows {
        let server = ToolServer::new("calc").instructions("CALC-INSTRUCTIONS").tool(add_tool());
        let (agent, script) =
            agent_with_server(server, json!([[tool_call("mcp__calc__add", &input)], "done"]));
        with_timeout(query("go", &agent)).await.unwrap();
        let message = last_message(&script);
        assert!(message.contains(expected), "{input}: {message}");
        assert_eq!(message.contains(r#""is_error":true"#), failed, "{input}: {message}");
        let first = script.requests()[0].to_string();
        assert!(first.contains("mcp__calc__add") && first.contains("The first number."), "{first}");
        assert!(first.contains("CALC-INSTRUCTIONS"));
    }
}

#[tokio::test]
async fn enum_input_is_one_object_without_combinators() {
    #[derive(Deserialize, JsonSchema)]
    #[serde(tag = "op", rename_all = "snake_case")]
    enum Operation {
        /// Adds two numbers.
        Add {
            a: i64,
            b: i64,
        },
        Negate {
            a: i64,
        },
    }
    let compute = tool("compute", "Computes", |operation: Operation| async move {
        match operation {
            Operation::Add { a, b } => (a + b).to_string(),
            Operation::Negate { a } => (-a).to_string(),
        }
    });
    let rows = [
        (json!({"op": "add", "a": 2, "b": 3}), "5"),
        (json!({"op": "negate", "a": 2}), "-2"),
        (json!({"op": "negate"}), "missing field `a`"),
    ];
    for (input, expected) in rows {
        let server = ToolServer::new("calc").tool(compute.clone());
        let (agent, script) =
            agent_with_server(server, json!([[tool_call("mcp__calc__compute", &input)], "done"]));
        with_timeout(query("go", &agent)).await.unwrap();
        assert!(last_message(&script).contains(expected), "{input}: {}", last_message(&script));
        let tools = script.requests()[0]["tools"].clone();
        let sent =
            tools.as_array().unwrap().iter().find(|tool| tool["name"] == "mcp__calc__compute").unwrap();
        let schema = sent["input_schema"].as_object().unwrap();
        assert!(["oneOf", "anyOf", "allOf"].iter().all(|key| !schema.contains_key(*key)), "{sent}");
        assert_eq!(schema["properties"]["op"]["enum"], json!(["add", "negate"]));
        assert!(sent["description"].as_str().unwrap().contains("Adds two numbers."), "{sent}");
    }
}

#[tokio::test]
async fn input_that_is_no_object_is_a_field() {
    let shout = tool("shout", "Shouts", |word: String| async move { word.to_uppercase() });
    let call = json!([tool_call("mcp__calc__shout", &json!({"value": "hey"}))]);
    let (agent, script) = agent_with_server(ToolServer::new("calc").tool(shout), json!([call, "done"]));
    with_timeout(query("go", &agent)).await.unwrap();
    assert!(last_message(&script).contains("HEY"), "{}", last_message(&script));
}

#[tokio::test]
async fn failed_call_keeps_its_pictures() {
    let picture = Block::Image {
        source: Source::Base64 { media_type: "image/png".into(), data: "iVBORw0KGgo=".into() },
    };
    let output = ToolOutput { content: vec![Block::text("It broke."), picture], failed: true };
    let broken = tool("broken", "Breaks", move || std::future::ready(output.clone()));
    let call = json!([tool_call("mcp__calc__broken", &json!({}))]);
    let (agent, script) = agent_with_server(ToolServer::new("calc").tool(broken), json!([call, "done"]));
    let mut running = query("go", &agent);
    let mut failed = None;
    while let Some(frame) = with_timeout(running.next()).await {
        if let Frame::User(user) = frame.unwrap() {
            failed = Some(serde_json::to_value(&user.message).unwrap()["content"][0]["is_error"].clone());
        }
    }
    assert_eq!(failed, Some(json!(true)), "the host is told that the call failed");
    let message = last_message(&script);
    assert!(message.contains("iVBORw0KGgo=") && message.contains("It broke."), "{message}");
    assert!(message.contains("The call failed.") && !message.contains(r#""is_error":true"#), "{message}");
}

#[tokio::test]
async fn read_only_tools_run_concurrently() {
    let both = Arc::new(Barrier::new(2));
    let look = tool("look", "Looks", move |_: NoInput| {
        let both = Arc::clone(&both);
        async move {
            both.wait().await;
            Json(json!({"seen": true}))
        }
    });
    let calls = json!([tool_call("mcp__calc__look", &json!({})), tool_call("mcp__calc__look", &json!({}))]);
    let (agent, script) =
        agent_with_server(ToolServer::new("calc").tool(look.read_only()), json!([calls, "done"]));
    with_timeout(query("go", &agent)).await.unwrap();
    assert_eq!(last_message(&script).matches(r#"{\"seen\":true}"#).count(), 2, "{}", last_message(&script));
}

#[tokio::test]
async fn hook_replaces_the_output_of_a_function() {
    let input = json!({"a": 2, "b": 3});
    let server = ToolServer::new("calc").tool(add_tool());
    let (agent, script) = agent_with_server(server, json!([[tool_call("mcp__calc__add", &input)], "done"]));
    let other = json!([{"type": "text", "text": "NOT FIVE"}]);
    let answer =
        json!({"hookSpecificOutput": {"hookEventName": "PostToolUse", "updatedMCPToolOutput": other}});
    let answer: HookOutput = serde_json::from_value(answer).unwrap();
    let hook = Hook::on(HookEvent::PostToolUse, move |_| std::future::ready(answer.clone()));
    with_timeout(query("go", &agent.hook(hook))).await.unwrap();
    let message = last_message(&script);
    assert!(message.contains("NOT FIVE") && !message.contains(r#""text":"5""#), "{message}");
}

#[tokio::test]
async fn a_subagent_calls_the_same_function() {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let tick = tool("tick", "Counts", move |_: NoInput| {
        counted.fetch_add(1, Ordering::Relaxed);
        async {}
    });
    let errand = json!([tool_call("Agent", &json!({"description": "d", "prompt": "p"}))]);
    let tick_call = json!([tool_call("mcp__calc__tick", &json!({}))]);
    let (agent, _) =
        agent_with_server(ToolServer::new("calc").tool(tick), json!([errand, tick_call, "ticked", "done"]));
    with_timeout(query("go", &agent)).await.unwrap();
    assert_eq!(count.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn panic_fails_the_call_and_the_session_goes_on() {
    let broken = tool("broken", "Breaks", |_: NoInput| async {
        if true {
            panic!("on purpose");
        }
    });
    let server = ToolServer::new("calc").tool(broken);
    let (agent, script) =
        agent_with_server(server, json!([[tool_call("mcp__calc__broken", &json!({}))], "done"]));
    let result = with_timeout(query("go", &agent)).await.unwrap();
    assert_eq!(result.text(), "done");
    assert!(last_message(&script).contains("crashed"), "{}", last_message(&script));
}

#[tokio::test]
async fn tool_server_can_be_listed_and_toggled() {
    let (agent, script) = agent_with_server(
        ToolServer::new("calc").version("3").tool(add_tool().read_only()),
        json!(["one", "two"]),
    );
    let mut session = Session::open(&agent).await.unwrap();
    session.send("hi").await.unwrap();
    with_timeout(session.result()).await.unwrap();
    let controls = session.controls().clone();
    let status = with_timeout(controls.mcp_status()).await.unwrap();
    assert_eq!(status[0].status, McpConnection::Connected);
    assert_eq!(status[0].server_info.as_ref().unwrap().version, "3");
    let tools = status[0].tools.as_ref().unwrap();
    assert_eq!(tools[0].annotations.as_ref().unwrap().read_only, Some(true));
    with_timeout(controls.toggle_mcp_server("calc", false)).await.unwrap();
    session.send("hi").await.unwrap();
    with_timeout(session.result()).await.unwrap();
    assert!(!script.requests()[1].to_string().contains("mcp__calc__add"));
    with_timeout(controls.reconnect_mcp_server("calc")).await.unwrap();
    assert_eq!(with_timeout(controls.mcp_status()).await.unwrap()[0].status, McpConnection::Connected);
}

#[tokio::test]
async fn call_needs_permission_and_interrupt_drops_its_future() {
    struct Dropped(Arc<Mutex<bool>>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            *self.0.lock().unwrap() = true;
        }
    }
    let dropped = Arc::new(Mutex::new(false));
    let (begun, mut began) = tokio::sync::mpsc::unbounded_channel();
    let seen = Arc::clone(&dropped);
    let wait = tool("wait", "Waits", move |_: NoInput| {
        let (guard, begun) = (Dropped(Arc::clone(&seen)), begun.clone());
        async move {
            let _guard = guard;
            begun.send(()).unwrap();
            std::future::pending::<()>().await;
        }
    });
    let server = ToolServer::new("calc").tool(wait);
    let reply = json!([[tool_call("mcp__calc__wait", &json!({}))], "done"]);
    let (refusing, _) = agent_with_server(server.clone(), reply.clone());
    let refusing = refusing.allowed_tools(Vec::<String>::new());
    assert_eq!(with_timeout(query("go", &refusing)).await.unwrap().denials().len(), 1);
    let (agent, _) = agent_with_server(server, reply);
    let mut session = Session::open(&agent).await.unwrap();
    session.send("go").await.unwrap();
    let mut started = false;
    while !started {
        started = matches!(with_timeout(session.next()).await, Some(Ok(Frame::Assistant(_))));
    }
    with_timeout(began.recv()).await.unwrap();
    with_timeout(session.interrupt()).await.unwrap();
    with_timeout(session.result()).await.unwrap();
    assert!(*dropped.lock().unwrap());
}
