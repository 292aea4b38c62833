//! Compaction: its triggers, what it keeps, and its limits.

use serde_json::{Value, json};
use whimbrel_testkit::{Host, HostBuilder, ModelRequest, Reply, Script};
use whimbrel_wire::control::Interrupt;
use whimbrel_wire::message::TerminalReason;
use whimbrel_wire::options::Options;
use whimbrel_wire::{StopReason, Usage};

/// Text found in every request for a summary.
const SUMMARY_REQUEST_TEXT: &str = "summary that will replace this conversation";

fn host(script: impl Into<Script>) -> HostBuilder {
    Host::with_script(script).file("a.txt", "hello")
}

fn nearly_full_usage() -> Usage {
    Usage { input_tokens: 180_000, output_tokens: 10, ..Usage::default() }
}

fn read_call() -> Reply {
    Reply::tool("Read", json!({"file_path": "a.txt"}))
}

fn too_long_error() -> Reply {
    let message = "prompt is too long: 212345 tokens > 200000 maximum";
    Reply::empty().status(400).error("invalid_request_error", message)
}

/// Number of tool calls and results in a request.
fn count_tool_use(request: &ModelRequest) -> usize {
    request.body["messages"].to_string().matches("tool_use").count()
}

#[tokio::test]
async fn full_context_is_compacted_before_the_next_prompt() {
    let script =
        [Reply::text("Big.").usage(nearly_full_usage()), Reply::text("A SUMMARY."), Reply::text("Here.")];
    let mut host = host(script).start().await.unwrap();
    host.run("The first thing.").await.unwrap();
    assert_eq!(host.run("The second thing.").await.unwrap().result.as_deref(), Some("Here."));
    let requests = host.model_requests();
    assert!(
        requests[1].contains_text("The first thing.")
            && requests[1].last_text().contains(SUMMARY_REQUEST_TEXT)
    );
    assert!(
        requests[2].contains_text("A SUMMARY.")
            && !requests[2].contains_text("The first thing.")
            && !requests[2].contains_text("Big.")
    );
    assert!(requests[2].last_text().ends_with("The second thing."), "{}", requests[2].last_text());
    let boundaries = host.system_frames("compact_boundary");
    assert_eq!(boundaries.len(), 1);
    assert_eq!(boundaries[0]["compact_metadata"]["trigger"], "auto");
    assert!(boundaries[0]["compact_metadata"]["pre_tokens"].as_u64().unwrap() >= 180_010);
    let states: Vec<&Value> = host.system_frames("status").iter().map(|notice| &notice["status"]).collect();
    assert_eq!(states, [&json!("compacting"), &Value::Null]);
}

#[tokio::test]
async fn compaction_within_a_turn_keeps_the_prompt() {
    let script = [read_call().usage(nearly_full_usage()), Reply::text("A SUMMARY."), Reply::text("Done.")];
    let mut host = host(script).start().await.unwrap();
    assert_eq!(host.run("Read it and tell.").await.unwrap().result.as_deref(), Some("Done."));
    let requests = host.model_requests();
    assert!(count_tool_use(&requests[1]) >= 2, "the summary covers the whole history");
    assert_eq!(count_tool_use(&requests[2]), 0);
    assert!(requests[2].contains_text("A SUMMARY.") && requests[2].contains_text("Read it and tell."));
}

#[tokio::test]
async fn tool_results_count_toward_the_context_estimate() {
    let large = "lorem ipsum dolor ".repeat(12_000);
    let command = json!({"command": "cat a.txt"});
    let usage = Usage { input_tokens: 166_990, output_tokens: 5, ..Usage::default() };
    let script = [Reply::tool("Bash", command).usage(usage), Reply::text("A SUMMARY."), Reply::text("Done.")];
    let mut host = Host::with_script(script).file("a.txt", large).start().await.unwrap();
    host.run("Look.").await.unwrap();
    assert_eq!(host.system_frames("compact_boundary").len(), 1);
}

#[tokio::test]
async fn settings_control_auto_compaction() {
    let small = || Usage { input_tokens: 40_000, output_tokens: 10, ..Usage::default() };
    let rows = [
        ("below the threshold", vec![], small(), 0),
        ("full", vec![], nearly_full_usage(), 1),
        ("disabled", vec![("DISABLE_AUTO_COMPACT", "1")], nearly_full_usage(), 0),
        ("lower percentage", vec![("CLAUDE_AUTOCOMPACT_PCT_OVERRIDE", "20")], small(), 1),
        ("a smaller window", vec![("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "50000")], small(), 1),
    ];
    for (name, env, usage, expected) in rows {
        let script = Script::from_fn(move |_| Reply::text("Fine.").usage(usage.clone()));
        let host = env.into_iter().fold(host(script), |host, (name, value)| host.env(name, value));
        let mut host = host.start().await.unwrap();
        host.run("One.").await.unwrap();
        host.run("Two.").await.unwrap();
        assert_eq!(host.system_frames("compact_boundary").len(), expected, "{name}");
    }
    let options = Options { model: Some("unknown-model".into()), ..Options::default() };
    let script = Script::from_fn(|_| Reply::text("Fine.").usage(nearly_full_usage()));
    let mut unknown = Host::with_script(script).options(options).start().await.unwrap();
    unknown.run("One.").await.unwrap();
    unknown.run("Two.").await.unwrap();
    assert_eq!(unknown.model_requests().len(), 2, "an unknown window is never full");
    let options = Options { model: Some("unknown-model".into()), ..Options::default() };
    let script = Script::from_fn(|_| Reply::text("Fine.").usage(nearly_full_usage()));
    let host = Host::with_script(script).options(options).env("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "100000");
    let mut named = host.start().await.unwrap();
    named.run("One.").await.unwrap();
    named.run("Two.").await.unwrap();
    assert_eq!(named.system_frames("compact_boundary").len(), 1, "the window that the host names counts");
}

#[tokio::test]
async fn too_long_request_is_compacted_once_and_retried() {
    let script = [
        Reply::text("Something."),
        too_long_error().skip_after_faults(),
        Reply::text("A SUMMARY."),
        Reply::text("After."),
    ];
    let mut host = host(script).start().await.unwrap();
    host.run("The first thing.").await.unwrap();
    let result = host.run("The second thing.").await.unwrap();
    assert_eq!((result.is_error, result.result.as_deref()), (false, Some("After.")));
    let requests = host.model_requests();
    assert_eq!(requests[2].messages().len(), 1, "a too long history is truncated for the summary");
    assert!(
        requests[2].contains_text("Agent: Something.") && requests[2].contains_text(SUMMARY_REQUEST_TEXT)
    );
    assert!(requests[3].contains_text("A SUMMARY.") && requests[3].contains_text("The second thing."));
    assert_eq!(host.system_frames("compact_boundary").len(), 1);
}

#[tokio::test]
async fn context_window_stop_continues_after_compaction() {
    let truncated = Reply::text("As I was say").stop_reason(StopReason::ModelContextWindowExceeded);
    let mut host =
        host([truncated, Reply::text("A SUMMARY."), Reply::text("Saying.")]).start().await.unwrap();
    assert_eq!(host.run("Say.").await.unwrap().result.as_deref(), Some("Saying."));
}

#[tokio::test]
async fn ineffective_compaction_ends_in_an_error() {
    let always_too_long = Script::from_fn(|request| match request.number {
        0 => Reply::text("Begun."),
        _ if request.contains_text(SUMMARY_REQUEST_TEXT) => Reply::text("A SUMMARY."),
        _ => too_long_error(),
    });
    let no_summary =
        |request: &ModelRequest| if request.number == 0 { Reply::text("Begun.") } else { too_long_error() };
    let refilled = Script::from_fn(|request| match request.number {
        0 => Reply::text("Begun."),
        _ if request.contains_text(SUMMARY_REQUEST_TEXT) => Reply::text("A SUMMARY."),
        _ if count_tool_use(request) > 0 => too_long_error(),
        _ => read_call(),
    });
    let rows = [
        ("still too long", always_too_long, vec![], 4),
        ("no summary", Script::from_fn(no_summary), vec![], 3),
        ("the context fills up again", refilled, vec![], 12),
        ("disabled", Script::from_fn(no_summary), vec![("DISABLE_AUTO_COMPACT", "1")], 2),
        ("the very first prompt", Script::from_fn(|_| too_long_error()), vec![], 1),
    ];
    for (name, script, env, requests) in rows {
        let host = env.into_iter().fold(host(script), |host, (name, value)| host.env(name, value));
        let mut host = host.start().await.unwrap();
        let mut result = host.run("Begin.").await.unwrap();
        if !result.is_error {
            result = host.run("Tell.").await.unwrap();
        }
        assert!(result.is_error, "{name}");
        assert_eq!(result.terminal_reason, Some(TerminalReason::PromptTooLong), "{name}");
        assert!(result.result.unwrap().contains("too long"), "{name}");
        assert_eq!(host.model_requests().len(), requests, "{name}");
    }
}

#[tokio::test]
async fn failed_compaction_does_not_stop_a_fitting_turn() {
    let rejected = Reply::empty().status(400).error("invalid_request_error", "no").skip_after_faults();
    let script = [Reply::text("Big.").usage(nearly_full_usage()), rejected, Reply::text("Here.")];
    let mut host = host(script).start().await.unwrap();
    host.run("One.").await.unwrap();
    assert_eq!(host.run("Two.").await.unwrap().result.as_deref(), Some("Here."));
    let statuses = host.system_frames("status");
    assert_eq!(statuses[1]["compact_result"], "failed");
    assert!(statuses[1]["compact_error"].as_str().unwrap().contains("no"));
}

#[tokio::test]
async fn interrupt_during_compaction_keeps_the_history() {
    let script = [
        Reply::text("Big.").usage(nearly_full_usage()),
        Reply::text("A SUMMARY.").hold_until("summary"),
        Reply::text("ANOTHER."),
        Reply::text("Here."),
    ];
    let mut host = host(script).start().await.unwrap();
    host.run("The first thing.").await.unwrap();
    host.send_prompt("The second thing.").await.unwrap();
    host.next_matching(&json!({"subtype": "status", "status": "compacting"})).await.unwrap();
    host.send_request(Interrupt::default()).await.unwrap();
    assert_eq!(host.next_result().await.unwrap().terminal_reason, Some(TerminalReason::AbortedStreaming));
    assert!(host.system_frames("compact_boundary").is_empty());
    assert_eq!(host.run("The third thing.").await.unwrap().result.as_deref(), Some("Here."));
    assert!(host.model_requests()[2].contains_text("The first thing."), "the history is unchanged");
    assert!(
        host.model_requests()[3].contains_text("ANOTHER.")
            && host.model_requests()[3].contains_text("The third thing.")
    );
}

#[tokio::test]
async fn subagent_compaction_sends_no_session_frames() {
    let agent_input =
        json!({"description": "look", "prompt": "Look around.", "subagent_type": "general-purpose"});
    let script = [
        Reply::tool("Agent", agent_input),
        read_call().usage(nearly_full_usage()),
        Reply::text("A SUMMARY."),
        Reply::text("I saw."),
        Reply::text("Thanks."),
    ];
    let mut host = host(script).start().await.unwrap();
    assert_eq!(host.run("Start an agent.").await.unwrap().result.as_deref(), Some("Thanks."));
    let requests = host.model_requests();
    assert!(requests[3].contains_text("A SUMMARY.") && requests[3].contains_text("Look around."));
    assert!(requests[4].contains_text("I saw."));
    assert!(host.system_frames("compact_boundary").is_empty() && host.system_frames("status").is_empty());
}

#[tokio::test]
async fn pre_compact_hook_can_block_compaction() {
    let dirs = whimbrel_testkit::TestDirs::new().unwrap();
    let hook_inputs = dirs.home().join("hook-inputs");
    let command = format!("cat >> {}; test ! -e no || exit 2", hook_inputs.display());
    let hook = json!({"hooks": {"PreCompact": [{"hooks": [{"type": "command", "command": command}]}]}});
    let options = Options { settings: Some(hook.to_string()), ..Options::default() };
    let script = ["Hello.", "Summary.", "Hello again."].map(Reply::text);
    let mut host = Host::with_script(script).dirs(dirs).options(options).start().await.unwrap();
    host.run("Hi.").await.unwrap();
    host.run("/compact keep the names").await.unwrap();
    assert_eq!(host.system_frames("compact_boundary").len(), 1);
    host.dirs().write_file("no", "").unwrap();
    host.run("Hi again.").await.unwrap();
    host.run("/compact").await.unwrap();
    assert_eq!(host.system_frames("compact_boundary").len(), 1, "the hook blocked it");
    assert_eq!(host.model_requests().len(), 3, "no summary is requested");
    let text = std::fs::read_to_string(hook_inputs).unwrap();
    let inputs: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        (&inputs[0]["trigger"], &inputs[0]["custom_instructions"]),
        (&json!("manual"), &json!("keep the names"))
    );
    assert_eq!(inputs.len(), 2);
}
