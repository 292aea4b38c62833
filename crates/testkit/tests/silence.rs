//! A model's server that falls silent, with a real connection: each way of being silent ends in its own time and words.

use std::sync::Arc;
use std::time::Duration;

use whimbrel_models::anthropic::Anthropic;
use whimbrel_models::call::{Call, Step, Timing};
use whimbrel_models::http::{Door, Limits};
use whimbrel_models::openai_chat::OpenAiChat;
use whimbrel_models::retry::Policy;
use whimbrel_models::{Fault, FaultKind, History, Model, Preamble, Request};
use whimbrel_testkit::{MockApi, Reply};
use whimbrel_wire::{Block, Role};

/// Longer than any test lasts.
const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(250);
const TINY: Duration = Duration::from_millis(5);

const PATIENT: Timing = Timing { no_answer: LONG, no_bytes: LONG, no_events: LONG, whole: LONG };

/// The model behind the mock in both dialects.
fn models(api: &MockApi, limits: Limits) -> [Arc<dyn Model>; 2] {
    let door = Door::with_limits(|_| None, limits);
    let chat = OpenAiChat::new(&api.url(), None, door.clone());
    [Arc::new(Anthropic::new(&api.url(), None, door)), Arc::new(chat)]
}

fn request(size: usize) -> Request {
    let mut history = History::new();
    history.push(Role::User, &Block::text("x".repeat(size)));
    Request::new("m", Arc::new(Preamble::new(Vec::new(), Vec::new())), history.ask())
}

/// How a call ends: how often it was repeated, and the fault if there was one.
async fn ending(
    model: Arc<dyn Model>,
    request: Request,
    timing: Timing,
    max_retries: u32,
) -> (u64, Option<Fault>) {
    let policy = Policy { max_retries, base: Duration::ZERO, ..Policy::default() };
    let mut call = Call::new(model, request, policy, timing);
    let mut repeated = 0;
    while let Some(step) = call.next().await {
        match step {
            Ok(Step::Delta(_)) => {}
            Ok(Step::Retry(retry)) => repeated = retry.attempt,
            Ok(Step::Cut(fault)) | Err(fault) => return (repeated, Some(fault)),
        }
    }
    (repeated, None)
}

#[tokio::test]
async fn every_way_of_being_silent_ends_in_its_own_words() {
    let said = || Reply::text("A sentence that never comes to its end.").chunk(1);
    let table = [
        (
            "A31 no answer at all",
            said().hold("never"),
            Timing { no_answer: SHORT, ..PATIENT },
            "did not answer within",
        ),
        (
            "A31 nothing after the head",
            said().stall_after(0).always(),
            Timing { no_bytes: SHORT, ..PATIENT },
            "Nothing came from the model",
        ),
        (
            "A31 nothing in the middle",
            said().stall_after(4).always(),
            Timing { no_bytes: SHORT, ..PATIENT },
            "Nothing came from the model",
        ),
        (
            "A32 only signs of life",
            said().pings_after(3, TINY).always(),
            Timing { no_bytes: SHORT * 20, no_events: SHORT, ..PATIENT },
            "Only signs of life",
        ),
        (
            "A33 byte by byte, no event complete",
            said().drip_after(3, Duration::from_millis(20)).always(),
            Timing { no_bytes: SHORT * 20, no_events: SHORT, ..PATIENT },
            "Only signs of life",
        ),
        (
            "A33 byte by byte, for too long",
            said().drip_after(0, TINY).always(),
            Timing { no_bytes: SHORT * 20, no_events: SHORT * 20, whole: SHORT * 2, ..PATIENT },
            "was not complete after",
        ),
    ];
    for (name, reply, timing, words) in table {
        let api = MockApi::start([reply.clone(), reply]).await.unwrap();
        for (number, model) in models(&api, Limits::default()).into_iter().enumerate() {
            let (_, fault) = ending(model, request(10), timing, 0).await;
            let fault = fault.unwrap_or_else(|| panic!("{name}: the reply got through"));
            assert_eq!(fault.kind, FaultKind::Stalled, "{name}: {fault}");
            assert!(fault.message.contains(words), "{name}: {fault}");
            // Whoever is given up is hung up on.
            api.wait_for_deserted(number + 1).await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_reply_that_stalled_is_asked_for_again() {
    let stalled = Reply::text("Here I am.").stall_after(2);
    let pings = Reply::text("Here I am.").pings_after(2, TINY);
    for (name, reply) in [("A31", stalled), ("A32", pings)] {
        let api = MockApi::start([reply]).await.unwrap();
        let [model, _] = models(&api, Limits::default());
        let timing = Timing { no_bytes: SHORT * 4, no_events: SHORT * 4, ..PATIENT };
        assert_eq!(ending(model, request(10), timing, 1).await, (1, None), "{name}");
        assert_eq!((api.asked().len(), api.script_is_over()), (2, true), "{name}");
    }
}

#[tokio::test]
async fn a_slow_reply_that_keeps_coming_is_heard_to_its_end() {
    // As a whole it takes longer than silence may last.
    let reply = Reply::text("Slowly, but surely, letter by letter, it comes.").chunk(1).pace(TINY * 6);
    let api = MockApi::start([reply.clone(), reply]).await.unwrap();
    let timing = Timing { no_bytes: SHORT * 4, no_events: SHORT * 4, ..PATIENT };
    for model in models(&api, Limits::default()) {
        assert_eq!(ending(model, request(10), timing, 0).await, (0, None));
    }
}

#[tokio::test]
async fn a_server_that_reads_nothing_is_given_up() {
    let api = MockApi::deaf().await.unwrap();
    let limits = Limits { write: SHORT, ..Limits::default() };
    // More than the buffers between us take.
    let request = request(8 << 20);
    for model in models(&api, limits) {
        let (_, fault) = ending(model, request.clone(), PATIENT, 0).await;
        let fault = fault.unwrap();
        assert_eq!(fault.kind, FaultKind::Stalled, "A40: {fault}");
        assert!(fault.message.contains("does not read the request"), "{fault}");
    }
    assert!(api.requests().is_empty());
}
