//! Turns: a prompt, its answer, and what is left when it is dropped.
#![cfg(feature = "in-process")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use whimbrel::wire::hook::HookEvent;
use whimbrel::wire::message::{FailureKind, User};
use whimbrel::{
    Agent, Error, Frame, Hook, OpenError, PermissionResult, Scripted, Session, SharedSession, TurnError,
    query,
};

/// A scripted agent in an empty directory, and the script, which records its requests.
fn scripted_agent(replies: Value) -> (Agent, TempDir, Arc<Scripted>) {
    let dir = tempfile::tempdir().unwrap();
    let script = Arc::new(Scripted::replies(replies).unwrap());
    let agent = Agent::new().cwd(dir.path()).persist_session(false).script(Arc::clone(&script));
    (agent, dir, script)
}

async fn with_timeout<T>(wait: impl IntoFuture<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), wait).await.unwrap()
}

/// A reply that never comes.
fn late_reply() -> Value {
    json!({"content": [{"type": "text", "text": "late"}], "delay_ms": 600_000})
}

fn bash_call(command: &str) -> Value {
    json!([{"type": "tool_use", "name": "Bash", "input": {"command": command}}])
}

#[tokio::test]
async fn each_turn_has_its_own_answer() {
    let (agent, _dir, script) = scripted_agent(json!(["one", "two"]));
    let mut session = Session::open(&agent).await.unwrap();
    assert_eq!(with_timeout(session.ask("a")).await.unwrap().text(), "one");
    assert_eq!(with_timeout(session.ask("b")).await.unwrap().to_string(), "two");
    assert_eq!(script.requests().len(), 2);
}

#[tokio::test]
async fn turn_yields_frames_up_to_its_result() {
    let (agent, _dir, _) = scripted_agent(json!(["one", "two"]));
    let mut session = Session::open(&agent).await.unwrap();
    let mut turn = session.ask("a");
    let mut kinds = Vec::new();
    while let Some(frame) = with_timeout(turn.next()).await {
        kinds.push(frame.unwrap().kind().to_owned());
    }
    assert_eq!(kinds, ["system", "assistant", "result"], "the replayed prompt is not shown");
    assert_eq!(turn.finish().await.unwrap().text(), "one", "the answer is kept for the stream's reader");
    drop(turn);
    assert_eq!(with_timeout(session.ask("b")).await.unwrap().text(), "two");
}

#[tokio::test]
async fn joined_prompts_are_answered_by_one_result() {
    let (agent, _dir, _) = scripted_agent(json!(["both", "third"]));
    let mut session = Session::open(&agent).await.unwrap();
    let prompt = |uuid: &str| User { uuid: Some(uuid.into()), ..User::prompt(uuid) };
    session.send(prompt("p1")).await.unwrap();
    session.send(prompt("p2")).await.unwrap();
    let mut answered = Vec::new();
    let result = loop {
        match with_timeout(session.next()).await.unwrap().unwrap() {
            Frame::Assistant(message) => {
                answered.push((message.user_message_uuid, message.user_message_uuids));
            }
            Frame::Result(result) => break result,
            _ => {}
        }
    };
    assert!(result.answers("p1") && result.answers("p2") && !result.answers("p3"), "{result:?}");
    assert_eq!(answered, [(Some("p1".into()), Some(vec!["p1".into(), "p2".into()]))]);
    // A prompt that was sent before the question has a turn of its own.
    assert_eq!(with_timeout(session.ask("c")).await.unwrap().text(), "third");
}

#[tokio::test]
async fn question_waits_for_the_turn_before_it() {
    let (agent, _dir, _) = scripted_agent(json!([late_reply(), "mine"]));
    let mut session = Session::open(&agent).await.unwrap();
    session.send("first").await.unwrap();
    // The first turn runs once its frames arrive.
    assert!(matches!(with_timeout(session.next()).await, Some(Ok(Frame::System(_)))));
    let controls = session.controls().clone();
    let mut text = session.ask("second").text_stream();
    let (pieces, ()) = tokio::join!(
        async {
            let mut pieces = Vec::new();
            while let Some(piece) = with_timeout(text.next()).await {
                pieces.push(piece.unwrap());
            }
            pieces
        },
        async { controls.interrupt().await.unwrap() }
    );
    assert_eq!(pieces.concat(), "mine");
}

#[tokio::test]
async fn dropped_turn_is_interrupted_and_leaves_nothing() {
    let (agent, dir, _) = scripted_agent(json!([bash_call("echo started > started; sleep 600"), "next"]));
    let agent = agent.can_use_tool(|_| async { PermissionResult::allow() });
    let mut session = Session::open(&agent).await.unwrap();
    let mut turn = session.ask("a");
    loop {
        if let Some(Ok(Frame::Assistant(_))) = with_timeout(turn.next()).await {
            break;
        }
    }
    drop(turn);
    assert_eq!(with_timeout(session.ask("b")).await.unwrap().text(), "next");
    drop(dir);
}

#[tokio::test]
async fn dropped_turn_that_has_not_begun_is_taken_back() {
    let (agent, _dir, script) = scripted_agent(json!([late_reply(), "after"]));
    let mut session = Session::open(&agent).await.unwrap();
    session.send("first").await.unwrap();
    assert!(matches!(with_timeout(session.next()).await, Some(Ok(Frame::System(_)))));
    let mut turn = session.ask("never asked");
    // Polled once, so that the prompt is sent.
    assert!(futures::poll!(std::pin::pin!(turn.next())).is_pending());
    drop(turn);
    session.interrupt().await.unwrap();
    assert!(with_timeout(session.result()).await.unwrap().is_error);
    assert_eq!(with_timeout(session.ask("b")).await.unwrap().text(), "after");
    assert!(!script.requests().iter().any(|request| request.to_string().contains("never asked")));
}

#[tokio::test]
async fn turn_that_is_never_polled_asks_nothing() {
    let (agent, _dir, script) = scripted_agent(json!(["one"]));
    let mut session = Session::open(&agent).await.unwrap();
    drop(session.ask("unasked"));
    assert_eq!(with_timeout(session.ask("asked")).await.unwrap().text(), "one");
    assert!(!script.requests()[0].to_string().contains("unasked"));
}

#[tokio::test]
async fn interrupted_turn_is_an_error() {
    let (agent, _dir, _) = scripted_agent(json!([late_reply(), "next"]));
    let mut session = Session::open(&agent).await.unwrap();
    let mut turn = session.ask("a");
    assert!(matches!(with_timeout(turn.next()).await, Some(Ok(Frame::System(_)))));
    turn.interrupt().await.unwrap();
    assert!(matches!(with_timeout(turn).await, Err(TurnError::Interrupted(_))));
    assert_eq!(with_timeout(session.ask("b")).await.unwrap().text(), "next");
}

#[tokio::test]
async fn interrupting_a_queued_turn_leaves_the_running_one() {
    let (agent, _dir, script) = scripted_agent(json!([late_reply(), "after"]));
    let mut session = Session::open(&agent).await.unwrap();
    session.send("first").await.unwrap();
    assert!(matches!(with_timeout(session.next()).await, Some(Ok(Frame::System(_)))));
    let mut turn = session.ask("second");
    // Polled once, so that the prompt is sent.
    assert!(futures::poll!(std::pin::pin!(turn.next())).is_pending());
    with_timeout(turn.interrupt()).await.unwrap();
    assert!(matches!(with_timeout(turn).await, Err(TurnError::PromptCancelled)));
    assert_eq!(script.requests().len(), 1);
    session.interrupt().await.unwrap();
    assert!(with_timeout(session.result()).await.unwrap().is_error);
    assert_eq!(with_timeout(session.ask("b")).await.unwrap().text(), "after");
}

#[tokio::test]
async fn interrupting_a_turn_before_it_is_sent_asks_nothing() {
    let (agent, _dir, script) = scripted_agent(json!(["one"]));
    let mut session = Session::open(&agent).await.unwrap();
    let mut turn = session.ask("unasked");
    turn.interrupt().await.unwrap();
    let mut text = turn.text_stream();
    assert!(matches!(with_timeout(text.next()).await, Some(Err(TurnError::PromptCancelled))));
    assert!(with_timeout(text.next()).await.is_none());
    drop(text);
    assert_eq!(with_timeout(session.ask("asked")).await.unwrap().text(), "one");
    assert!(!script.requests()[0].to_string().contains("unasked"));
}

#[tokio::test]
async fn api_failure_tells_kind_status_and_retry() {
    let rows = [
        ("authentication", Some(401), FailureKind::AuthenticationFailed, false),
        ("rate_limit", Some(429), FailureKind::RateLimit, true),
        ("overloaded", Some(529), FailureKind::ServerError, true),
        ("connection", None, FailureKind::ServerError, true),
        ("stalled", None, FailureKind::ServerError, true),
        ("cut", None, FailureKind::ServerError, true),
        ("certificate", None, FailureKind::Unknown, false),
    ];
    for (kind, status, expected, retryable) in rows {
        let fault = json!({"fault": {"kind": kind, "status": status, "message": "no luck"}});
        let (agent, _dir, _) = scripted_agent(json!([fault]));
        let error = with_timeout(query("a", &agent.env("CLAUDE_CODE_MAX_RETRIES", "0"))).await.unwrap_err();
        let TurnError::Api(api) = &error else { panic!("{kind}: {error:?}") };
        assert_eq!((&api.kind, api.status), (&expected, status), "{kind}");
        assert_eq!(error.is_retryable(), retryable, "{kind}");
        assert!(error.to_string().contains("no luck"), "{kind}: {error}");
    }
}

#[tokio::test]
async fn limits_are_errors_of_their_own() {
    let (agent, _dir, _) = scripted_agent(json!([bash_call("true"), bash_call("true"), "done"]));
    let error = with_timeout(query("a", &agent.max_turns(1))).await.unwrap_err();
    assert!(matches!(error, TurnError::MaxTurns(_)), "{error:?}");
    assert!(error.result().is_some_and(|result| result.is_error));
}

#[tokio::test]
async fn blocked_prompt_is_an_error_with_the_reason() {
    let (agent, _dir, script) = scripted_agent(json!(["never"]));
    let hook = Hook::on(HookEvent::UserPromptSubmit, |_| async { Hook::block("not today") });
    let mut session = Session::open(&agent.hook(hook)).await.unwrap();
    let error = with_timeout(session.ask("a")).await.unwrap_err();
    let TurnError::Hook { reason: Some(reason), .. } = &error else { panic!("{error:?}") };
    assert!(reason.contains("not today"), "{reason}");
    assert!(script.requests().is_empty());
}

#[tokio::test]
async fn query_ends_after_background_work() {
    let background = json!([{"type": "tool_use", "name": "Agent",
        "input": {"description": "d", "prompt": "p", "run_in_background": true}}]);
    let (agent, _dir, _) = scripted_agent(json!([background, "started", "found it", "final answer"]));
    // The replies are shared by two agents that run at the same time, so only the last one is certain.
    let answer = with_timeout(query("go", &agent)).await.unwrap();
    assert_eq!(answer.text(), "final answer");
}

#[tokio::test]
async fn options_are_judged_when_a_session_is_opened() {
    type Change = fn(Agent) -> Agent;
    let open_error = async |change: Change| {
        let (agent, _dir, _) = scripted_agent(json!(["never"]));
        with_timeout(Session::open(&change(agent))).await.unwrap_err()
    };
    let rows: [(&str, Change, &str); 6] = [
        ("id", |agent| agent.session_id("no id"), "the option session_id must be a UUID, but is \"no id\""),
        (
            "budget",
            |agent| agent.max_budget_usd(f64::NAN),
            "the option max_budget_usd must be an amount above 0, but is NaN",
        ),
        (
            "id of a resumed session",
            |agent| {
                agent
                    .session_id("aaaaaaaa-2222-4333-8444-555555555555")
                    .resume("aaaaaaaa-2222-4333-8444-555555555556")
            },
            "the option session_id requires fork_session: a session that is resumed or continued keeps its id",
        ),
        (
            "directory",
            |agent| agent.cwd("/nowhere/at/all"),
            "the working directory /nowhere/at/all does not exist",
        ),
        (
            "unknown session",
            |agent| agent.resume("aaaaaaaa-2222-4333-8444-555555555555"),
            "there is no session aaaaaaaa-2222-4333-8444-555555555555: it was deleted, or it is stored elsewhere",
        ),
        (
            "matcher",
            |agent| {
                agent.hook(Hook::on(HookEvent::PreToolUse, |_| async { Hook::no_opinion() }).matching("["))
            },
            "the engine rejected the session: ",
        ),
    ];
    for (name, change, expected) in rows {
        let error = open_error(change).await;
        assert!(error.to_string().starts_with(expected), "{name}: {error}");
    }
    assert!(matches!(open_error(|agent| agent.cwd("/nowhere")).await, OpenError::NoSuchDirectory(_)));
}

#[tokio::test]
async fn query_with_bad_options_fails_with_the_same_error() {
    let (agent, _dir, _) = scripted_agent(json!(["never"]));
    let error = with_timeout(query("a", &agent.cwd("/nowhere"))).await.unwrap_err();
    assert!(matches!(error, TurnError::Session(Error::Open(OpenError::NoSuchDirectory(_)))), "{error:?}");
}

#[tokio::test]
async fn shared_session_asks_in_order() {
    let (agent, _dir, _) = scripted_agent(json!([late_reply(), "second"]));
    let session = SharedSession::new(Session::open(&agent).await.unwrap());
    let mut first = session.ask("a").await;
    assert!(matches!(with_timeout(first.next()).await, Some(Ok(Frame::System(_)))));
    let other = session.clone();
    let second = tokio::spawn(async move { other.ask("b").await.await });
    drop(first);
    assert_eq!(with_timeout(second).await.unwrap().unwrap().text(), "second");
}
