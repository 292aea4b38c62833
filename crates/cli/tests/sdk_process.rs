//! The Rust SDK driving the built program: it behaves as in process.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use futures::StreamExt;
use serde_json::{Value, json};
use tempfile::TempDir;
use whimbrel::wire::permission::PermissionResult;
use whimbrel::{Agent, Frame, Session, ToolServer, Transport, query, tool};

/// An agent in a directory of its own, run by the program with a script.
fn scripted_agent(replies: &Value) -> (Agent, TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let script = dir.path().join("script.json");
    std::fs::write(&script, replies.to_string()).unwrap();
    let agent = Agent::new()
        .transport(Transport::Process(env!("CARGO_BIN_EXE_whimbrel").into()))
        .model(format!("scripted:{}", script.display()))
        .cwd(dir.path())
        .env("HOME", dir.path().display().to_string());
    (agent, dir)
}

/// Awaits a future with a timeout.
async fn with_timeout<T>(wait: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), wait).await.unwrap()
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
    let mut session = Session::open(&agent).unwrap();
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
    let session = Session::open(&agent).unwrap();
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
    let mut session = Session::open(&agent).unwrap();
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
    let (controls, mut frames) = Session::open(&agent).unwrap().split();
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
        Session::open(&agent.partial_messages(true).unread_limit(10_000)).unwrap().split();
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
    assert!(with_timeout(running.result()).await.unwrap().is_error);
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
async fn program_calls_a_tool_of_this_process() {
    let call = json!([{"type": "tool_use", "name": "mcp__own__shout", "input": {"word": "hey"}}]);
    let (agent, _dir) = scripted_agent(&json!([call, {"expect": "HEY!", "content": ["done"]}]));
    let shout =
        tool("shout", "Shouts", |input: Word| async move { format!("{}!", input.word.to_uppercase()) });
    let agent = agent.tool_server(ToolServer::new("own").tool(shout)).allowed_tools(["mcp__own"]);
    let result = with_timeout(query("go", &agent).result()).await.unwrap();
    assert_eq!(result.result.as_deref(), Some("done"), "{result:?}");
}
