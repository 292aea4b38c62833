//! Dropping a run in any state leaves no task and no process behind.
#![cfg(feature = "in-process")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use futures::StreamExt;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use whimbrel::wire::message::User;
use whimbrel::wire::permission::PermissionResult;
use whimbrel::{Agent, Frame, Prompt, Scripted, Session, query};

fn scripted_agent(replies: Value) -> (Agent, TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let agent = Agent::new().cwd(dir.path()).persist_session(false);
    (agent.script(Scripted::replies(replies).unwrap()), dir)
}

fn bash_call(input: &Value) -> Value {
    json!([{"type": "tool_use", "name": "Bash", "input": input}])
}

/// Polls until there is a value, for at most twenty seconds.
async fn poll_until_some<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let looking = async {
        loop {
            if let Some(found) = look() {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), looking).await.unwrap()
}

/// Waits for the pid that a command writes down; returns its `/proc` path.
async fn wait_for_process(dir: &TempDir) -> String {
    let pid = dir.path().join("pid");
    let text =
        poll_until_some(|| std::fs::read_to_string(&pid).ok().filter(|text| text.ends_with('\n'))).await;
    format!("/proc/{}", text.trim())
}

async fn wait_for_no_tasks() {
    poll_until_some(|| (Handle::current().metrics().num_alive_tasks() == 0).then_some(())).await;
}

async fn wait_for_exit(process: &str) {
    poll_until_some(|| (!Path::new(process).exists()).then_some(())).await;
}

#[tokio::test]
async fn before_the_first_prompt() {
    let (agent, _dir) = scripted_agent(json!([]));
    drop(Session::open(&agent).await.unwrap());
    wait_for_no_tasks().await;
}

#[tokio::test]
async fn between_turns() {
    let (agent, _dir) = scripted_agent(json!(["hello"]));
    let mut session = Session::open(&agent).await.unwrap();
    session.send("hi").await.unwrap();
    session.result().await.unwrap();
    drop(session);
    wait_for_no_tasks().await;
}

#[tokio::test]
async fn while_waiting_for_the_model() {
    let (agent, _dir) =
        scripted_agent(json!([{"content": [{"type": "text", "text": "late"}], "delay_ms": 60_000}]));
    let mut running = query("go", &agent);
    assert!(matches!(running.next().await, Some(Ok(Frame::System(_)))));
    drop(running);
    wait_for_no_tasks().await;
}

#[tokio::test]
async fn while_a_command_runs() {
    let (agent, dir) =
        scripted_agent(json!([bash_call(&json!({"command": "echo $$ > pid; exec sleep 60"}))]));
    let agent = agent.can_use_tool(|_| async { PermissionResult::allow() });
    let mut running = query("go", &agent);
    running.start().unwrap();
    let process = wait_for_process(&dir).await;
    drop(running);
    wait_for_exit(&process).await;
    wait_for_no_tasks().await;
}

#[tokio::test]
async fn while_a_command_runs_in_the_background() {
    let background = json!({"command": "echo $$ > pid; exec sleep 60", "run_in_background": true});
    let (agent, dir) = scripted_agent(json!([bash_call(&background), "started"]));
    let agent = agent.can_use_tool(|_| async { PermissionResult::allow() });
    let mut session = Session::open(&agent).await.unwrap();
    session.send("go").await.unwrap();
    assert_eq!(session.result().await.unwrap().result.as_deref(), Some("started"));
    let process = wait_for_process(&dir).await;
    drop(session);
    wait_for_exit(&process).await;
    wait_for_no_tasks().await;
}

#[tokio::test]
async fn while_a_callback_is_pending() {
    let (agent, dir) = scripted_agent(json!([bash_call(&json!({"command": "touch made"}))]));
    let (enter, entered) = oneshot::channel();
    let enter = Mutex::new(Some(enter));
    let agent = agent.can_use_tool(move |_| {
        enter.lock().unwrap().take().unwrap().send(()).unwrap();
        std::future::pending()
    });
    let mut running = query("go", &agent);
    running.start().unwrap();
    entered.await.unwrap();
    drop(running);
    wait_for_no_tasks().await;
    assert!(!dir.path().join("made").exists());
}

#[tokio::test]
async fn while_the_prompt_stream_is_open() {
    let (agent, _dir) = scripted_agent(json!(["hello"]));
    let prompts = futures::stream::iter([User::prompt("hi")]).chain(futures::stream::pending());
    let mut running = query(Prompt::stream(prompts), &agent);
    while !matches!(running.next().await, Some(Ok(Frame::Result(_)))) {}
    drop(running);
    wait_for_no_tasks().await;
}

#[tokio::test]
async fn while_the_engine_waits_for_a_reader() {
    let (agent, _dir) = scripted_agent(json!(["word ".repeat(10_000)]));
    let agent = agent.partial_messages(true).unread_limit(0);
    let mut running = query("go", &agent);
    assert!(running.next().await.unwrap().is_ok());
    drop(running);
    wait_for_no_tasks().await;
}

#[tokio::test]
async fn while_a_control_request_is_pending() {
    let (agent, _dir) =
        scripted_agent(json!([{"content": [{"type": "text", "text": "late"}], "delay_ms": 60_000}]));
    let (controls, frames) = Session::open(&agent).await.unwrap().split();
    let waiting = tokio::spawn(async move { while controls.set_model(None).await.is_ok() {} });
    drop(frames);
    waiting.await.unwrap();
    wait_for_no_tasks().await;
}

#[tokio::test]
async fn finished_run_leaves_nothing_either() {
    let (agent, _dir) = scripted_agent(json!(["hello"]));
    let mut running = query("hi", &agent);
    running.start().unwrap();
    assert!(running.count().await > 0);
    wait_for_no_tasks().await;
}
