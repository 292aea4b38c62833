//! What tool functions, hooks and permission callbacks learn besides their input, with the engine in this process.
#![cfg(feature = "in-process")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use whimbrel::wire::hook::HookEvent;
use whimbrel::{
    Agent, Frame, Hook, PermissionResult, Scripted, Session, Tool, ToolContext, ToolServer, query, tool,
    tool_with_state,
};

#[derive(Debug, Deserialize, JsonSchema)]
struct Note {
    text: String,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct UserId(u32);

/// An agent with one tool that is called once, and the script.
fn agent_with_tool(tool: Tool, input: &Value) -> (Agent, Arc<Scripted>) {
    let call = json!([{"type": "tool_use", "id": "toolu_7", "name": "mcp__own__it", "input": input}]);
    let script = Arc::new(Scripted::replies(json!([call, "done"])).unwrap());
    let agent = Agent::new()
        .cwd(std::env::temp_dir())
        .persist_session(false)
        .tool_server(ToolServer::new("own").tool(tool))
        .allowed_tools(["mcp__own"])
        .script(Arc::clone(&script));
    (agent, script)
}

async fn with_timeout<T>(wait: impl IntoFuture<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(30), wait).await.unwrap()
}

/// The result of the call, as the model received it.
fn tool_result(script: &Scripted) -> Value {
    script.requests().last().unwrap()["messages"].as_array().unwrap().last().unwrap()["content"][0].clone()
}

#[tokio::test]
async fn functions_of_every_shape_can_be_tools() {
    async fn named(note: Note) -> String {
        note.text
    }
    let state = Arc::new("state".to_owned());
    type State = Arc<String>;
    let none = json!({});
    let note = json!({"text": "input"});
    let rows: Vec<(&str, Tool, &Value, &str)> = vec![
        ("nothing", tool("it", "d", || async { "ran" }), &none, "ran"),
        ("unit", tool("it", "d", |(): ()| async { "ran" }), &none, "ran"),
        ("input", tool("it", "d", |note: Note| async move { note.text }), &note, "input"),
        ("function", tool("it", "d", named), &note, "input"),
        (
            "context",
            tool("it", "d", |context: ToolContext| async move {
                context.tool_use_id().map(str::to_owned).ok_or("no id")
            }),
            &none,
            "toolu_7",
        ),
        (
            "input and context",
            tool("it", "d", |note: Note, context: ToolContext| async move {
                format!("{} {}", note.text, context.tool_use_id().unwrap_or_default())
            }),
            &note,
            "input toolu_7",
        ),
        (
            "unit and context",
            tool("it", "d", |(): (), context: ToolContext| async move {
                context.tool_use_id().map(str::to_owned).ok_or("no id")
            }),
            &none,
            "toolu_7",
        ),
        (
            "state",
            tool_with_state(state.clone(), "it", "d", |state: State| async move { state.to_string() }),
            &none,
            "state",
        ),
        (
            "state and input",
            tool_with_state(state.clone(), "it", "d", |state: State, note: Note| async move {
                format!("{state} {}", note.text)
            }),
            &note,
            "state input",
        ),
        (
            "everything",
            tool_with_state(state, "it", "d", |state: State, note: Note, context: ToolContext| async move {
                format!("{state} {} {}", note.text, context.tool_use_id().unwrap_or_default())
            }),
            &note,
            "state input toolu_7",
        ),
    ];
    for (name, tool, input, expected) in rows {
        let (agent, script) = agent_with_tool(tool, input);
        with_timeout(query("go", &agent)).await.unwrap();
        assert_eq!(tool_result(&script)["content"][0]["text"], expected, "{name}");
    }
}

#[tokio::test]
async fn call_knows_session_agent_directory_and_extension() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let record = |seen: Arc<Mutex<Vec<Value>>>, context: ToolContext| async move {
        seen.lock().unwrap().push(json!({
            "session": context.session_id(),
            "agent": context.agent_id().is_some(),
            "cwd": context.cwd(),
            "user": context.extension::<UserId>().map(|user| user.0),
            "other": context.extension::<String>(),
        }));
    };
    let tool = tool_with_state(Arc::clone(&seen), "it", "Records", record);
    let dir = tempfile::tempdir().unwrap();
    let cwd = dir.path().canonicalize().unwrap();
    let errand = json!([{"type": "tool_use", "name": "Agent", "input": {"description": "d", "prompt": "p"}}]);
    let call = json!([{"type": "tool_use", "name": "mcp__own__it", "input": {}}]);
    let script = Scripted::replies(json!([call, errand, call, "reported", "done"])).unwrap();
    let server = ToolServer::new("own").tool(tool);
    let agent = Agent::new()
        .cwd(&cwd)
        .persist_session(false)
        .tool_server(server.clone())
        .allowed_tools(["mcp__own"])
        .extension(UserId(1))
        .extension(UserId(7))
        .script(script);
    let result = with_timeout(query("go", &agent)).await.unwrap();
    let row = |agent: bool, user: Value| json!({"session": result.session_id(), "agent": agent, "cwd": cwd, "user": user, "other": null});
    assert_eq!(*seen.lock().unwrap(), [row(false, json!(7)), row(true, json!(7))]);
}

#[tokio::test]
async fn hooks_and_permission_callback_read_extensions() {
    let (users, mut seen) = mpsc::unbounded_channel();
    let hook_users = users.clone();
    let hook = Hook::with_context(HookEvent::PreToolUse, move |_, context| {
        hook_users.send(("hook", context.extension::<UserId>().copied())).unwrap();
        async { Hook::no_opinion() }
    });
    let (agent, _) = agent_with_tool(tool("it", "d", || async {}), &json!({}));
    let agent = agent.allowed_tools([""; 0]).extension(UserId(7)).hook(hook).can_use_tool(move |request| {
        users.send(("permission", request.extension::<UserId>().copied())).unwrap();
        async { PermissionResult::allow() }
    });
    with_timeout(query("go", &agent)).await.unwrap();
    drop(agent);
    let mut all = Vec::new();
    while let Ok(row) = seen.try_recv() {
        all.push(row);
    }
    assert_eq!(all, [("hook", Some(UserId(7))), ("permission", Some(UserId(7)))]);
}

#[tokio::test]
async fn progress_reaches_the_host() {
    let work = tool("it", "Works", |context: ToolContext| async move {
        context.progress_of(1.0, 3.0, "one of three");
    });
    let (agent, _) = agent_with_tool(work, &json!({}));
    let mut running = query("go", &agent);
    let mut found = None;
    while let Some(frame) = with_timeout(running.next()).await {
        if let Frame::ToolProgress(progress) = frame.unwrap() {
            found = Some(*progress);
        }
    }
    let progress = found.unwrap();
    assert_eq!((progress.tool_name.as_str(), progress.tool_use_id.as_str()), ("mcp__own__it", "toolu_7"));
    let details = progress.progress.unwrap();
    assert_eq!(
        (details.done, details.total, details.message.as_deref()),
        (1.0, Some(3.0), Some("one of three"))
    );
}

#[tokio::test]
async fn work_started_elsewhere_is_told_of_an_interrupt() {
    let (started, mut calls) = mpsc::unbounded_channel();
    let wait = tool_with_state(
        started,
        "it",
        "Waits",
        |started: mpsc::UnboundedSender<_>, context: ToolContext| async move {
            started.send(context.cancellation().clone()).unwrap();
            std::future::pending::<()>().await;
        },
    );
    let (agent, _) = agent_with_tool(wait, &json!({}));
    let mut session = Session::open(&agent).await.unwrap();
    session.send("go").await.unwrap();
    let token = with_timeout(calls.recv()).await.unwrap();
    assert!(!token.is_cancelled());
    with_timeout(session.interrupt()).await.unwrap();
    with_timeout(token.cancelled()).await;
    with_timeout(session.result()).await.unwrap();
}

#[tokio::test]
async fn token_of_a_finished_call_does_not_fire() {
    let (started, mut calls) = mpsc::unbounded_channel();
    let quick = tool_with_state(
        started,
        "it",
        "Ends",
        |started: mpsc::UnboundedSender<_>, context: ToolContext| async move {
            started.send(context.cancellation().clone()).unwrap();
        },
    );
    let (agent, _) = agent_with_tool(quick, &json!({}));
    let mut session = Session::open(&agent).await.unwrap();
    session.send("go").await.unwrap();
    with_timeout(session.result()).await.unwrap();
    assert!(!calls.try_recv().unwrap().is_cancelled());
}
