//! Stalled model servers, with real connections: each kind of stall has its own timeout and error.

use std::sync::Arc;
use std::time::Duration;

use whimbrel_models::anthropic::Anthropic;
use whimbrel_models::http::{HttpClient, HttpClientLimits};
use whimbrel_models::model_call::{CallStep, CallTimeouts, ModelCall};
use whimbrel_models::openai_chat::OpenAiChat;
use whimbrel_models::retry::RetryPolicy;
use whimbrel_models::{History, Model, ModelError, ModelErrorKind, Request, RequestPrefix};
use whimbrel_testkit::{MockApi, Reply};
use whimbrel_wire::{Block, Role};

/// Longer than any test runs.
const LONG_TIMEOUT: Duration = Duration::from_secs(60);
const SHORT_TIMEOUT: Duration = Duration::from_millis(250);
const TINY_INTERVAL: Duration = Duration::from_millis(5);

const LONG_TIMING: CallTimeouts = CallTimeouts {
    response_start: LONG_TIMEOUT,
    bytes: LONG_TIMEOUT,
    events: LONG_TIMEOUT,
    total: LONG_TIMEOUT,
};

/// Clients of the mock for both API formats.
fn models(api: &MockApi, limits: HttpClientLimits) -> [Arc<dyn Model>; 2] {
    let http = HttpClient::with_limits(|_| None, limits);
    let chat = OpenAiChat::new(&api.url(), None, http.clone());
    [Arc::new(Anthropic::new(&api.url(), None, http)), Arc::new(chat)]
}

fn request(size: usize) -> Request {
    let mut history = History::new();
    history.push(Role::User, &Block::text("x".repeat(size)));
    Request::new("m", Arc::new(RequestPrefix::new(Vec::new(), Vec::new())), history.snapshot())
}

/// Runs a call to its end; returns the number of retries and the error, if any.
async fn run_call(
    model: Arc<dyn Model>,
    request: Request,
    timeouts: CallTimeouts,
    max_retries: u32,
) -> (u64, Option<ModelError>) {
    let policy = RetryPolicy { max_retries, initial_delay: Duration::ZERO, ..RetryPolicy::default() };
    let mut call = ModelCall::new(model, request, policy, timeouts);
    let mut retries = 0;
    while let Some(step) = call.next().await {
        match step {
            Ok(CallStep::Item(_)) => {}
            Ok(CallStep::Retry(retry)) => retries = retry.attempt,
            Ok(CallStep::Truncated(error)) | Err(error) => return (retries, Some(error)),
        }
    }
    (retries, None)
}

#[tokio::test]
async fn each_kind_of_stall_has_its_own_error() {
    let reply = || Reply::text("A sentence that never comes to its end.").chunk_size(1);
    let table = [
        (
            "A31 no answer at all",
            reply().hold_until("never"),
            CallTimeouts { response_start: SHORT_TIMEOUT, ..LONG_TIMING },
            "did not answer within",
        ),
        (
            "A31 nothing after the head",
            reply().stall_after(0).always(),
            CallTimeouts { bytes: SHORT_TIMEOUT, ..LONG_TIMING },
            "The model sent no data",
        ),
        (
            "A31 nothing in the middle",
            reply().stall_after(4).always(),
            CallTimeouts { bytes: SHORT_TIMEOUT, ..LONG_TIMING },
            "The model sent no data",
        ),
        (
            "A32 only keep-alives",
            reply().pings_after(3, TINY_INTERVAL).always(),
            CallTimeouts { bytes: SHORT_TIMEOUT * 20, events: SHORT_TIMEOUT, ..LONG_TIMING },
            "The model sent only keep-alives",
        ),
        (
            "A33 byte by byte, no event complete",
            reply().drip_after(3, Duration::from_millis(20)).always(),
            CallTimeouts { bytes: SHORT_TIMEOUT * 20, events: SHORT_TIMEOUT, ..LONG_TIMING },
            "The model sent only keep-alives",
        ),
        (
            "A33 byte by byte, for too long",
            reply().drip_after(0, TINY_INTERVAL).always(),
            CallTimeouts {
                bytes: SHORT_TIMEOUT * 20,
                events: SHORT_TIMEOUT * 20,
                total: SHORT_TIMEOUT * 2,
                ..LONG_TIMING
            },
            "was not complete after",
        ),
    ];
    for (name, reply, timeouts, part) in table {
        let api = MockApi::start([reply.clone(), reply]).await.unwrap();
        for (number, model) in models(&api, HttpClientLimits::default()).into_iter().enumerate() {
            let (_, error) = run_call(model, request(10), timeouts, 0).await;
            let error = error.unwrap_or_else(|| panic!("{name}: the reply got through"));
            assert_eq!(error.kind, ModelErrorKind::Stalled, "{name}: {error}");
            assert!(error.message.contains(part), "{name}: {error}");
            // The client disconnects when it gives up.
            api.wait_for_disconnects(number + 1).await.unwrap();
        }
    }
}

#[tokio::test]
async fn stalled_reply_is_retried() {
    let stalled = Reply::text("Here I am.").stall_after(2);
    let pings = Reply::text("Here I am.").pings_after(2, TINY_INTERVAL);
    for (name, reply) in [("A31", stalled), ("A32", pings)] {
        let api = MockApi::start([reply]).await.unwrap();
        let [model, _] = models(&api, HttpClientLimits::default());
        let timeouts = CallTimeouts { bytes: SHORT_TIMEOUT * 4, events: SHORT_TIMEOUT * 4, ..LONG_TIMING };
        assert_eq!(run_call(model, request(10), timeouts, 1).await, (1, None), "{name}");
        assert_eq!((api.model_requests().len(), api.is_script_exhausted()), (2, true), "{name}");
    }
}

#[tokio::test]
async fn slow_reply_is_received_completely() {
    // The whole reply takes longer than a stall may last.
    let reply = Reply::text("Slowly, but surely, letter by letter, it comes.")
        .chunk_size(1)
        .event_interval(TINY_INTERVAL * 6);
    let api = MockApi::start([reply.clone(), reply]).await.unwrap();
    let timeouts = CallTimeouts { bytes: SHORT_TIMEOUT * 4, events: SHORT_TIMEOUT * 4, ..LONG_TIMING };
    for model in models(&api, HttpClientLimits::default()) {
        assert_eq!(run_call(model, request(10), timeouts, 0).await, (0, None));
    }
}

#[tokio::test]
async fn server_that_never_reads_times_out() {
    let api = MockApi::start_never_reading().await.unwrap();
    let limits = HttpClientLimits { write_timeout: SHORT_TIMEOUT, ..HttpClientLimits::default() };
    // More than the socket buffers hold.
    let request = request(8 << 20);
    for model in models(&api, limits) {
        let (_, error) = run_call(model, request.clone(), LONG_TIMING, 0).await;
        let error = error.unwrap();
        assert_eq!(error.kind, ModelErrorKind::Stalled, "A40: {error}");
        assert!(error.message.contains("does not read the request"), "{error}");
    }
    assert!(api.requests().is_empty());
}
