//! Control of an agent whose frames are not read, with the engine in this process.
#![cfg(feature = "in-process")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Mutex;
use std::time::Duration;

use futures::{FutureExt, StreamExt};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::oneshot;
use whimbrel::wire::message::Outcome;
use whimbrel::wire::permission::PermissionResult;
use whimbrel::{Agent, Environment, Error, Frame, Scripted, Session, query};

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
    let (controls, mut frames) = Session::open(&agent).unwrap().split();
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
    let (controls, mut frames) = Session::open(&agent).unwrap().split();
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
    let (controls, mut frames) = Session::open(&agent).unwrap().split();
    controls.send("go").await.unwrap();
    with_timeout(entered).await.unwrap();
    with_timeout(controls.interrupt()).await.unwrap();
    assert!(with_timeout(dropped).await.is_err(), "the callback's future is dropped");
    assert_eq!(with_timeout(frames.result()).await.unwrap().subtype, Outcome::ErrorDuringExecution);
    controls.send("and now?").await.unwrap();
    assert_eq!(with_timeout(frames.result()).await.unwrap().result.as_deref(), Some("next"));
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
    let (controls, frames) = Session::open(&agent).unwrap().split();
    controls.send("hi").await.unwrap();
    drop(controls);
    let frames: Vec<_> = with_timeout(frames.collect()).await;
    assert!(matches!(frames.last(), Some(Ok(Frame::Result(_)))), "{frames:?}");
}

#[tokio::test]
async fn info_is_available_before_and_during_a_conversation() {
    let (agent, _dir) = scripted_agent(json!(["hello"]));
    let mut session = Session::open(&agent).unwrap();
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
        let session = Session::open(&agent).unwrap();
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
    assert!(matches!(Session::open(&agent), Err(Error::NoRuntime)));
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
