//! The router with a fake engine that the test drives.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use whimbrel_transport::link;
use whimbrel_wire::control::{
    CanUseTool, Cancel, CancelReason, ControlRequest, ControlResponse, InitializeReply, InterruptReply,
    Request,
};
use whimbrel_wire::decode;
use whimbrel_wire::permission::PermissionResult;

use super::*;
use crate::transport::PromptSpans;

/// Engine end of the link, driven by the test.
struct FakeEngine {
    from_host: mpsc::Receiver<link::IncomingFrame>,
    to_host: mpsc::Sender<Frame>,
    finished: CancellationToken,
    stop: CancellationToken,
}

/// Capacity of the channels between engine and router.
const CHANNEL_CAPACITY: usize = 4;

/// A session whose `initialize` the engine has answered.
async fn open_session(agent: &Agent) -> (FakeEngine, Controls, Frames) {
    let (mut engine, controls, frames) = connect_fake_engine(agent, Opening::Initialize);
    let (id, _) = engine.next_request().await;
    engine.to_host.send(ControlResponse::success(id, &InitializeReply::default()).into()).await.unwrap();
    with_timeout(controls.client().wait_for_initialize()).await.unwrap();
    (engine, controls, frames)
}

fn connect_fake_engine(agent: &Agent, opening: Opening) -> (FakeEngine, Controls, Frames) {
    let (sender, from_host) = mpsc::channel(CHANNEL_CAPACITY);
    let (to_host, receiver) = mpsc::channel(CHANNEL_CAPACITY);
    let (finished, stop) = (CancellationToken::new(), CancellationToken::new());
    let connection = Connection {
        prompt_spans: PromptSpans::default(),
        sender,
        incoming: FrameSource::Fake(receiver),
        finished: finished.clone(),
        stop: stop.clone(),
        opening,
    };
    let RoutedSession { controls, frames, .. } = start_router(agent, connection).unwrap();
    (FakeEngine { from_host, to_host, finished, stop }, controls, frames)
}

fn parse_frame(text: &str) -> Frame {
    decode(text).unwrap()
}

/// A frame for the reader, about a hundred bytes long.
fn filler_frame(number: usize) -> Frame {
    parse_frame(&json!({"type": "word", "number": number, "filler": "x".repeat(60)}).to_string())
}

fn permission_request(id: &str) -> Frame {
    let asked = json!({"tool_name": "Bash", "input": {"command": "ls"}, "tool_use_id": "t"});
    ControlRequest::new(id, serde_json::from_value::<CanUseTool>(asked).unwrap()).into()
}

impl FakeEngine {
    /// Returns the next frame from the host.
    async fn next_frame(&mut self) -> Frame {
        with_timeout(self.from_host.recv()).await.unwrap().unwrap()
    }

    async fn next_request(&mut self) -> (String, Request) {
        match self.next_frame().await {
            Frame::ControlRequest(asked) => (asked.request_id, asked.request),
            other => panic!("{other:?}"),
        }
    }

    async fn next_response(&mut self) -> Response {
        match self.next_frame().await {
            Frame::ControlResponse(answer) => answer.response,
            other => panic!("{other:?}"),
        }
    }

    /// Sends frames until the channel stays full; returns their number.
    async fn send_until_full(&self) -> usize {
        for number in 0..10_000 {
            // Lets all other tasks run until they wait.
            for _ in 0..20 {
                tokio::task::yield_now().await;
            }
            if self.to_host.try_send(filler_frame(number)).is_err() {
                return number;
            }
        }
        panic!("the engine is never slowed down");
    }
}

async fn with_timeout<T>(wait: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(10), wait).await.unwrap()
}

#[tokio::test]
async fn requests_pass_while_frames_are_unread() {
    let agent = Agent::new().can_use_tool(|_| async { PermissionResult::allow() });
    let (mut engine, controls, mut frames) = open_session(&agent).await;
    for number in 0..5000 {
        engine.to_host.send(filler_frame(number)).await.unwrap();
    }
    engine.to_host.send(permission_request("q")).await.unwrap();
    assert_eq!(engine.next_response().await.request_id(), "q");
    let call = tokio::spawn(async move { controls.interrupt().await });
    let (id, _) = engine.next_request().await;
    engine.to_host.send(ControlResponse::success(id, &InterruptReply::default()).into()).await.unwrap();
    with_timeout(call).await.unwrap().unwrap();
    drop(engine.to_host);
    for number in 0..5000 {
        assert_eq!(frames.next().await.unwrap().unwrap(), filler_frame(number));
    }
    assert!(frames.next().await.is_none());
}

#[tokio::test]
async fn engine_is_slowed_beyond_the_unread_limit() {
    let agent = Agent::new().unread_limit(1000);
    let (engine, _controls, mut frames) = open_session(&agent).await;
    let sent = engine.send_until_full().await;
    assert!((10..30).contains(&sent), "{sent}");
    for number in 0..sent {
        assert_eq!(with_timeout(frames.next()).await.unwrap().unwrap(), filler_frame(number));
    }
    assert!(engine.send_until_full().await >= 10);
}

#[tokio::test]
async fn pending_request_lifts_the_unread_limit() {
    let agent = Agent::new().unread_limit(0);
    let (mut engine, controls, _frames) = open_session(&agent).await;
    engine.send_until_full().await;
    let call = tokio::spawn(async move { controls.interrupt().await });
    let (id, _) = engine.next_request().await;
    for number in 0..100 {
        with_timeout(engine.to_host.send(filler_frame(number))).await.unwrap();
    }
    with_timeout(engine.to_host.send(ControlResponse::success(id, &InterruptReply::default()).into()))
        .await
        .unwrap();
    with_timeout(call).await.unwrap().unwrap();
    engine.send_until_full().await;
}

#[tokio::test]
async fn abandoned_request_no_longer_lifts_the_limit() {
    let agent = Agent::new().unread_limit(0);
    let (mut engine, controls, _frames) = open_session(&agent).await;
    let call = tokio::spawn({
        let controls = controls.clone();
        async move { controls.interrupt().await }
    });
    engine.next_request().await;
    call.abort();
    assert!(call.await.is_err());
    engine.send_until_full().await;
}

/// An agent whose callback never answers its first request; receivers for its start and for the drop of its future.
fn agent_with_stalled_callback() -> (Agent, oneshot::Receiver<()>, oneshot::Receiver<()>) {
    let (start, started) = oneshot::channel();
    let (guard, dropped) = oneshot::channel::<()>();
    let first = std::sync::Mutex::new(Some((start, guard)));
    let agent = Agent::new().can_use_tool(move |_| {
        let first = first.lock().unwrap().take();
        async move {
            if let Some((start, _guard)) = first {
                start.send(()).unwrap();
                std::future::pending::<()>().await;
            }
            PermissionResult::allow()
        }
    });
    (agent, started, dropped)
}

#[tokio::test]
async fn cancelled_request_drops_its_callback() {
    let (agent, started, dropped) = agent_with_stalled_callback();
    let (mut engine, _controls, _frames) = open_session(&agent).await;
    engine.to_host.send(permission_request("first")).await.unwrap();
    with_timeout(started).await.unwrap();
    engine
        .to_host
        .send(Cancel { request_id: "first".into(), reason: CancelReason::Interrupted }.into())
        .await
        .unwrap();
    assert!(with_timeout(dropped).await.is_err());
    engine.to_host.send(permission_request("second")).await.unwrap();
    assert_eq!(engine.next_response().await.request_id(), "second");
}

#[tokio::test]
async fn callback_is_dropped_with_the_run() {
    let (agent, started, dropped) = agent_with_stalled_callback();
    let (engine, _controls, frames) = open_session(&agent).await;
    engine.to_host.send(permission_request("q")).await.unwrap();
    with_timeout(started).await.unwrap();
    drop(frames);
    assert!(with_timeout(dropped).await.is_err());
}

#[tokio::test]
async fn panicking_callback_denies_the_call() {
    let asked = AtomicUsize::new(0);
    let agent = Agent::new().can_use_tool(move |_| {
        assert!(asked.fetch_add(1, Ordering::Relaxed) > 0, "in the closure");
        async { panic!("in its future") }
    });
    let (mut engine, _controls, _frames) = open_session(&agent).await;
    for id in ["closure", "future"] {
        engine.to_host.send(permission_request(id)).await.unwrap();
        let answer = engine.next_response().await;
        assert!(matches!(&answer, Response::Error { request_id, .. } if request_id == id), "{answer:?}");
    }
}

#[tokio::test]
async fn sdk_only_frames_are_hidden() {
    let (engine, _controls, mut frames) = open_session(&Agent::new()).await;
    let state = |mark: &str| {
        parse_frame(&format!(
            r#"{{"type":"system","subtype":"session_state_changed","state":"idle","uuid":"u","session_id":"s"{mark}}}"#
        ))
    };
    let shown = [
        state(""),
        state(r#","sdk_host_only":false"#),
        parse_frame(r#"{"type":"news","text":"\"sdk_host_only\""}"#),
        parse_frame(r#"{"type":"news","sdk_host_only":false}"#),
    ];
    let hidden = [
        state(r#","sdk_host_only":true"#),
        parse_frame(r#"{"type":"news","sdk_host_only":true}"#),
        parse_frame(r#"{"type":"system","subtype":"news","sdk_host_only":true,"uuid":"u","session_id":"s"}"#),
        parse_frame(r#"{"type":"keep_alive"}"#),
    ];
    for (hidden, shown) in hidden.into_iter().zip(shown.clone()) {
        engine.to_host.send(hidden).await.unwrap();
        engine.to_host.send(shown).await.unwrap();
    }
    drop(engine.to_host);
    for shown in shown {
        assert_eq!(with_timeout(frames.next()).await.unwrap().unwrap(), shown);
    }
    assert!(with_timeout(frames.next()).await.is_none());
}

#[tokio::test]
async fn initialize_reply_is_cached() {
    let (mut engine, controls, _frames) = connect_fake_engine(&Agent::new(), Opening::Initialize);
    let (id, request) = engine.next_request().await;
    assert!(matches!(request, Request::Initialize(_)));
    let reply = InitializeReply { pid: Some(7), ..InitializeReply::default() };
    engine.to_host.send(ControlResponse::success(id, &reply).into()).await.unwrap();
    let (one, two) = with_timeout(futures::future::join(controls.info(), controls.info())).await;
    assert_eq!(one.unwrap(), &reply);
    assert_eq!(two.unwrap(), &reply);
    assert!(engine.from_host.is_empty());
}

#[cfg(feature = "in-process")]
#[tokio::test]
async fn info_sends_initialize_once() {
    // An engine in this process has the options already.
    let opening = Opening::Resolving(oneshot::channel().1);
    let (mut engine, controls, _frames) = connect_fake_engine(&Agent::new(), opening);
    let both = tokio::spawn(async move {
        let (one, two) = futures::future::join(controls.info(), controls.info()).await;
        one.unwrap() == two.unwrap()
    });
    let (id, _) = engine.next_request().await;
    engine.to_host.send(ControlResponse::success(id, &InitializeReply::default()).into()).await.unwrap();
    assert!(with_timeout(both).await.unwrap());
    assert!(engine.from_host.is_empty());
}

#[tokio::test]
async fn rejected_initialize_is_the_first_item_and_ends_the_run() {
    let (mut engine, controls, mut frames) = connect_fake_engine(&Agent::new(), Opening::Initialize);
    let (id, _) = engine.next_request().await;
    engine.to_host.send(ControlResponse::error(id, "no such agent").into()).await.unwrap();
    let first = with_timeout(frames.next()).await.unwrap();
    assert!(matches!(&first, Err(Error::Rejected(text)) if text == "no such agent"), "{first:?}");
    assert!(engine.stop.is_cancelled());
    engine.to_host.send(filler_frame(1)).await.unwrap();
    drop(engine.to_host);
    assert!(with_timeout(frames.next()).await.is_none());
    assert!(matches!(controls.info().await, Err(Error::Rejected(_))));
    assert!(matches!(controls.send("hello?").await, Err(Error::SessionEnded)));
}

#[tokio::test]
async fn engine_exit_fails_all_pending_requests() {
    let (mut engine, controls, mut frames) = open_session(&Agent::new()).await;
    let call = tokio::spawn({
        let controls = controls.clone();
        async move { controls.interrupt().await }
    });
    engine.next_request().await;
    drop(engine.to_host);
    assert!(matches!(with_timeout(call).await.unwrap(), Err(Error::SessionEnded)));
    assert!(with_timeout(frames.next()).await.is_none());
    assert!(matches!(controls.interrupt().await, Err(Error::SessionEnded)));
    assert!(matches!(controls.send("hello?").await, Err(Error::SessionEnded)));
}

#[tokio::test]
async fn dropped_controls_finish_input_and_dropped_frames_stop_run() {
    let (engine, controls, frames) = open_session(&Agent::new()).await;
    let another = controls.clone();
    drop(controls);
    assert!(!engine.finished.is_cancelled());
    drop(another);
    assert!(engine.finished.is_cancelled() && !engine.stop.is_cancelled());
    drop(frames);
    assert!(engine.stop.is_cancelled());
}

#[tokio::test]
async fn unread_live_output_is_joined_and_nothing_is_lost() {
    let (engine, _controls, mut frames) = open_session(&Agent::new().unread_limit(1_000)).await;
    let chunk =
        json!({"type": "tool_output", "tool_use_id": "call", "text": "x".repeat(100), "omitted_bytes": 1});
    for _ in 0..10_000 {
        with_timeout(engine.to_host.send(parse_frame(&chunk.to_string()))).await.unwrap();
    }
    with_timeout(engine.to_host.send(filler_frame(0))).await.unwrap();
    let (mut count, mut bytes) = (0, 0);
    while let Frame::ToolOutput(chunk) = with_timeout(frames.next()).await.unwrap().unwrap() {
        assert!(chunk.text.len() <= 64 * 1024);
        bytes += chunk.text.len() as u64 + chunk.omitted_bytes;
        count += 1;
    }
    assert_eq!(bytes, 1_010_000);
    assert!(count <= CHANNEL_CAPACITY + 2, "{count}");
}
