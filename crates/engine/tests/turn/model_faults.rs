//! The engine under injected faults: each fault is recognized and handled.

use std::time::Duration;

use serde_json::{Value, json};
use whimbrel_testkit::{Host, ModelRequest, Reply, Script};
use whimbrel_wire::control::Interrupt;
use whimbrel_wire::options::{Effort, Options};
use whimbrel_wire::permission::PermissionMode;
use whimbrel_wire::system::SystemEvent;
use whimbrel_wire::{Frame, StopReason};

/// Returns the number of model requests, the number of announced retries, and the result text.
async fn run_script(script: impl Into<Script>) -> (usize, usize, String) {
    let mut host = Host::with_script(script).env("CLAUDE_CODE_MAX_RETRIES", "2").start().await.unwrap();
    let result = host.run("Hello?").await.unwrap();
    let is_retry = |frame: &&Frame| match frame {
        Frame::System(system) => matches!(system.event, SystemEvent::ApiRetry(_)),
        _ => false,
    };
    let retries = host.frames().filter(is_retry).count();
    (host.model_requests().len(), retries, result.result.unwrap_or_default())
}

#[tokio::test]
async fn transient_faults_are_retried() {
    let reply = || Reply::text("At last.");
    let table = [
        ("overloaded", reply().status(529).retry_after("0")),
        ("cut before a block is complete", reply().cut_after(3)),
        ("an error before a block", reply().error_event(1, "overloaded_error", "full")),
        ("no answer at all", reply().hang_up()),
        ("an empty body", reply().empty_body()),
        ("a page of HTML", reply().html()),
        ("garbage between events", reply().garbage_event()),
        ("invalid stream", reply().raw_body("data: {\n\n")),
    ];
    for (name, reply) in table {
        let (requests, retries, text) = run_script([reply]).await;
        assert_eq!((requests, text.as_str()), (2, "At last."), "{name}");
        assert_eq!(retries, 1, "{name}");
    }
}

#[tokio::test]
async fn unknown_event_is_ignored() {
    let reply = Reply::text("Fine.").extra_event(1, "brand_new", r#"{"type":"brand_new"}"#);
    assert_eq!(run_script([reply]).await, (1, 0, "Fine.".into()));
}

#[tokio::test]
async fn permanent_fault_ends_in_an_error() {
    let (requests, retries, text) = run_script([Reply::empty().status(529).retry_after("0").always()]).await;
    assert_eq!((requests, retries), (3, 2));
    assert!(text.starts_with("API Error: 529"), "{text}");
}

#[tokio::test]
async fn final_errors_are_not_retried() {
    for status in [400, 403, 404] {
        assert_eq!(run_script([Reply::empty().status(status)]).await.0, 1, "{status}");
    }
    let no_retry = Reply::empty().status(500).header("x-should-retry", "false");
    assert_eq!(run_script([no_retry]).await.0, 1);
}

#[tokio::test]
async fn chat_server_gets_no_parameters_it_rejected() {
    let table = [
        ("openai:m", "stream_options", 422, "Unrecognized request argument supplied: stream_options"),
        (
            "openai:deployment",
            "max_tokens",
            400,
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        ),
        (
            "openai:gpt-5",
            "max_completion_tokens",
            400,
            "Unrecognized request argument supplied: max_completion_tokens",
        ),
        ("openai:gpt-5", "reasoning_effort", 400, "Unsupported parameter: 'reasoning_effort'"),
    ];
    for (model, field, status, text) in table {
        let script = Script::from_fn(move |request| match request.body.get(field) {
            Some(_) => Reply::empty().status(status).error("invalid_request_error", text),
            None => Reply::text("Fine."),
        });
        let host = Host::with_script(script).configure(|options| {
            options.model = Some(model.into());
            options.effort = Some(Effort::Low);
        });
        let mut host = host.start().await.unwrap();
        for _ in 0..2 {
            assert_eq!(host.run("Hello?").await.unwrap().result.as_deref(), Some("Fine."), "{field}");
        }
        let requests = host.model_requests();
        let was_sent: Vec<bool> = requests.iter().map(|request| request.body.get(field).is_some()).collect();
        assert_eq!(was_sent, [true, false, false], "{field}");
        let limits = |request: &ModelRequest| {
            ["max_tokens", "max_completion_tokens"]
                .iter()
                .filter(|name| request.body.get(name).is_some())
                .count()
        };
        assert!(requests.iter().all(|request| limits(request) == 1), "{field}: one limit is always sent");
    }
}

#[tokio::test]
async fn chat_server_gets_no_reasoning_it_rejected() {
    let error_text = "messages.2.reasoning_content: Extra inputs are not permitted";
    let script = Script::from_fn(move |request| {
        let has_reasoning = request.messages().iter().any(|message| !message["reasoning_content"].is_null());
        let results = request.messages().iter().any(|message| message["role"] == "tool");
        match (has_reasoning, results) {
            (true, _) => Reply::empty().status(422).error("invalid_request_error", error_text),
            (false, true) => Reply::text("Seen."),
            (false, false) => Reply::tool("Read", json!({"file_path": "a.txt"})).with_thinking("Let me see."),
        }
    });
    let host = Host::with_script(script).configure(|options| options.model = Some("openai:strict".into()));
    let mut host = host.file("a.txt", "x").start().await.unwrap();
    assert_eq!(host.run("Read.").await.unwrap().result.as_deref(), Some("Seen."));
    assert_eq!(host.model_requests().len(), 3);
}

#[tokio::test]
async fn provider_timeouts_can_be_configured() {
    let interval = Duration::from_millis(20);
    let table = [
        ("API_TIMEOUT_MS", Reply::text("late").hold_until("never"), "did not answer"),
        ("WHIMBREL_NO_BYTES_TIMEOUT_MS", Reply::text("late").stall_after(1), "sent no data"),
        (
            "WHIMBREL_NO_EVENTS_TIMEOUT_MS",
            Reply::text("late").pings_after(1, interval),
            "The model sent only keep-alives",
        ),
        ("WHIMBREL_REPLY_TIMEOUT_MS", Reply::text("late").pings_after(1, interval), "not complete after"),
    ];
    for (name, reply, expected) in table {
        let host = Host::with_script([reply]).env(name, "200").env("CLAUDE_CODE_MAX_RETRIES", "0");
        let mut host = host.start().await.unwrap();
        let text = host.run("Hello?").await.unwrap().result.unwrap_or_default();
        assert!(text.contains(expected), "{name}: {text}");
    }
}

#[tokio::test]
async fn exhausted_script_is_reported() {
    let (requests, _, text) = run_script(Script::from([])).await;
    assert_eq!(requests, 1);
    assert!(text.contains("The script has only 0 replies"), "{text}");
}

#[tokio::test]
async fn invalid_json_input_becomes_a_tool_error() {
    let script = [Reply::tool("Bash", json!({})).raw_tool_input("{bad"), Reply::text("Sorry.")];
    let mut host = Host::with_script(script).start().await.unwrap();
    assert_eq!(host.run("Go.").await.unwrap().result.as_deref(), Some("Sorry."));
    assert!(
        host.model_requests()[1].last_text().contains("{bad"),
        "{}",
        host.model_requests()[1].last_text()
    );
}

#[tokio::test]
async fn delay_and_event_interval_are_kept() {
    let reply = Reply::text("slowly")
        .chunk_size(1)
        .delay(Duration::from_millis(30))
        .event_interval(Duration::from_millis(5));
    let mut host = Host::with_script([reply]).start().await.unwrap();
    let started_at = tokio::time::Instant::now();
    host.run("Hello?").await.unwrap();
    assert!(started_at.elapsed() >= Duration::from_millis(30 + 11 * 5));
}

/// A call that appends to a file each time it runs, streamed in three events: start, input, stop.
fn traced_call() -> Reply {
    Reply::tool("Bash", json!({"command": "echo made >> trace"})).chunk_size(1000)
}

/// Runs a script with one such call; returns how often it ran and the last text sent to the model.
async fn run_traced(script: impl Into<Script>) -> (usize, String) {
    let options = Options { permission_mode: Some(PermissionMode::BypassPermissions), ..Options::default() };
    let mut host =
        Host::with_script(script).options(options).env("CLAUDE_CODE_MAX_RETRIES", "2").start().await.unwrap();
    assert!(!host.run("Go.").await.unwrap().is_error);
    let files = host.dirs().files().unwrap();
    let calls = files.get("trace").map_or(0, |trace| trace.iter().filter(|byte| **byte == b'\n').count());
    (calls, host.model_requests().last().unwrap().last_text())
}

#[tokio::test]
async fn tool_call_runs_once_wherever_the_connection_breaks() {
    let done = || Reply::text("Done.");
    // The partial reply is void and is requested again.
    for (name, events) in [("before the call", 1), ("A21 in the call", 2), ("A21 after its input", 3)] {
        let (calls, _) = run_traced([traced_call().cut_after(events), done()]).await;
        assert_eq!(calls, 1, "{name}");
    }
    // The call is complete; the model gets its result next.
    let rows = [
        ("A22 after the call", traced_call().cut_after(4)),
        ("A23 after the reason to stop", traced_call().cut_after(5)),
        ("A19 an error after the call", traced_call().error_event(4, "overloaded_error", "full")),
    ];
    for (name, reply) in rows {
        let (calls, _) = run_traced([reply.skip_after_faults(), done()]).await;
        assert_eq!(calls, 1, "{name}");
    }
}

#[tokio::test]
async fn tool_input_must_be_a_json_object() {
    for input in ["[1]", "7", "\"echo\"", "null"] {
        let (calls, text) = run_traced([traced_call().raw_tool_input(input), Reply::text("Sorry.")]).await;
        assert_eq!(calls, 0, "A26 {input}");
        assert!(text.contains("JSON object") && text.contains(input), "A26 {input}: {text}");
    }
}

#[tokio::test]
async fn stop_reason_is_passed_to_the_result() {
    let stopped = |reason: StopReason| Reply::text("So far.").stop_reason(reason);
    let rows = [
        ("refusal", vec![stopped(StopReason::Refusal)], "refusal"),
        ("pause_turn continues", vec![stopped(StopReason::PauseTurn), Reply::text("Done.")], "end_turn"),
        ("unknown reason", vec![stopped(StopReason::Other("tide_turned".into()))], "tide_turned"),
    ];
    for (name, script, expected) in rows {
        let request_count = script.len();
        let mut host = Host::with_script(script).start().await.unwrap();
        let result = serde_json::to_value(host.run("Go.").await.unwrap()).unwrap();
        assert_eq!(result["stop_reason"], expected, "A38 {name}: {result}");
        assert_eq!(host.model_requests().len(), request_count, "A38 {name}");
    }
}

#[tokio::test]
async fn endless_pauses_end_in_an_error() {
    let paused: Vec<Reply> =
        (0..50).map(|_| Reply::text("So far.").stop_reason(StopReason::PauseTurn)).collect();
    let mut host = Host::with_script(paused).start().await.unwrap();
    let result = host.run("Go.").await.unwrap();
    let text = result.result.unwrap();
    assert!(result.is_error && text.contains("paused") && !text.contains("output limit"), "A38 {text}");
}

/// The `api_retry` frames.
fn retry_frames(host: &Host) -> Vec<&Value> {
    let frames = host.received().iter().map(|received| &received.json);
    frames.filter(|frame| frame["subtype"] == "api_retry").collect()
}

#[tokio::test]
async fn overload_is_retried_without_limit_if_configured() {
    let overloaded = || Reply::text("At last.").status(529).header("retry-after-ms", "2").times(15);
    for (minutes, expected, text) in [("60", 15, "At last."), ("0", 10, "API Error: 529")] {
        let mut builder = Host::with_script([overloaded()]);
        if minutes != "0" {
            builder = builder.env("WHIMBREL_OVERLOAD_TIMEOUT_MINUTES", minutes);
        }
        let mut host = builder.start().await.unwrap();
        let result = host.run("Hello?").await.unwrap().result.unwrap();
        assert!(result.starts_with(text), "{minutes}: {result}");
        let retries = retry_frames(&host);
        assert_eq!(retries.len(), expected, "{minutes}");
        for (number, notice) in retries.into_iter().enumerate() {
            assert_eq!(notice["attempt"], json!(number + 1));
            assert_eq!((&notice["error_status"], &notice["error"]), (&json!(529), &json!("overloaded")));
        }
    }
}

#[tokio::test]
async fn long_retry_wait_is_announced_and_interruptible() {
    let mut host = Host::with_script([Reply::empty().status(429).retry_after("1800").always()])
        .env("WHIMBREL_OVERLOAD_TIMEOUT_MINUTES", "120")
        .start()
        .await
        .unwrap();
    host.send_prompt("Hello?").await.unwrap();
    let notice = host.next_matching(&json!({"subtype": "api_retry", "error": "rate_limit"})).await.unwrap();
    let delay = notice["retry_delay_ms"].as_u64().unwrap();
    assert!((1_800_000..1_801_000).contains(&delay), "{delay}");
    host.send_request(Interrupt::default()).await.unwrap();
    assert!(host.next_result().await.unwrap().is_error);
    assert_eq!(host.model_requests().len(), 1);
}
