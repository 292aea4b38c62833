//! Control of an agent whose frames are not read, with the engine in this process.
#![cfg(feature = "in-process")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use futures::{FutureExt, StreamExt};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::oneshot;
use whimbrel::wire::control::{ControlRequest, Response};
use whimbrel::wire::message::{Outcome, Priority, User};
use whimbrel::wire::permission::PermissionResult;
use whimbrel::{Agent, Environment, Error, Frame, OpenError, Scripted, Session, query};

/// A scripted agent in an empty directory.
fn scripted_agent(replies: Value) -> (Agent, TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let agent = Agent::new().cwd(dir.path()).persist_session(false);
    (agent.script(Scripted::replies(replies).unwrap()), dir)
}

/// A reply of thousands of deltas, followed by a call that needs permission.
fn long_reply_with_a_call() -> Value {
    json!([
        {"type": "text", "text": "word ".repeat(10_000)},
        {"type": "tool_use", "name": "Bash", "input": {"command": "touch made"}},
    ])
}

/// Lets a command go on that reads the FIFO `gate`; waits until the command has created it.
fn open_gate(gate: &Path) {
    while !gate.exists() {
        std::thread::yield_now();
    }
    std::fs::write(gate, "after\n").unwrap();
}

async fn with_timeout<T>(wait: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), wait).await.unwrap()
}

#[tokio::test]
async fn permission_request_arrives_while_frames_are_unread() {
    let (agent, dir) = scripted_agent(json!([long_reply_with_a_call(), "done"]));
    let (ask, asked) = oneshot::channel();
    let ask = Mutex::new(Some(ask));
    let agent = agent.partial_messages(true).can_use_tool(move |_| {
        ask.lock().unwrap().take().unwrap().send(()).unwrap();
        async { PermissionResult::allow() }
    });
    let (controls, mut frames) = Session::open(&agent).await.unwrap().split();
    controls.send("go").await.unwrap();
    with_timeout(asked).await.unwrap();
    let result = with_timeout(frames.result()).await.unwrap();
    assert_eq!(result.result.as_deref(), Some("done"));
    assert!(dir.path().join("made").exists());
}

#[tokio::test]
async fn interrupt_passes_while_the_engine_waits_for_a_reader() {
    let (agent, _dir) = scripted_agent(json!([long_reply_with_a_call()]));
    let agent = agent.partial_messages(true).unread_limit(10_000);
    let (controls, mut frames) = Session::open(&agent).await.unwrap().split();
    controls.send("go").await.unwrap();
    assert!(with_timeout(frames.next()).await.unwrap().is_ok());
    with_timeout(controls.interrupt()).await.unwrap();
    assert_eq!(with_timeout(frames.result()).await.unwrap().subtype, Outcome::ErrorDuringExecution);
}

#[tokio::test]
async fn interrupt_cancels_the_request_of_a_running_callback() {
    let (agent, _dir) = scripted_agent(json!([long_reply_with_a_call(), "next"]));
    let (enter, entered) = oneshot::channel();
    let (held, dropped) = oneshot::channel::<()>();
    let state = Mutex::new(Some((enter, held)));
    let agent = agent.can_use_tool(move |_| {
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
    assert!(with_timeout(dropped).await.is_err(), "the callback's future is dropped");
    assert_eq!(with_timeout(frames.result()).await.unwrap().subtype, Outcome::ErrorDuringExecution);
    controls.send("and now?").await.unwrap();
    assert_eq!(with_timeout(frames.result()).await.unwrap().result.as_deref(), Some("next"));
}

#[tokio::test]
async fn live_output_arrives_while_a_command_runs() {
    let command = json!({"command": "mkfifo gate; echo before; cat gate"});
    let (agent, dir) =
        scripted_agent(json!([[{"type": "tool_use", "name": "Bash", "input": command}], "done"]));
    let agent = agent.can_use_tool(|_| async { PermissionResult::allow() });
    let (controls, mut frames) = Session::open(&agent).await.unwrap().split();
    with_timeout(controls.subscribe_tool_output(true)).await.unwrap();
    controls.send("go").await.unwrap();
    let mut texts = Vec::new();
    while texts.len() < 2 {
        let Frame::ToolOutput(chunk) = with_timeout(frames.next()).await.unwrap().unwrap() else { continue };
        if texts.is_empty() {
            open_gate(&dir.path().join("gate"));
        }
        texts.push(chunk.text);
    }
    assert_eq!(texts, ["before\n", "after\n"]);
    assert_eq!(with_timeout(frames.result()).await.unwrap().result.as_deref(), Some("done"));
}

#[tokio::test]
async fn subscriber_hears_of_a_call_that_starts_but_not_of_a_denied_one() {
    let call =
        |id: &str| json!({"type": "tool_use", "id": id, "name": "Bash", "input": {"command": "touch x"}});
    let (agent, _dir) = scripted_agent(json!([[call("allowed")], [call("denied")], "done"]));
    let agent = agent.can_use_tool(|request| async move {
        match request.tool_use_id.as_str() {
            "allowed" => PermissionResult::allow(),
            _ => PermissionResult::deny("no"),
        }
    });
    let (controls, mut frames) = Session::open(&agent).await.unwrap().split();
    with_timeout(controls.subscribe_tool_output(true)).await.unwrap();
    controls.send("go").await.unwrap();
    let mut started = Vec::new();
    loop {
        match with_timeout(frames.next()).await.unwrap().unwrap() {
            Frame::ToolProgress(progress) => {
                started.push((progress.tool_use_id, progress.elapsed_time_seconds));
            }
            Frame::Result(_) => break,
            _ => {}
        }
    }
    assert_eq!(started, [("allowed".to_owned(), 0.0)]);
}

#[tokio::test]
async fn next_prompt_goes_into_the_running_turn() {
    let command = json!({"command": "mkfifo gate; cat gate"});
    let replies = json!([
        [{"type": "tool_use", "name": "Bash", "input": command}],
        {"expect": "Also this.", "content": [{"type": "text", "text": "both"}]},
    ]);
    let (agent, dir) = scripted_agent(replies);
    let agent = agent.can_use_tool(|_| async { PermissionResult::allow() });
    let (controls, mut frames) = Session::open(&agent).await.unwrap().split();
    controls.send("go").await.unwrap();
    let is_call = |frame: &Frame| matches!(frame, Frame::Assistant(_));
    while !is_call(&with_timeout(frames.next()).await.unwrap().unwrap()) {}
    controls.send(User::prompt("Also this.").with_priority(Priority::Next)).await.unwrap();
    with_timeout(controls.mcp_status()).await.unwrap();
    let gate = dir.path().join("gate");
    with_timeout(tokio::task::spawn_blocking(move || open_gate(&gate))).await.unwrap();
    assert_eq!(with_timeout(frames.result()).await.unwrap().result.as_deref(), Some("both"));
    controls.finish_input();
    let rest: Vec<_> = with_timeout(frames.collect()).await;
    assert!(!rest.iter().any(|frame| matches!(frame, Ok(Frame::Result(_)))), "{rest:?}");
}

#[tokio::test]
async fn query_can_be_controlled_from_another_task() {
    let (agent, _dir) =
        scripted_agent(json!([{"content": [{"type": "text", "text": "late"}], "delay_ms": 60_000}]));
    let mut running = query("go", &agent);
    let controls = running.controls().unwrap().clone();
    assert!(matches!(with_timeout(running.next()).await, Some(Ok(Frame::System(_)))));
    with_timeout(tokio::spawn(async move { controls.interrupt().await })).await.unwrap().unwrap();
    let frames: Vec<_> = with_timeout(running.collect()).await;
    assert!(matches!(frames.last(), Some(Ok(Frame::Result(_)))), "{frames:?}");
}

#[tokio::test]
async fn run_ends_when_all_controls_are_dropped() {
    let (agent, _dir) = scripted_agent(json!(["hello"]));
    let (controls, frames) = Session::open(&agent).await.unwrap().split();
    controls.send("hi").await.unwrap();
    drop(controls);
    let frames: Vec<_> = with_timeout(frames.collect()).await;
    assert!(matches!(frames.last(), Some(Ok(Frame::Result(_)))), "{frames:?}");
}

#[tokio::test]
async fn info_is_available_before_and_during_a_conversation() {
    let (agent, _dir) = scripted_agent(json!(["hello"]));
    let mut session = Session::open(&agent).await.unwrap();
    let models = with_timeout(session.info()).await.unwrap().models.clone();
    assert!(!models.is_empty());
    session.send("hi").await.unwrap();
    with_timeout(session.result()).await.unwrap();
    assert_eq!(with_timeout(session.info()).await.unwrap().models, models);
}

#[tokio::test]
async fn engine_sees_only_the_given_environment() {
    let run = json!([{"type": "tool_use", "name": "Bash", "input": {"command": "env > seen"}}]);
    let (agent, dir) = scripted_agent(json!([run, "done"]));
    let environment = Environment::from_iter([("PATH", "/usr/bin:/bin"), ("GIVEN", "1")]);
    assert_eq!(format!("{environment:?}"), r#"{"GIVEN", "PATH"}"#);
    let agent = agent.environment(environment).env("ADDED", "2");
    let agent = agent.can_use_tool(|_| async { PermissionResult::allow() });
    let frames: Vec<_> = with_timeout(query("go", &agent).collect()).await;
    assert!(frames.iter().all(Result::is_ok), "{frames:?}");
    let seen = std::fs::read_to_string(dir.path().join("seen")).unwrap();
    let has = |name: &str| seen.lines().any(|line| line.starts_with(&format!("{name}=")));
    assert!(has("GIVEN") && has("ADDED") && !has("CARGO_MANIFEST_DIR"), "{seen}");
}

#[tokio::test]
async fn api_key_comes_from_the_given_environment() {
    let source = async |agent: Agent| {
        let session = Session::open(&agent).await.unwrap();
        session.info().await.unwrap().account.api_key_source.clone().unwrap()
    };
    let bare = Agent::new().persist_session(false).environment(Environment::default());
    assert_eq!(source(bare.clone()).await, "none");
    assert_eq!(source(bare.clone().env("ANTHROPIC_API_KEY", "k")).await, "ANTHROPIC_API_KEY");
    let given = Environment::from_iter([("ANTHROPIC_AUTH_TOKEN", "t")]);
    assert_eq!(source(bare.clone().environment(given)).await, "ANTHROPIC_AUTH_TOKEN");
    assert_eq!(source(bare).await, "none");
}

#[test]
fn missing_runtime_is_an_error_and_no_panic() {
    let (agent, _dir) = scripted_agent(json!(["hello"]));
    let opened = Session::open(&agent).now_or_never();
    let Some(Err(OpenError::Engine(error))) = opened else { panic!("{opened:?}") };
    assert!(matches!(*error, Error::NoRuntime));
    let first = query("hi", &agent).next().now_or_never();
    assert!(matches!(first, Some(Some(Err(Error::NoRuntime)))));
}

#[test]
fn types_shared_between_tasks_are_send_and_sync() {
    fn assert_send_sync<T: Send + Sync + 'static>() {}
    fn assert_send<T: Send + 'static>() {}
    assert_send_sync::<Agent>();
    assert_send_sync::<Environment>();
    assert_send_sync::<Session>();
    assert_send_sync::<whimbrel::Query>();
    assert_send_sync::<whimbrel::Controls>();
    assert_send_sync::<whimbrel::Frames>();
    assert_send_sync::<whimbrel::Engine>();
    assert_send_sync::<whimbrel::Transport>();
    assert_send_sync::<Error>();
    assert_send::<whimbrel::Prompt>();
}

#[tokio::test]
async fn queued_prompt_is_taken_back() {
    let call = json!([{"type": "tool_use", "name": "Bash", "input": {"command": "touch made"}}]);
    let (agent, _dir) = scripted_agent(json!([call, "one", "two"]));
    let (enter, entered) = oneshot::channel();
    let (answer, answered) = oneshot::channel();
    let state = Mutex::new(Some((enter, answered)));
    let agent = agent.can_use_tool(move |_| {
        let (enter, answered) = state.lock().unwrap().take().unwrap();
        async move {
            enter.send(()).unwrap();
            answered.await.unwrap()
        }
    });
    let (controls, mut frames) = Session::open(&agent).await.unwrap().split();
    controls.send("go").await.unwrap();
    with_timeout(entered).await.unwrap();
    let prompt = |uuid: &str, text: &str| User { uuid: Some(uuid.into()), ..User::prompt(text) };
    controls.send(prompt("u1", "first")).await.unwrap();
    controls.send(prompt("u2", "second")).await.unwrap();
    let taken = with_timeout(controls.cancel_message("u2")).await.unwrap();
    assert_eq!((taken.cancelled, taken.still_queued), (true, vec!["u1".to_owned()]));
    assert_eq!(taken.prompt.unwrap().text, "second");
    answer.send(PermissionResult::allow()).unwrap();
    for expected in ["one", "two"] {
        assert_eq!(with_timeout(frames.result()).await.unwrap().result.as_deref(), Some(expected));
    }
    assert!(!with_timeout(controls.cancel_message("u1")).await.unwrap().cancelled, "its turn has ended");
}

#[tokio::test]
async fn requests_of_any_kind_give_the_response_of_the_wire() {
    let (agent, _dir) = scripted_agent(json!([]));
    let session = Session::open(&agent).await.unwrap();
    let ask = |request: Value| {
        serde_json::from_value::<ControlRequest>(json!({"request_id": "x", "request": request}))
    };
    let call = async |request: Value| {
        with_timeout(session.controls().call_any(ask(request).unwrap().request)).await.unwrap()
    };
    let Response::Success { response: Some(reply), .. } = call(json!({"subtype": "list_models"})).await
    else {
        panic!()
    };
    assert!(reply.as_str().contains("models"));
    let Response::Error { error_code, .. } = call(json!({"subtype": "dance"})).await else { panic!() };
    assert_eq!(error_code.as_deref(), Some("unsupported_request"));
}
