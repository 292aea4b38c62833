//! The sorter with an engine that is played by hand.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use whimbrel_engine::link;
use whimbrel_wire::control::{CanUseTool, Cancel, ControlRequest, InitializeReply, InterruptReply, Request};
use whimbrel_wire::decode;
use whimbrel_wire::permission::PermissionResult;

use super::*;

/// An engine's end, moved by the test.
struct Engine {
    heard: mpsc::Receiver<link::Line>,
    says: mpsc::Sender<Frame>,
    finished: CancellationToken,
    stop: CancellationToken,
}

/// How many frames fit between the engine and the sorter.
const BETWEEN: usize = 4;

fn attached(agent: &Agent, wants_initialize: bool) -> (Engine, Controls, Frames) {
    let (sender, heard) = mpsc::channel(BETWEEN);
    let (says, receiver) = mpsc::channel(BETWEEN);
    let (finished, stop) = (CancellationToken::new(), CancellationToken::new());
    let connection = Connection {
        sender,
        incoming: Incoming::Frames(receiver, None),
        finished: finished.clone(),
        stop: stop.clone(),
        wants_initialize,
    };
    let (controls, frames) = attach(agent, connection).unwrap();
    (Engine { heard, says, finished, stop }, controls, frames)
}

fn frame(text: &str) -> Frame {
    decode(text).unwrap()
}

/// A frame for the reader, of about a hundred bytes.
fn word(number: usize) -> Frame {
    frame(&json!({"type": "word", "number": number, "filler": "x".repeat(60)}).to_string())
}

fn question(id: &str) -> Frame {
    let asked = json!({"tool_name": "Bash", "input": {"command": "ls"}, "tool_use_id": "t"});
    ControlRequest::new(id, serde_json::from_value::<CanUseTool>(asked).unwrap()).into()
}

impl Engine {
    /// The next thing that the host says.
    async fn hears(&mut self) -> Frame {
        soon(self.heard.recv()).await.unwrap().unwrap()
    }

    async fn is_asked(&mut self) -> (String, Request) {
        match self.hears().await {
            Frame::ControlRequest(asked) => (asked.request_id, asked.request),
            other => panic!("{other:?}"),
        }
    }

    async fn is_answered(&mut self) -> Response {
        match self.hears().await {
            Frame::ControlResponse(answer) => answer.response,
            other => panic!("{other:?}"),
        }
    }

    /// Talks until nothing more is taken, and says how much was.
    async fn talks_until_stopped(&self) -> usize {
        for number in 0..10_000 {
            // Everything else that can go on has gone on by then.
            for _ in 0..20 {
                tokio::task::yield_now().await;
            }
            if self.says.try_send(word(number)).is_err() {
                return number;
            }
        }
        panic!("the engine is never slowed");
    }
}

async fn soon<T>(wait: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(10), wait).await.unwrap()
}

#[tokio::test]
async fn answers_and_questions_pass_although_nobody_reads() {
    let agent = Agent::new().can_use_tool(|_| async { PermissionResult::allow() });
    let (mut engine, controls, mut frames) = attached(&agent, false);
    for number in 0..5000 {
        engine.says.send(word(number)).await.unwrap();
    }
    engine.says.send(question("q")).await.unwrap();
    assert_eq!(engine.is_answered().await.request_id(), "q");
    let call = tokio::spawn(async move { controls.interrupt().await });
    let (id, _) = engine.is_asked().await;
    engine.says.send(ControlResponse::success(id, &InterruptReply::default()).into()).await.unwrap();
    soon(call).await.unwrap().unwrap();
    drop(engine.says);
    for number in 0..5000 {
        assert_eq!(frames.next().await.unwrap().unwrap(), word(number));
    }
    assert!(frames.next().await.is_none());
}

#[tokio::test]
async fn beyond_the_limit_the_engine_is_slowed_until_its_frames_are_read() {
    let agent = Agent::new().unread_limit(1000);
    let (engine, _controls, mut frames) = attached(&agent, false);
    let said = engine.talks_until_stopped().await;
    assert!((10..30).contains(&said), "{said}");
    for number in 0..said {
        assert_eq!(soon(frames.next()).await.unwrap().unwrap(), word(number));
    }
    assert!(engine.talks_until_stopped().await >= 10);
}

#[tokio::test]
async fn a_call_is_answered_even_beyond_the_limit_and_then_the_engine_waits_again() {
    let agent = Agent::new().unread_limit(0);
    let (mut engine, controls, _frames) = attached(&agent, false);
    engine.talks_until_stopped().await;
    let call = tokio::spawn(async move { controls.interrupt().await });
    let (id, _) = engine.is_asked().await;
    for number in 0..100 {
        soon(engine.says.send(word(number))).await.unwrap();
    }
    soon(engine.says.send(ControlResponse::success(id, &InterruptReply::default()).into())).await.unwrap();
    soon(call).await.unwrap().unwrap();
    engine.talks_until_stopped().await;
}

#[tokio::test]
async fn a_call_that_is_given_up_no_longer_counts() {
    let agent = Agent::new().unread_limit(0);
    let (mut engine, controls, _frames) = attached(&agent, false);
    let call = tokio::spawn({
        let controls = controls.clone();
        async move { controls.interrupt().await }
    });
    engine.is_asked().await;
    call.abort();
    assert!(call.await.is_err());
    engine.talks_until_stopped().await;
}

/// An agent whose callback never answers its first question: when it was entered, and when its future has gone.
fn never_answers_first() -> (Agent, oneshot::Receiver<()>, oneshot::Receiver<()>) {
    let (enter, entered) = oneshot::channel();
    let (held, gone) = oneshot::channel::<()>();
    let first = std::sync::Mutex::new(Some((enter, held)));
    let agent = Agent::new().can_use_tool(move |_| {
        let first = first.lock().unwrap().take();
        async move {
            if let Some((enter, _held)) = first {
                enter.send(()).unwrap();
                std::future::pending::<()>().await;
            }
            PermissionResult::allow()
        }
    });
    (agent, entered, gone)
}

#[tokio::test]
async fn a_withdrawn_question_ends_its_callback_and_gets_no_answer() {
    let (agent, entered, gone) = never_answers_first();
    let (mut engine, _controls, _frames) = attached(&agent, false);
    engine.says.send(question("first")).await.unwrap();
    soon(entered).await.unwrap();
    engine.says.send(Cancel { request_id: "first".into() }.into()).await.unwrap();
    assert!(soon(gone).await.is_err());
    engine.says.send(question("second")).await.unwrap();
    assert_eq!(engine.is_answered().await.request_id(), "second");
}

#[tokio::test]
async fn a_callback_ends_with_the_run() {
    let (agent, entered, gone) = never_answers_first();
    let (engine, _controls, frames) = attached(&agent, false);
    engine.says.send(question("q")).await.unwrap();
    soon(entered).await.unwrap();
    drop(frames);
    assert!(soon(gone).await.is_err());
}

#[tokio::test]
async fn a_callback_that_panics_refuses_the_call_wherever_it_does() {
    let asked = AtomicUsize::new(0);
    let agent = Agent::new().can_use_tool(move |_| {
        assert!(asked.fetch_add(1, Ordering::Relaxed) > 0, "in the closure");
        async { panic!("in its future") }
    });
    let (mut engine, _controls, _frames) = attached(&agent, false);
    for id in ["closure", "future"] {
        engine.says.send(question(id)).await.unwrap();
        let answer = engine.is_answered().await;
        assert!(matches!(&answer, Response::Error { request_id, .. } if request_id == id), "{answer:?}");
    }
}

#[tokio::test]
async fn frames_that_are_marked_for_the_sdk_are_hidden() {
    let (engine, _controls, mut frames) = attached(&Agent::new(), false);
    let state = |mark: &str| {
        frame(&format!(
            r#"{{"type":"system","subtype":"session_state_changed","state":"idle","uuid":"u","session_id":"s"{mark}}}"#
        ))
    };
    let shown = [
        state(""),
        state(r#","sdk_host_only":false"#),
        frame(r#"{"type":"news","text":"\"sdk_host_only\""}"#),
        frame(r#"{"type":"news","sdk_host_only":false}"#),
    ];
    let hidden = [
        state(r#","sdk_host_only":true"#),
        frame(r#"{"type":"news","sdk_host_only":true}"#),
        frame(r#"{"type":"system","subtype":"news","sdk_host_only":true,"uuid":"u","session_id":"s"}"#),
        frame(r#"{"type":"keep_alive"}"#),
    ];
    for (hidden, shown) in hidden.into_iter().zip(shown.clone()) {
        engine.says.send(hidden).await.unwrap();
        engine.says.send(shown).await.unwrap();
    }
    drop(engine.says);
    for shown in shown {
        assert_eq!(soon(frames.next()).await.unwrap().unwrap(), shown);
    }
    assert!(soon(frames.next()).await.is_none());
}

#[tokio::test]
async fn the_answer_to_the_opening_is_kept() {
    let (mut engine, controls, _frames) = attached(&Agent::new(), true);
    let (id, request) = engine.is_asked().await;
    assert!(matches!(request, Request::Initialize(_)));
    let reply = InitializeReply { pid: Some(7), ..InitializeReply::default() };
    engine.says.send(ControlResponse::success(id, &reply).into()).await.unwrap();
    let (one, two) = soon(futures::future::join(controls.info(), controls.info())).await;
    assert_eq!(one.unwrap(), &reply);
    assert_eq!(two.unwrap(), &reply);
    assert!(engine.heard.is_empty());
}

#[tokio::test]
async fn without_an_opening_the_engine_is_asked_once() {
    let (mut engine, controls, _frames) = attached(&Agent::new(), false);
    let both = tokio::spawn(async move {
        let (one, two) = futures::future::join(controls.info(), controls.info()).await;
        one.unwrap() == two.unwrap()
    });
    let (id, _) = engine.is_asked().await;
    engine.says.send(ControlResponse::success(id, &InitializeReply::default()).into()).await.unwrap();
    assert!(soon(both).await.unwrap());
    assert!(engine.heard.is_empty());
}

#[tokio::test]
async fn a_refused_opening_is_the_first_item_and_ends_the_run() {
    let (mut engine, controls, mut frames) = attached(&Agent::new(), true);
    let (id, _) = engine.is_asked().await;
    engine.says.send(ControlResponse::error(id, "no such agent").into()).await.unwrap();
    let first = soon(frames.next()).await.unwrap();
    assert!(matches!(&first, Err(Error::Refused(text)) if text == "no such agent"), "{first:?}");
    assert!(engine.stop.is_cancelled());
    engine.says.send(word(1)).await.unwrap();
    drop(engine.says);
    assert!(soon(frames.next()).await.is_none());
    assert!(matches!(controls.info().await, Err(Error::Refused(_))));
    assert!(matches!(controls.send("hello?").await, Err(Error::Over)));
}

#[tokio::test]
async fn the_end_of_the_engine_ends_every_wait() {
    let (mut engine, controls, mut frames) = attached(&Agent::new(), false);
    let call = tokio::spawn({
        let controls = controls.clone();
        async move { controls.interrupt().await }
    });
    engine.is_asked().await;
    drop(engine.says);
    assert!(matches!(soon(call).await.unwrap(), Err(Error::Over)));
    assert!(soon(frames.next()).await.is_none());
    assert!(matches!(controls.interrupt().await, Err(Error::Over)));
    assert!(matches!(controls.send("hello?").await, Err(Error::Over)));
}

#[tokio::test]
async fn the_last_controls_finish_the_input_and_the_frames_stop_the_run() {
    let (engine, controls, frames) = attached(&Agent::new(), false);
    let another = controls.clone();
    drop(controls);
    assert!(!engine.finished.is_cancelled());
    drop(another);
    assert!(engine.finished.is_cancelled() && !engine.stop.is_cancelled());
    drop(frames);
    assert!(engine.stop.is_cancelled());
}
