//! The SDK with the engine in this process, on scripted models.
#![cfg(feature = "in-process")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use whimbrel::wire::message::{Outcome, User};
use whimbrel::wire::permission::{PermissionMode, PermissionResult};
use whimbrel::{Agent, Error, Frame, Prompt, Scripted, Session, query};

/// A scripted agent in an empty directory, and the script, which records its requests.
fn scripted_agent(replies: Value) -> (Agent, tempfile::TempDir, Arc<Scripted>) {
    let dir = tempfile::tempdir().unwrap();
    let script = Arc::new(Scripted::replies(replies).unwrap());
    let agent = Agent::new().cwd(dir.path()).persist_session(false).script(Arc::clone(&script));
    (agent, dir, script)
}

async fn collect_frames(mut query: whimbrel::Query) -> Vec<Frame> {
    let mut frames = Vec::new();
    while let Some(frame) = query.next().await {
        frames.push(frame.unwrap());
    }
    frames
}

fn result_texts(frames: &[Frame]) -> Vec<Option<&str>> {
    let results = frames.iter().filter_map(|frame| match frame {
        Frame::Result(result) => Some(result.result.as_deref()),
        _ => None,
    });
    results.collect()
}

#[tokio::test]
async fn prompt_gives_init_assistant_and_result() {
    let (agent, _dir, _) = scripted_agent(json!(["hello"]));
    let frames = collect_frames(query("hi", &agent)).await;
    let kinds: Vec<&str> = frames.iter().map(Frame::kind).collect();
    assert_eq!(kinds, ["system", "assistant", "result"]);
    assert_eq!(result_texts(&frames), [Some("hello")]);
}

#[tokio::test]
async fn queued_prompts_are_joined_into_one_turn() {
    let (agent, _dir, script) = scripted_agent(json!(["both"]));
    let mut session = Session::open(&agent).await.unwrap();
    session.send("one").await.unwrap();
    session.send("two").await.unwrap();
    assert_eq!(session.result().await.unwrap().result.as_deref(), Some("both"));
    assert!(script.requests()[0].to_string().contains("two"));
}

#[tokio::test]
async fn run_ends_with_the_prompt_stream() {
    let (agent, _dir, _) = scripted_agent(json!(["one", "two"]));
    let prompts = futures::stream::iter([User::prompt("a"), User::prompt("b")]);
    let frames = collect_frames(query(Prompt::stream(prompts), &agent)).await;
    assert!(result_texts(&frames).contains(&Some("one")));
}

#[tokio::test]
async fn tools_run_and_their_results_reach_the_model() {
    let write =
        json!([{"type": "tool_use", "name": "Write", "input": {"file_path": "a.txt", "content": "one\n"}}]);
    let (agent, dir, script) = scripted_agent(json!([write, "written"]));
    let agent = agent.permission_mode(PermissionMode::AcceptEdits);
    let frames = collect_frames(query("write a file", &agent)).await;
    assert_eq!(result_texts(&frames), [Some("written")]);
    assert_eq!(std::fs::read_to_string(dir.path().join("a.txt")).unwrap(), "one\n");
    assert!(script.requests()[1].to_string().contains("tool_result"));
}

#[tokio::test]
async fn the_permission_callback_decides() {
    let run = |command: &str| json!([{"type": "tool_use", "name": "Bash", "input": {"command": command}}]);
    let (agent, dir, _) = scripted_agent(json!([run("touch yes"), run("touch no"), "done"]));
    let requests = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&requests);
    let agent = agent.can_use_tool(move |question| {
        let command = question.input["command"].as_str().unwrap().to_owned();
        seen.lock().unwrap().push(command.clone());
        async move {
            if command.ends_with("yes") {
                PermissionResult::allow()
            } else {
                PermissionResult::deny("rather not")
            }
        }
    });
    let frames = collect_frames(query("go", &agent)).await;
    assert_eq!(*requests.lock().unwrap(), ["touch yes", "touch no"]);
    assert!(dir.path().join("yes").exists() && !dir.path().join("no").exists());
    let Some(Frame::Result(result)) = frames.last() else { panic!("no result") };
    assert_eq!(result.permission_denials.len(), 1);
}

#[tokio::test]
async fn session_goes_on_after_an_interrupt() {
    let slow = json!([{"type": "tool_use", "name": "Bash", "input": {"command": "sleep 60"}}]);
    let (agent, _dir, script) = scripted_agent(json!([slow, "next"]));
    let agent = agent.can_use_tool(|_| async { PermissionResult::allow() });
    let mut session = Session::open(&agent).await.unwrap();
    session.send("go").await.unwrap();
    loop {
        if let Some(Ok(Frame::Assistant(_))) = session.next().await {
            break;
        }
    }
    session.interrupt().await.unwrap();
    assert_eq!(session.result().await.unwrap().subtype, Outcome::ErrorDuringExecution);
    session.send("and now?").await.unwrap();
    assert_eq!(session.result().await.unwrap().result.as_deref(), Some("next"));
    let history = script.requests()[1]["messages"].to_string();
    assert!(history.contains("nterrupted") && history.contains("tool_result"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_sessions_of_five_turns_finish_in_one_process() {
    let dir = tempfile::tempdir().unwrap();
    let finished = Arc::new(AtomicUsize::new(0));
    let shared = Agent::new().cwd(dir.path()).persist_session(false);
    let shared = shared.engine(whimbrel::Environment::default().engine());
    let mut sessions = Vec::new();
    for number in 0..1000 {
        let script = Scripted::replies(json!(["1", "2", "3", "4", format!("{number}")])).unwrap();
        let agent = shared.clone().script(script);
        let finished = Arc::clone(&finished);
        sessions.push(tokio::spawn(async move {
            let mut session = Session::open(&agent).await.unwrap();
            for turn in 1..=5 {
                session.send(format!("turn {turn}")).await.unwrap();
                let result = session.result().await.unwrap();
                if turn == 5 && result.result == Some(number.to_string()) {
                    finished.fetch_add(1, Ordering::Relaxed);
                }
            }
        }));
    }
    for session in sessions {
        session.await.unwrap();
    }
    assert_eq!(finished.load(Ordering::Relaxed), 1000);
}

#[tokio::test]
async fn call_without_input_runs_although_the_reply_is_cut() {
    let cut = json!({
        "content": [{"type": "tool_use", "name": "Glob", "input": ""}],
        "fault": {"kind": "cut", "message": "gone", "after": 3},
    });
    let (agent, _dir, script) = scripted_agent(json!([cut, "done"]));
    let frames = collect_frames(query("go", &agent)).await;
    assert_eq!(result_texts(&frames), [Some("done")]);
    let requests = script.requests()[1]["messages"].to_string();
    assert!(
        requests.contains(r#""type":"tool_use""#) && requests.contains(r#""type":"tool_result""#),
        "{requests}"
    );
}

#[tokio::test]
async fn panicking_engine_is_an_error() {
    use whimbrel_models::providers::Providers;
    use whimbrel_models::scripted::ClosureModel;

    let providers = Providers::offline();
    providers.add_model("broken", Arc::new(ClosureModel::new(|_, _| panic!("this model is broken"))));
    let dir = tempfile::tempdir().unwrap();
    let agent = Agent::new().cwd(dir.path()).persist_session(false).model("broken");
    let mut running = query("hi", &agent.engine(whimbrel::Engine::new(providers)));
    let mut last = None;
    while let Some(frame) = running.next().await {
        last = Some(frame);
    }
    assert!(
        matches!(&last, Some(Err(Error::Panicked(reason))) if reason == "this model is broken"),
        "{last:?}"
    );
}
