//! Cost of failed replies: the result contains every attempt that the provider billed.

use serde_json::json;
use whimbrel_testkit::{Host, Reply, Script};
use whimbrel_wire::control::Interrupt;
use whimbrel_wire::message::TurnResult;
use whimbrel_wire::options::Options;
use whimbrel_wire::{Frame, StopReason};

const MODEL: &str = "claude-opus-4-5-20251101";

/// Cost basis after a reply that ended before it reported its output tokens.
const UNKNOWN_COST: Option<&str> = Some("unknown");

/// Input tokens, output tokens and cost basis.
fn usage_and_cost_basis(result: &TurnResult) -> (u64, u64, Option<&str>) {
    let model = &result.model_usage[MODEL];
    assert_eq!(
        (model.input_tokens, model.output_tokens),
        (result.usage.input_tokens, result.usage.output_tokens)
    );
    (model.input_tokens, model.output_tokens, model.cost_basis.as_deref())
}

async fn run_once(script: impl Into<Script>) -> TurnResult {
    Host::with_script(script).start().await.unwrap().run("Hello?").await.unwrap()
}

#[tokio::test]
async fn failed_attempts_are_billed() {
    let reply = || Reply::text("At last.").chunk_size(2);
    let table = [
        ("complete reply", reply(), (100, 10, None)),
        ("after a cut attempt", reply().cut_after(3), (200, 11, UNKNOWN_COST)),
        ("two of them", reply().cut_after(1).cut_after(4), (300, 12, UNKNOWN_COST)),
        ("a rejected attempt is free", reply().status(529).retry_after("0"), (100, 10, None)),
        (
            "an error in the stream",
            reply().error_event(1, "overloaded_error", "full"),
            (200, 11, UNKNOWN_COST),
        ),
    ];
    for (name, reply, (input, output, basis)) in table {
        let result = run_once([reply]).await;
        assert_eq!(usage_and_cost_basis(&result), (input, output, basis), "{name}");
        let dollars = (input as f64 * 5.0 + output as f64 * 25.0) / 1e6;
        assert!((result.total_cost_usd - dollars).abs() < 1e-12, "{name}: {}", result.total_cost_usd);
    }
    // One block was complete, so the partial reply is kept and the model continues.
    let result = run_once([
        Reply::text("One.").and_text("Two.").cut_after(4).skip_after_faults(),
        Reply::text("Three."),
    ])
    .await;
    assert_eq!(usage_and_cost_basis(&result), (200, 11, UNKNOWN_COST));
}

#[tokio::test]
async fn interrupted_reply_is_billed() {
    let options = Options { include_partial_messages: true, ..Options::default() };
    let script = [Reply::text("A long story.").stall_after(3)];
    let mut host = Host::with_script(script).options(options).start().await.unwrap();
    host.send_prompt("Tell me.").await.unwrap();
    let started = json!({"type": "stream_event", "event": {"type": "content_block_delta"}});
    host.next_matching(&started).await.unwrap();
    host.send_request(Interrupt::default()).await.unwrap();
    let result = host.next_result().await.unwrap();
    assert_eq!(usage_and_cost_basis(&result), (100, 1, UNKNOWN_COST));
}

#[tokio::test]
async fn interrupted_subagent_is_billed() {
    let agent_input =
        json!({"description": "look", "prompt": "Look around.", "subagent_type": "general-purpose"});
    let subagent_reply =
        Reply::tool("Read", json!({"file_path": "note.txt"})).and_text("I see.").chunk_size(1000);
    let script = [Reply::tool("Agent", agent_input), subagent_reply.stall_after(4)];
    let mut host = Host::with_script(script).file("note.txt", "hello").start().await.unwrap();
    host.send_prompt("Start an agent.").await.unwrap();
    let is_subagent_reply = |frame: &Frame| match frame {
        Frame::Assistant(assistant) => assistant.parent_tool_use_id.is_some(),
        _ => false,
    };
    host.next_frame(is_subagent_reply).await.unwrap();
    host.send_request(Interrupt::default()).await.unwrap();
    assert_eq!(usage_and_cost_basis(&host.next_result().await.unwrap()), (200, 11, UNKNOWN_COST));
}

#[tokio::test]
async fn invalid_usage_makes_the_cost_unknown() {
    let stream = |start: serde_json::Value, end: serde_json::Value| {
        let events = [
            json!({"type": "message_start", "message": {"id": "m", "model": "x", "usage": start}}),
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi."}}),
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": end}),
            json!({"type": "message_stop"}),
        ];
        events.iter().map(|event| format!("data: {event}\n\n")).collect::<String>()
    };
    let valid = || json!({"input_tokens": 7, "output_tokens": 1});
    let unknown = Some("unknown");
    let table = [
        ("all there", valid(), json!({"output_tokens": 3}), (7, 3, None)),
        ("A36 missing at the start", json!(null), json!({"output_tokens": 3}), (0, 3, unknown)),
        ("A36 missing at the end", valid(), json!(null), (7, 1, unknown)),
        (
            "A36 negative",
            json!({"input_tokens": -7, "output_tokens": 1}),
            json!({"output_tokens": 3}),
            (0, 3, unknown),
        ),
        ("A36 absurd", valid(), json!({"output_tokens": 1e25}), (7, 1, unknown)),
    ];
    for (name, start, end, expected) in table {
        let result = run_once([Reply::empty().raw_body(stream(start, end))]).await;
        assert_eq!(result.result.as_deref(), Some("Hi."), "{name}");
        assert_eq!(usage_and_cost_basis(&result), expected, "{name}");
        assert!(result.total_cost_usd.is_finite() && result.total_cost_usd >= 0.0, "{name}");
    }
}

#[tokio::test]
async fn api_errors_name_a_remedy_and_hide_the_key() {
    let table: [(u16, &str, &[&str]); 5] = [
        (401, "invalid x-api-key", &["API Error: 401 invalid x-api-key", "ANTHROPIC_API_KEY"]),
        (403, "no access", &["API Error: 403 no access", "ANTHROPIC_API_KEY", MODEL]),
        (404, "model: unknown", &["API Error: 404 model: unknown", MODEL, "another model"]),
        (413, "too large", &["API Error: 413 too large", " kB", "shorten the conversation"]),
        (
            400,
            "prompt is too long: 9 tokens > 8 maximum",
            &["API Error: 400 prompt is too long", "shorten it"],
        ),
    ];
    for (status, message, parts) in table {
        let kind = if status == 400 { "invalid_request_error" } else { "some_error" };
        let text = run_once([Reply::empty().status(status).error(kind, message)]).await.result.unwrap();
        for part in parts {
            assert!(text.contains(part), "{status}: {text}");
        }
        assert!(!text.contains("sk-test-key"), "{status}: {text}");
    }
}

#[tokio::test]
async fn truncated_tool_input_is_reported_to_the_model() {
    let truncated = r#"{"file_path": "/tmp/x", "content": "once upon a ti"#;
    let call = || Reply::tool("Write", json!({})).raw_tool_input(truncated);
    for (name, stop, expected) in [
        ("A25 cut", StopReason::MaxTokens, "the output limit truncated the input"),
        ("A24 badly written", StopReason::ToolUse, "not valid JSON"),
    ] {
        let mut host =
            Host::with_script([call().stop_reason(stop), Reply::text("Sorry.")]).start().await.unwrap();
        assert_eq!(host.run("Write.").await.unwrap().result.as_deref(), Some("Sorry."), "{name}");
        let text = host.model_requests()[1].last_text();
        assert!(text.contains(expected), "{name}: {text}");
    }
}
