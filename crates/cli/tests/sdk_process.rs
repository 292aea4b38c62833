//! The Rust SDK driving the built program: it behaves as in process.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::Notify;
use tokio::sync::mpsc::UnboundedSender;
use whimbrel::wire::permission::PermissionResult;
use whimbrel::{
    Agent, CancelReason, Frame, Session, ToolContext, ToolServer, Transport, TurnError, query, tool,
    tool_with_state,
};

/// An agent in a directory of its own, run by the program with a script.
fn scripted_agent(replies: &Value) -> (Agent, TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let script = dir.path().join("script.json");
    std::fs::write(&script, replies.to_string()).unwrap();
    let agent = Agent::new()
        .transport(Transport::process(env!("CARGO_BIN_EXE_whimbrel")))
        .model(format!("scripted:{}", script.display()))
        .cwd(dir.path())
        .env("HOME", dir.path().display().to_string());
    (agent, dir)
}

/// Awaits a future with a timeout.
async fn with_timeout<T>(wait: impl IntoFuture<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(120), wait).await.unwrap()
}

#[tokio::test]
async fn query_ends_after_its_result() {
    let (agent, _dir) = scripted_agent(&json!(["hello"]));
    let frames: Vec<_> = with_timeout(query("hi", &agent).collect()).await;
    let kinds: Vec<_> = frames.iter().map(|frame| frame.as_ref().unwrap().kind()).collect();
    assert_eq!(kinds, ["system", "assistant", "result"], "what only the SDK reads is hidden");
    let result = frames.into_iter().find_map(|frame| match frame.unwrap() {
        Frame::Result(result) => result.result,
        _ => None,
    });
    assert_eq!(result.as_deref(), Some("hello"));
}

#[tokio::test]
async fn permission_callback_is_called_for_a_string_prompt() {
    let run = json!([{"type": "tool_use", "name": "Bash", "input": {"command": "touch made"}}]);
    let (agent, dir) = scripted_agent(&json!([run, "done"]));
    let agent = agent.can_use_tool(|_| async { PermissionResult::allow() });
    let frames: Vec<_> = with_timeout(query("go", &agent).collect()).await;
    assert!(frames.iter().all(Result::is_ok));
    assert!(dir.path().join("made").exists());
}

#[tokio::test]
async fn input_can_be_finished_after_the_result() {
    let (agent, _dir) = scripted_agent(&json!(["hello"]));
    let agent = agent.can_use_tool(|_| async { PermissionResult::allow() });
    let mut session = Session::open(&agent).await.unwrap();
    session.send("hi").await.unwrap();
    assert_eq!(with_timeout(session.result()).await.unwrap().result.as_deref(), Some("hello"));
    session.finish_input();
    while let Some(frame) = with_timeout(session.next()).await {
        frame.unwrap();
    }
}

#[tokio::test]
async fn failing_model_is_a_result_and_no_sdk_error() {
    let fault = json!({"content": [], "fault": {"kind": "invalid_request", "status": 400, "message": "no"}});
    let (agent, _dir) = scripted_agent(&json!([fault]));
    let frames: Vec<_> = with_timeout(query("hi", &agent).collect()).await;
    assert!(frames.iter().all(Result::is_ok), "{frames:?}");
    assert!(frames.iter().any(|frame| matches!(frame, Ok(Frame::Result(result)) if result.is_error)));
}

#[tokio::test]
async fn dropping_a_session_ends_program_and_commands() {
    let run =
        json!([{"type": "tool_use", "name": "Bash", "input": {"command": "echo $$ > pid; exec sleep 60"}}]);
    let (agent, dir) = scripted_agent(&json!([run]));
    let agent = agent.can_use_tool(|_| async { PermissionResult::allow() });
    let session = Session::open(&agent).await.unwrap();
    session.send("go").await.unwrap();
    let pid = poll_until_some(|| {
        std::fs::read_to_string(dir.path().join("pid")).ok().filter(|text| text.ends_with('\n'))
    })
    .await;
    drop(session);
    poll_until_some(|| (!std::path::Path::new(&format!("/proc/{}", pid.trim())).exists()).then_some(()))
        .await;
}

#[tokio::test]
async fn dropping_a_session_ends_a_background_command() {
    let input = json!({"command": "echo $$ > pid; exec sleep 60", "run_in_background": true});
    let run = json!([{"type": "tool_use", "name": "Bash", "input": input}]);
    let (agent, dir) = scripted_agent(&json!([run, "started"]));
    let agent = agent.can_use_tool(|_| async { PermissionResult::allow() });
    let mut session = Session::open(&agent).await.unwrap();
    session.send("go").await.unwrap();
    assert_eq!(with_timeout(session.result()).await.unwrap().result.as_deref(), Some("started"));
    let pid = poll_until_some(|| {
        std::fs::read_to_string(dir.path().join("pid")).ok().filter(|text| text.ends_with('\n'))
    })
    .await;
    drop(session);
    poll_until_some(|| (!std::path::Path::new(&format!("/proc/{}", pid.trim())).exists()).then_some(()))
        .await;
}

#[tokio::test]
async fn requests_and_interrupts_pass_while_frames_are_unread() {
    let call = json!([
        {"type": "text", "text": "word ".repeat(20_000)},
        {"type": "tool_use", "name": "Bash", "input": {"command": "touch made"}},
    ]);
    let (agent, dir) = scripted_agent(&json!([call, "next"]));
    let (enter, entered) = tokio::sync::oneshot::channel();
    let (held, gone) = tokio::sync::oneshot::channel::<()>();
    let state = std::sync::Mutex::new(Some((enter, held)));
    let agent = agent.partial_messages(true).can_use_tool(move |_| {
        let (enter, held) = state.lock().unwrap().take().unwrap();
        async move {
            let _held = held;
            enter.send(()).unwrap();
            std::future::pending().await
        }
    });
    let (controls, mut frames) = Session::open(&agent).await.unwrap().split();
    controls.send("go").await.unwrap();
    with_timeout(entered).await.unwrap();
    with_timeout(controls.interrupt()).await.unwrap();
    assert!(with_timeout(gone).await.is_err(), "the callback's future is dropped");
    assert!(with_timeout(frames.result()).await.unwrap().is_error);
    assert!(!dir.path().join("made").exists());
    controls.send("and now?").await.unwrap();
    assert_eq!(with_timeout(frames.result()).await.unwrap().result.as_deref(), Some("next"));
}

#[tokio::test]
async fn interrupt_passes_while_the_program_waits_for_a_reader() {
    let (agent, _dir) = scripted_agent(&json!(["word ".repeat(100_000)]));
    let (controls, mut frames) =
        Session::open(&agent.partial_messages(true).unread_limit(10_000)).await.unwrap().split();
    controls.send("go").await.unwrap();
    assert!(with_timeout(frames.next()).await.unwrap().is_ok());
    with_timeout(controls.interrupt()).await.unwrap();
    assert!(with_timeout(frames.result()).await.unwrap().is_error);
}

#[tokio::test]
async fn query_can_be_interrupted_after_its_input_finished() {
    let late = json!({"content": [{"type": "text", "text": "late"}], "delay_ms": 60_000});
    let (agent, _dir) = scripted_agent(&json!([late]));
    let mut running = query("go", &agent);
    let controls = running.controls().unwrap().clone();
    assert!(matches!(with_timeout(running.next()).await, Some(Ok(Frame::System(_)))));
    with_timeout(controls.interrupt()).await.unwrap();
    assert!(matches!(with_timeout(running.finish()).await, Err(TurnError::Interrupted(_))));
    assert!(with_timeout(running.next()).await.is_none());
}

#[tokio::test]
async fn message_without_query_does_not_keep_the_run_open() {
    let (agent, _dir) = scripted_agent(&json!(["never said"]));
    let mut note = whimbrel::wire::message::User::prompt("just so you know");
    note.should_query = Some(false);
    let frames: Vec<_> = with_timeout(query(note, &agent).collect()).await;
    assert!(frames.iter().all(Result::is_ok), "{frames:?}");
}

#[tokio::test]
async fn rejected_options_are_reported_once() {
    let (agent, _dir) = scripted_agent(&json!(["never said"]));
    let agent = agent.session_id("no id at all");
    let frames: Vec<_> = with_timeout(query("hi", &agent).collect()).await;
    assert_eq!(frames.len(), 1, "{frames:?}");
}

/// Polls until there is a value.
async fn poll_until_some<T>(mut look: impl FnMut() -> Option<T>) -> T {
    with_timeout(async {
        loop {
            if let Some(found) = look() {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await
}

#[derive(serde::Deserialize, whimbrel::schemars::JsonSchema)]
#[schemars(crate = "whimbrel::schemars")]
struct Word {
    word: String,
}

#[tokio::test]
async fn tool_of_this_process_learns_its_context() {
    let (seen, mut calls) = tokio::sync::mpsc::unbounded_channel();
    let progress_seen = Arc::new(Notify::new());
    let state = (seen, Arc::clone(&progress_seen));
    type State = (UnboundedSender<Value>, Arc<Notify>);
    let report =
        tool_with_state(state, "report", "Reports", |state: State, context: ToolContext| async move {
            let (seen, progress_seen) = state;
            context.progress_of(1.0, 2.0, "half");
            progress_seen.notified().await;
            let (session, cwd, user) = (context.session_id(), context.cwd(), context.extension::<u32>());
            seen.send(json!([session, cwd, context.tool_use_id(), context.agent_id().is_some(), user]))
                .unwrap();
        });
    let errand = json!([{"type": "tool_use", "name": "Agent", "input": {"description": "d", "prompt": "p"}}]);
    let call = |id: &str| json!([{"type": "tool_use", "id": id, "name": "mcp__own__report", "input": {}}]);
    let (agent, dir) = scripted_agent(&json!([call("toolu_1"), errand, call("toolu_2"), "reported", "done"]));
    let server = ToolServer::new("own").tool(report);
    let agent = agent.tool_server(server).allowed_tools(["mcp__own", "Agent"]).extension(7_u32);
    let mut running = query("go", &agent);
    let mut session_id = String::new();
    while let Some(frame) = with_timeout(running.next()).await {
        match frame.unwrap() {
            Frame::ToolProgress(progress) => {
                let details = progress.progress.unwrap();
                assert_eq!(
                    (details.done, details.total, details.message.as_deref()),
                    (1.0, Some(2.0), Some("half"))
                );
                progress_seen.notify_one();
            }
            Frame::Result(result) => session_id = result.session_id,
            _ => {}
        }
    }
    let cwd = dir.path().canonicalize().unwrap();
    let expected = |id: &str, is_subagent: bool| json!([session_id, cwd, id, is_subagent, 7]);
    let received = [calls.recv().await.unwrap(), calls.recv().await.unwrap()];
    assert_eq!(received, [expected("toolu_1", false), expected("toolu_2", true)]);
}

#[tokio::test]
async fn reason_of_a_withdrawn_request_passes_the_wire() {
    let run = json!([{"type": "tool_use", "name": "Bash", "input": {"command": "touch made"}}]);
    let (agent, _dir) = scripted_agent(&json!([run, "done"]));
    let (sender, mut requests) = tokio::sync::mpsc::unbounded_channel();
    let agent = agent.can_use_tool(move |request| {
        sender.send(request).unwrap();
        std::future::pending()
    });
    let session = Session::open(&agent).await.unwrap();
    session.send("go").await.unwrap();
    let request = with_timeout(requests.recv()).await.unwrap();
    let edited = json!({"command": 1});
    let error = with_timeout(request.check_input(edited.as_object().unwrap())).await.unwrap_err();
    assert_eq!(error.fields()[0].field, "command", "{error}");
    with_timeout(session.interrupt()).await.unwrap();
    assert_eq!(with_timeout(request.withdrawal().wait()).await, Some(CancelReason::Interrupted));
}

#[tokio::test]
async fn program_calls_a_tool_of_this_process() {
    let call = json!([{"type": "tool_use", "name": "mcp__own__shout", "input": {"word": "hey"}}]);
    let (agent, _dir) = scripted_agent(&json!([call, {"expect": "HEY!", "content": ["done"]}]));
    let shout =
        tool("shout", "Shouts", |input: Word| async move { format!("{}!", input.word.to_uppercase()) });
    let agent = agent.tool_server(ToolServer::new("own").tool(shout)).allowed_tools(["mcp__own"]);
    let result = with_timeout(query("go", &agent)).await.unwrap();
    assert_eq!(result.text(), "done");
}
