//! Timers wake a session.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use whimbrel_engine::{Engine, SessionExit, SessionRequest, serve};
use whimbrel_models::providers::Providers;
use whimbrel_models::scripted::Scripted;
use whimbrel_transport::link::{self, HostEnd};
use whimbrel_wire::Frame;
use whimbrel_wire::message::User;
use whimbrel_wire::options::Options;

/// A session with a scripted model, in this runtime with paused time.
fn start_session(dir: &TempDir, replies: Value) -> (HostEnd, JoinHandle<SessionExit>, Arc<Scripted>) {
    let script = Arc::new(Scripted::replies(replies).unwrap());
    let providers = Providers::offline();
    providers.add_script("s", Arc::clone(&script));
    let options = Options {
        cwd: Some(dir.path().display().to_string()),
        model: Some("scripted:s".into()),
        persist_session: Some(false),
        ..Options::default()
    };
    let env = [("HOME".to_owned(), dir.path().display().to_string())].into();
    let (link, host_end) = link::pair();
    let session = tokio::spawn(serve(Engine::new(providers), link, SessionRequest::new(options, env)));
    (host_end, session, script)
}

async fn next_result(host_end: &mut HostEnd) -> Option<String> {
    while let Some(frame) = host_end.receiver.recv().await {
        if let Frame::Result(result) = frame {
            return Some(result.result.unwrap_or_default());
        }
    }
    None
}

fn wakeup_script() -> Value {
    let input = json!({"delaySeconds": 600, "prompt": "Look again."});
    json!([[{"type": "tool_use", "name": "ScheduleWakeup", "input": input}], "I wait.", "I look."])
}

#[tokio::test(start_paused = true)]
async fn a_timer_starts_a_turn_in_an_open_session() {
    let dir = TempDir::new().unwrap();
    let (mut host_end, session, script) = start_session(&dir, wakeup_script());
    host_end.sender.send(Ok(User::prompt("Watch.").into())).await.unwrap();
    assert_eq!(next_result(&mut host_end).await.as_deref(), Some("I wait."));
    assert_eq!(next_result(&mut host_end).await.as_deref(), Some("I look."));
    assert!(script.requests()[2].to_string().contains("Look again."));
    drop(host_end.sender);
    session.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_run_without_input_does_not_wait_for_timers() {
    let dir = TempDir::new().unwrap();
    let (mut host_end, session, _script) = start_session(&dir, wakeup_script());
    let started_at = tokio::time::Instant::now();
    host_end.sender.send(Ok(User::prompt("Watch.").into())).await.unwrap();
    host_end.finished.cancel();
    assert_eq!(next_result(&mut host_end).await.as_deref(), Some("I wait."));
    assert_eq!(next_result(&mut host_end).await, None);
    session.await.unwrap();
    assert!(started_at.elapsed() < Duration::from_secs(600));
}
