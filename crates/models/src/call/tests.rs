//! Calls against models that are made of lists.

use std::collections::VecDeque;
use std::sync::Mutex;

use futures::stream::{self, BoxStream, StreamExt};
use whimbrel_wire::{Block, StopReason, Usage};

use super::*;
use crate::correct::Part;
use crate::event::{BlockDelta, Event};
use crate::figures::Figures;
use crate::history::History;
use crate::request::{Effort, Preamble};

/// What a model of this kind does next: say something, or wait.
enum Act {
    Say(Result<Event, Fault>),
    Wait(u64),
    WaitForEver,
}

/// Each attempt plays the next list.
struct Stage {
    plays: Mutex<VecDeque<Vec<Act>>>,
    asked: Mutex<Vec<Request>>,
    forgone: Mutex<Vec<Part>>,
}

impl Model for Stage {
    fn ask(&self, request: Arc<Request>) -> BoxStream<'static, Result<Delta, Fault>> {
        self.asked.lock().unwrap().push((*request).clone());
        let play = self.plays.lock().unwrap().pop_front().unwrap_or_default();
        stream::iter(play)
            .filter_map(|act| async {
                match act {
                    Act::Say(said) => Some(said.map(|event| Delta { event, raw: None })),
                    Act::Wait(seconds) => {
                        tokio::time::sleep(Duration::from_secs(seconds)).await;
                        None
                    }
                    Act::WaitForEver => std::future::pending().await,
                }
            })
            .boxed()
    }

    fn forgo(&self, _: &str, part: &Part) {
        self.forgone.lock().unwrap().push(part.clone());
    }
}

fn stage(plays: impl IntoIterator<Item = Vec<Act>>) -> Arc<Stage> {
    let plays = Mutex::new(plays.into_iter().collect());
    Arc::new(Stage { plays, asked: Mutex::default(), forgone: Mutex::default() })
}

fn request() -> Request {
    Request {
        effort: Some(Effort::High),
        ..Request::new("m", Arc::new(Preamble::new(vec![], vec![])), History::new().ask())
    }
}

fn call(stage: &Arc<Stage>) -> Call {
    Call::new(stage.clone(), request(), Policy::default(), Timing::default())
}

fn tokens(input_tokens: u64, output_tokens: u64) -> Figures {
    Usage { input_tokens, output_tokens, ..Usage::default() }.into()
}

fn opening() -> Act {
    say(Event::MessageStart { id: "m".into(), model: "x".into(), usage: tokens(100, 1) })
}

fn say(event: Event) -> Act {
    Act::Say(Ok(event))
}

fn start(index: usize) -> Act {
    say(Event::BlockStart { index, block: Block::text("") })
}

fn text(index: usize) -> Act {
    say(Event::BlockDelta { index, delta: BlockDelta::Text { text: "a".into() } })
}

fn stop(index: usize) -> Act {
    say(Event::BlockStop { index })
}

fn end() -> Act {
    say(Event::MessageDelta {
        stop_reason: Some(StopReason::EndTurn),
        stop_sequence: None,
        usage: tokens(0, 10),
    })
}

fn fail(kind: FaultKind) -> Act {
    Act::Say(Err(Fault::new(kind, "said")))
}

fn whole() -> Vec<Act> {
    vec![opening(), start(0), text(0), stop(0), end(), say(Event::MessageStop)]
}

/// The steps in short: one letter per event, the rest in words.
async fn steps(call: &mut Call) -> String {
    let mut told = String::new();
    while let Some(step) = call.next().await {
        told += &match step {
            Ok(Step::Delta(delta)) => match delta.event {
                Event::Accepted { .. } => "a".to_owned(),
                Event::MessageStart { .. } => "M".to_owned(),
                Event::BlockStart { .. } => "[".to_owned(),
                Event::BlockDelta { .. } => ".".to_owned(),
                Event::BlockStop { .. } => "]".to_owned(),
                Event::MessageDelta { .. } => "e".to_owned(),
                Event::MessageStop => "E".to_owned(),
                Event::Ping => "p".to_owned(),
                Event::Unknown => "?".to_owned(),
            },
            Ok(Step::Retry(retry)) => format!(" retry{} ", retry.attempt),
            Ok(Step::Cut(fault)) => format!(" cut {:?}", fault.kind),
            Err(fault) => format!(" fault {:?}", fault.kind),
        };
    }
    told
}

#[tokio::test(start_paused = true)]
async fn what_can_go_wrong_goes_as_it_should() {
    use FaultKind::*;
    let unknown = say(Event::Unknown);
    let table = [
        ("a good reply", vec![whole()], "M[.]eE"),
        (
            "A5 two overloads",
            vec![vec![fail(Overloaded)], vec![fail(Overloaded)], whole()],
            " retry1  retry2 M[.]eE",
        ),
        ("A18 an error before any block", vec![vec![opening(), fail(Server)], whole()], "M retry1 M[.]eE"),
        (
            "A19 an error after a block",
            vec![vec![opening(), start(0), text(0), stop(0), fail(Server)]],
            "M[.] cut Server",
        ),
        (
            "A20 a drop in a block",
            vec![vec![opening(), start(0), text(0), fail(Cut)], whole()],
            "M[. retry1 M[.]eE",
        ),
        ("a plain end in a block", vec![vec![opening(), start(0), text(0)], whole()], "M[. retry1 M[.]eE"),
        ("A23 no farewell", vec![vec![opening(), start(0), stop(0), end()]], "M[]eE"),
        (
            "A23 a drop instead of a farewell",
            vec![vec![opening(), start(0), stop(0), end(), fail(Cut)]],
            "M[]eE",
        ),
        ("A27 an unknown event", vec![vec![opening(), unknown, end(), say(Event::MessageStop)]], "M?eE"),
        ("A30 always empty", vec![], " retry1  retry2  fault NotAStream"),
        ("A37 a delta without a start", vec![vec![opening(), text(0)], whole()], "M retry1 M[.]eE"),
        ("A37 a double stop", vec![vec![opening(), start(0), stop(0), stop(0)]], "M[] cut Protocol"),
        ("A37 a block inside another", vec![vec![start(0), start(1)], whole()], "[ retry1 M[.]eE"),
        ("A9 a bad key", vec![vec![fail(Authentication)]], " fault Authentication"),
        ("A12 too long", vec![vec![fail(PromptTooLong)]], " fault PromptTooLong"),
    ];
    for (name, plays, expected) in table {
        assert_eq!(steps(&mut call(&stage(plays))).await, expected, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn silence_is_noticed() {
    let pings = |count: usize| (0..count).flat_map(|_| [Act::Wait(100), say(Event::Ping)]);
    let table = [
        ("A31 no answer", vec![Act::WaitForEver], 300),
        ("A31 no bytes after the beginning", vec![opening(), Act::WaitForEver], 180),
        ("A32 only signs of life", std::iter::once(opening()).chain(pings(9)).collect(), 300),
        (
            "a slow beginning is no slow event",
            std::iter::once(Act::Wait(290))
                .chain([say(Event::Ping), Act::Wait(150), say(Event::Ping), Act::WaitForEver])
                .collect(),
            290 + 300,
        ),
        (
            "A33 without end",
            [opening(), start(0)]
                .into_iter()
                .chain((0..40).flat_map(|_| [Act::Wait(100), text(0)]))
                .collect(),
            3600,
        ),
    ];
    for (name, play, seconds) in table {
        let policy = Policy { max_retries: 0, ..Policy::default() };
        let mut call = Call::new(stage([play]), request(), policy, Timing::default());
        let began = Instant::now();
        let told = steps(&mut call).await;
        assert!(told.ends_with("fault Stalled"), "{name}: {told}");
        assert_eq!(began.elapsed().as_secs(), seconds, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_repetition_is_announced_before_the_wait() {
    let fault = Fault {
        status: Some(529),
        retry_after: Some(Duration::from_secs(3)),
        ..Fault::new(FaultKind::Overloaded, "Overloaded")
    };
    let stage = stage([vec![Act::Say(Err(fault))], whole()]);
    let mut call = call(&stage);
    let began = Instant::now();
    let Some(Ok(Step::Retry(retry))) = call.next().await else { panic!() };
    assert_eq!((retry.attempt, retry.max_retries, retry.status), (1, 10, Some(529)));
    assert_eq!(retry.failure, FailureKind::Overloaded);
    assert_eq!((began.elapsed(), stage.asked.lock().unwrap().len()), (Duration::ZERO, 1));
    call.next().await;
    assert!(began.elapsed() >= Duration::from_secs(3));
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_is_dropped_is_not_lost() {
    let mut call = call(&stage([vec![fail(FaultKind::Server)], vec![Act::Wait(9), opening()], whole()]));
    for _ in 0..1000 {
        if let Ok(told) = tokio::time::timeout(Duration::from_millis(90), steps(&mut call)).await {
            assert!(told.ends_with("[.]eE"), "{told}");
            return;
        }
    }
    panic!("the call does not end");
}

#[tokio::test(start_paused = true)]
async fn a_wait_beyond_the_budget_fails_at_once_and_names_the_time() {
    let fault = Fault {
        retry_after: Some(Duration::from_secs(3600)),
        ..Fault::new(FaultKind::RateLimit, "Slow down.")
    };
    let began = Instant::now();
    let fault = call(&stage([vec![Act::Say(Err(fault))]])).next().await.unwrap().unwrap_err();
    assert!(
        fault.message.starts_with("Slow down. (The provider asks to wait 60 min 0 s, until "),
        "{}",
        fault.message
    );
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_refused_part_is_left_out_once() {
    let refusal = |text: &str| vec![Act::Say(Err(Fault::new(FaultKind::InvalidRequest, text)))];
    let effort = "output_config: Extra inputs are not permitted";
    let limit = "max_tokens: 32000 > 8192, which is the maximum";
    let stage = stage([refusal(effort), refusal(limit), whole()]);
    assert_eq!(steps(&mut call(&stage)).await, "M[.]eE");
    let asked: Vec<_> = stage.asked.lock().unwrap().iter().map(|r| (r.effort, r.max_tokens)).collect();
    assert_eq!(asked, [(Some(Effort::High), 32_000), (None, 32_000), (None, 8192)]);
    assert_eq!(*stage.forgone.lock().unwrap(), [Part::Effort]);
}

#[tokio::test(start_paused = true)]
async fn no_request_is_sent_twice_after_a_refusal() {
    let refusal = |text: &str| vec![Act::Say(Err(Fault::new(FaultKind::InvalidRequest, text)))];
    for (text, requests) in
        [("no such field", 1), ("Unexpected value(s) `interleaved-thinking-2025-05-14`", 2)]
    {
        let stage = stage([refusal(text), refusal(text), refusal(text)]);
        assert_eq!(steps(&mut call(&stage)).await, " fault InvalidRequest", "{text}");
        assert_eq!(stage.asked.lock().unwrap().len(), requests, "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn every_attempt_is_on_the_bill_whatever_became_of_it() {
    let (void, cut) = (vec![opening(), start(0), fail(FaultKind::Cut)], vec![opening(), start(0), stop(0)]);
    let refused = || vec![fail(FaultKind::Overloaded)];
    let table = [
        ("one that ends well", vec![whole()], vec![(100, 10, true)]),
        ("a void one before it", vec![void, refused(), whole()], vec![(100, 1, false), (100, 10, true)]),
        ("one that is cut for good", vec![cut], vec![(100, 1, false)]),
        ("one that never began", vec![vec![fail(FaultKind::Authentication)]], vec![]),
    ];
    for (name, plays, expected) in table {
        let mut call = call(&stage(plays));
        steps(&mut call).await;
        let told =
            call.bills().map(|bill| (bill.usage.input_tokens, bill.usage.output_tokens, bill.are_known()));
        assert_eq!(told.collect::<Vec<_>>(), expected, "{name}");
    }
    let mut dropped = call(&stage([vec![opening(), Act::WaitForEver]]));
    dropped.next().await;
    assert!(tokio::time::timeout(Duration::from_secs(1), dropped.next()).await.is_err());
    assert_eq!(dropped.bills().map(Figures::are_known).collect::<Vec<_>>(), [false]);
}
