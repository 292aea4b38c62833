//! Calls against a fake model that plays lists of actions.

use std::collections::VecDeque;
use std::sync::Mutex;

use futures::stream::{self, BoxStream, StreamExt};
use whimbrel_wire::{Block, StopReason, Usage};

use super::*;
use crate::event::{BlockDelta, ReplyEvent};
use crate::history::History;
use crate::request::{Effort, OptionalPart, RequestPrefix};
use crate::usage::ReportedUsage;

/// An action of the fake model.
enum ModelAction {
    Emit(Result<ReplyEvent, ModelError>),
    Wait(u64),
    Hang,
}

/// A model that plays one list of actions per attempt and records its requests.
struct FakeModel {
    attempts: Mutex<VecDeque<Vec<ModelAction>>>,
    requests: Mutex<Vec<Request>>,
    unsupported: Mutex<Vec<OptionalPart>>,
}

impl Model for FakeModel {
    fn stream_reply(&self, request: Arc<Request>) -> BoxStream<'static, Result<ReplyItem, ModelError>> {
        self.requests.lock().unwrap().push((*request).clone());
        let actions = self.attempts.lock().unwrap().pop_front().unwrap_or_default();
        stream::iter(actions)
            .filter_map(|action| async {
                match action {
                    ModelAction::Emit(item) => Some(item.map(|event| ReplyItem { event, raw: None })),
                    ModelAction::Wait(seconds) => {
                        tokio::time::sleep(Duration::from_secs(seconds)).await;
                        None
                    }
                    ModelAction::Hang => std::future::pending().await,
                }
            })
            .boxed()
    }

    fn mark_unsupported(&self, _: &str, part: &OptionalPart) {
        self.unsupported.lock().unwrap().push(part.clone());
    }
}

fn fake_model(attempts: impl IntoIterator<Item = Vec<ModelAction>>) -> Arc<FakeModel> {
    let attempts = Mutex::new(attempts.into_iter().collect());
    Arc::new(FakeModel { attempts, requests: Mutex::default(), unsupported: Mutex::default() })
}

fn request() -> Request {
    Request {
        effort: Some(Effort::High),
        ..Request::new("m", Arc::new(RequestPrefix::new(vec![], vec![])), History::new().snapshot())
    }
}

fn call(model: &Arc<FakeModel>) -> ModelCall {
    ModelCall::new(model.clone(), request(), RetryPolicy::default(), CallTimeouts::default())
}

fn tokens(input_tokens: u64, output_tokens: u64) -> ReportedUsage {
    Usage { input_tokens, output_tokens, ..Usage::default() }.into()
}

fn message_start() -> ModelAction {
    emit(ReplyEvent::MessageStart { id: "m".into(), model: "x".into(), usage: tokens(100, 1) })
}

fn emit(event: ReplyEvent) -> ModelAction {
    ModelAction::Emit(Ok(event))
}

fn block_start(index: usize) -> ModelAction {
    emit(ReplyEvent::BlockStart { index, block: Block::text("") })
}

fn text_delta(index: usize) -> ModelAction {
    emit(ReplyEvent::BlockDelta { index, delta: BlockDelta::Text { text: "a".into() } })
}

fn block_stop(index: usize) -> ModelAction {
    emit(ReplyEvent::BlockStop { index })
}

fn message_delta() -> ModelAction {
    emit(ReplyEvent::MessageDelta {
        stop_reason: Some(StopReason::EndTurn),
        stop_sequence: None,
        usage: tokens(0, 10),
    })
}

fn fail(kind: ModelErrorKind) -> ModelAction {
    ModelAction::Emit(Err(ModelError::new(kind, "message")))
}

fn complete_reply() -> Vec<ModelAction> {
    vec![
        message_start(),
        block_start(0),
        text_delta(0),
        block_stop(0),
        message_delta(),
        emit(ReplyEvent::MessageStop),
    ]
}

/// Renders the steps of a call: one letter per event, words for the rest.
async fn render_steps(call: &mut ModelCall) -> String {
    let mut rendered = String::new();
    while let Some(step) = call.next().await {
        rendered += &match step {
            Ok(CallStep::Item(item)) => match item.event {
                ReplyEvent::Accepted { .. } => "a".to_owned(),
                ReplyEvent::MessageStart { .. } => "M".to_owned(),
                ReplyEvent::BlockStart { .. } => "[".to_owned(),
                ReplyEvent::BlockDelta { .. } => ".".to_owned(),
                ReplyEvent::BlockStop { .. } => "]".to_owned(),
                ReplyEvent::MessageDelta { .. } => "e".to_owned(),
                ReplyEvent::MessageStop => "E".to_owned(),
                ReplyEvent::Ping => "p".to_owned(),
                ReplyEvent::Unknown => "?".to_owned(),
            },
            Ok(CallStep::Retry(retry)) => format!(" retry{} ", retry.attempt),
            Ok(CallStep::Truncated(error)) => format!(" cut {:?}", error.kind),
            Err(error) => format!(" error {:?}", error.kind),
        };
    }
    rendered
}

#[tokio::test(start_paused = true)]
async fn failures_are_retried_truncated_or_returned() {
    use ModelErrorKind::*;
    let unknown = emit(ReplyEvent::Unknown);
    let table = [
        ("a good reply", vec![complete_reply()], "M[.]eE"),
        (
            "A5 two overloads",
            vec![vec![fail(Overloaded)], vec![fail(Overloaded)], complete_reply()],
            " retry1  retry2 M[.]eE",
        ),
        (
            "A18 an error before any block",
            vec![vec![message_start(), fail(Server)], complete_reply()],
            "M retry1 M[.]eE",
        ),
        (
            "A19 an error after a block",
            vec![vec![message_start(), block_start(0), text_delta(0), block_stop(0), fail(Server)]],
            "M[.] cut Server",
        ),
        (
            "A20 a drop in a block",
            vec![vec![message_start(), block_start(0), text_delta(0), fail(Cut)], complete_reply()],
            "M[. retry1 M[.]eE",
        ),
        (
            "a plain end in a block",
            vec![vec![message_start(), block_start(0), text_delta(0)], complete_reply()],
            "M[. retry1 M[.]eE",
        ),
        (
            "A23 no message_stop",
            vec![vec![message_start(), block_start(0), block_stop(0), message_delta()]],
            "M[]eE",
        ),
        (
            "A23 a drop instead of message_stop",
            vec![vec![message_start(), block_start(0), block_stop(0), message_delta(), fail(Cut)]],
            "M[]eE",
        ),
        (
            "A27 an unknown event",
            vec![vec![message_start(), unknown, message_delta(), emit(ReplyEvent::MessageStop)]],
            "M?eE",
        ),
        ("A30 always empty", vec![], " retry1  retry2  error NotAStream"),
        (
            "A37 a delta without a start",
            vec![vec![message_start(), text_delta(0)], complete_reply()],
            "M retry1 M[.]eE",
        ),
        (
            "A37 a double stop",
            vec![vec![message_start(), block_start(0), block_stop(0), block_stop(0)]],
            "M[] cut Protocol",
        ),
        (
            "A37 a block inside another",
            vec![vec![block_start(0), block_start(1)], complete_reply()],
            "[ retry1 M[.]eE",
        ),
        ("A9 a bad key", vec![vec![fail(Authentication)]], " error Authentication"),
        ("A12 too long", vec![vec![fail(PromptTooLong)]], " error PromptTooLong"),
    ];
    for (name, attempts, expected) in table {
        assert_eq!(render_steps(&mut call(&fake_model(attempts))).await, expected, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn silence_exceeds_the_timeouts() {
    let pings = |count: usize| (0..count).flat_map(|_| [ModelAction::Wait(100), emit(ReplyEvent::Ping)]);
    let table = [
        ("A31 no answer", vec![ModelAction::Hang], 300),
        ("A31 no bytes after the beginning", vec![message_start(), ModelAction::Hang], 180),
        ("A32 only keep-alives", std::iter::once(message_start()).chain(pings(9)).collect(), 300),
        (
            "a slow start is not a slow event",
            std::iter::once(ModelAction::Wait(290))
                .chain([
                    emit(ReplyEvent::Ping),
                    ModelAction::Wait(150),
                    emit(ReplyEvent::Ping),
                    ModelAction::Hang,
                ])
                .collect(),
            290 + 300,
        ),
        (
            "A33 without end",
            [message_start(), block_start(0)]
                .into_iter()
                .chain((0..40).flat_map(|_| [ModelAction::Wait(100), text_delta(0)]))
                .collect(),
            3600,
        ),
    ];
    for (name, actions, seconds) in table {
        let policy = RetryPolicy { max_retries: 0, ..RetryPolicy::default() };
        let mut call = ModelCall::new(fake_model([actions]), request(), policy, CallTimeouts::default());
        let started_at = Instant::now();
        let rendered = render_steps(&mut call).await;
        assert!(rendered.ends_with("error Stalled"), "{name}: {rendered}");
        assert_eq!(started_at.elapsed().as_secs(), seconds, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn retry_is_announced_before_the_delay() {
    let error = ModelError {
        status: Some(529),
        retry_after: Some(Duration::from_secs(3)),
        ..ModelError::new(ModelErrorKind::Overloaded, "Overloaded")
    };
    let model = fake_model([vec![ModelAction::Emit(Err(error))], complete_reply()]);
    let mut call = call(&model);
    let started_at = Instant::now();
    let Some(Ok(CallStep::Retry(retry))) = call.next().await else { panic!() };
    assert_eq!((retry.attempt, retry.max_retries, retry.status), (1, 10, Some(529)));
    assert_eq!(retry.failure, FailureKind::Overloaded);
    assert_eq!((started_at.elapsed(), model.requests.lock().unwrap().len()), (Duration::ZERO, 1));
    call.next().await;
    assert!(started_at.elapsed() >= Duration::from_secs(3));
}

#[tokio::test(start_paused = true)]
async fn dropping_a_wait_loses_no_step() {
    let mut call = call(&fake_model([
        vec![fail(ModelErrorKind::Server)],
        vec![ModelAction::Wait(9), message_start()],
        complete_reply(),
    ]));
    for _ in 0..1000 {
        if let Ok(rendered) = tokio::time::timeout(Duration::from_millis(90), render_steps(&mut call)).await {
            assert!(rendered.ends_with("[.]eE"), "{rendered}");
            return;
        }
    }
    panic!("the call does not end");
}

#[tokio::test(start_paused = true)]
async fn wait_beyond_the_budget_fails_at_once_with_a_time() {
    let error = ModelError {
        retry_after: Some(Duration::from_secs(3600)),
        ..ModelError::new(ModelErrorKind::RateLimit, "Slow down.")
    };
    let started_at = Instant::now();
    let error = call(&fake_model([vec![ModelAction::Emit(Err(error))]])).next().await.unwrap().unwrap_err();
    assert!(
        error.message.starts_with("Slow down. (The provider asks to wait 60 min 0 s, until "),
        "{}",
        error.message
    );
    assert_eq!(started_at.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn rejected_parts_are_dropped_once_each() {
    let rejection =
        |text: &str| vec![ModelAction::Emit(Err(ModelError::new(ModelErrorKind::InvalidRequest, text)))];
    let effort = "output_config: Extra inputs are not permitted";
    let limit = "max_tokens: 32000 > 8192, which is the maximum";
    let model = fake_model([rejection(effort), rejection(limit), complete_reply()]);
    assert_eq!(render_steps(&mut call(&model)).await, "M[.]eE");
    let requested: Vec<_> = model.requests.lock().unwrap().iter().map(|r| (r.effort, r.max_tokens)).collect();
    assert_eq!(requested, [(Some(Effort::High), 32_000), (None, 32_000), (None, 8192)]);
    assert_eq!(*model.unsupported.lock().unwrap(), [OptionalPart::Effort]);
}

#[tokio::test(start_paused = true)]
async fn rejected_request_is_never_sent_unchanged() {
    let rejection =
        |text: &str| vec![ModelAction::Emit(Err(ModelError::new(ModelErrorKind::InvalidRequest, text)))];
    for (text, requests) in
        [("no such field", 1), ("Unexpected value(s) `interleaved-thinking-2025-05-14`", 2)]
    {
        let model = fake_model([rejection(text), rejection(text), rejection(text)]);
        assert_eq!(render_steps(&mut call(&model)).await, " error InvalidRequest", "{text}");
        assert_eq!(model.requests.lock().unwrap().len(), requests, "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn usage_is_reported_for_every_attempt() {
    let (failed, cut) = (
        vec![message_start(), block_start(0), fail(ModelErrorKind::Cut)],
        vec![message_start(), block_start(0), block_stop(0)],
    );
    let overloaded = || vec![fail(ModelErrorKind::Overloaded)];
    let table = [
        ("one that ends well", vec![complete_reply()], vec![(100, 10, true)]),
        (
            "a void one before it",
            vec![failed, overloaded(), complete_reply()],
            vec![(100, 1, false), (100, 10, true)],
        ),
        ("one that is cut for good", vec![cut], vec![(100, 1, false)]),
        ("one that never began", vec![vec![fail(ModelErrorKind::Authentication)]], vec![]),
    ];
    for (name, attempts, expected) in table {
        let mut call = call(&fake_model(attempts));
        render_steps(&mut call).await;
        let rendered = call
            .attempt_usages()
            .map(|usage| (usage.usage.input_tokens, usage.usage.output_tokens, usage.is_complete()));
        assert_eq!(rendered.collect::<Vec<_>>(), expected, "{name}");
    }
    let mut dropped = call(&fake_model([vec![message_start(), ModelAction::Hang]]));
    dropped.next().await;
    assert!(tokio::time::timeout(Duration::from_secs(1), dropped.next()).await.is_err());
    assert_eq!(dropped.attempt_usages().map(ReportedUsage::is_complete).collect::<Vec<_>>(), [false]);
}
