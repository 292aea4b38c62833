//! Which frames belong to a turn, and how its result is judged.

use serde_json::{Value, json};
use whimbrel_wire::decode;

use super::*;

fn frame(value: &Value) -> Frame {
    decode(&value.to_string()).unwrap()
}

fn replay(uuid: &str) -> Value {
    json!({"type": "user", "message": {"role": "user", "content": "hi"}, "uuid": uuid, "isReplay": true})
}

fn assistant(text: &str) -> Value {
    json!({"type": "assistant", "parent_tool_use_id": null, "message": {"id": "m", "model": "x", "content": [{"type": "text", "text": text}]}})
}

fn notice() -> Value {
    json!({"type": "system", "subtype": "informational", "content": "odd", "level": "warning"})
}

fn subagent_message() -> Value {
    let mut message = assistant("inner");
    message["parent_tool_use_id"] = "call".into();
    message
}

/// A result with further fields.
fn result(more: Value) -> Value {
    let mut fields = json!({"type": "result", "subtype": "success", "is_error": false, "duration_ms": 1,
        "duration_api_ms": 1, "num_turns": 1, "result": "said", "session_id": "s", "total_cost_usd": 0, "usage": {}});
    let Value::Object(more) = more else { panic!("an object") };
    fields.as_object_mut().unwrap().extend(more);
    fields
}

#[test]
fn frames_belong_to_the_turn_from_its_prompt_to_its_result() {
    use FrameRole::{Other, Own, Result};
    let own_result = || result(json!({"user_message_uuid": "p"}));
    let joined = || result(json!({"user_message_uuid": "q", "user_message_uuids": ["p", "q"]}));
    let notification = || result(json!({"origin": {"kind": "task-notification"}}));
    let other = || result(json!({"user_message_uuid": "o"}));
    let rows: [(&str, Vec<Value>, Vec<FrameRole>); 9] = [
        ("alone", vec![replay("p"), assistant("a"), own_result()], vec![Own, Own, Result]),
        ("joined", vec![replay("p"), replay("q"), joined()], vec![Own, Own, Result]),
        (
            "behind another",
            vec![replay("o"), assistant("a"), other(), replay("p"), own_result()],
            vec![Other, Other, Other, Own, Result],
        ),
        (
            "behind a turn of the engine",
            vec![assistant("a"), notification(), replay("p"), assistant("b"), own_result()],
            vec![Other, Other, Own, Own, Result],
        ),
        ("an engine that names no prompts", vec![assistant("a"), result(json!({}))], vec![Other, Result]),
        ("a result without a replay", vec![own_result()], vec![Result]),
        ("notices before the replay", vec![notice(), replay("p"), own_result()], vec![Own, Own, Result]),
        (
            "notices of another turn",
            vec![replay("o"), notice(), other(), notice(), own_result()],
            vec![Other, Other, Other, Own, Result],
        ),
        (
            "work of a subagent in the background",
            vec![subagent_message(), notice(), own_result()],
            vec![Other, Own, Result],
        ),
    ];
    for (name, frames, expected) in rows {
        let mut tracker = TurnTracker::new("p".into(), SessionActivity::Idle);
        let roles: Vec<FrameRole> = frames.iter().map(|value| tracker.record(&frame(value))).collect();
        assert_eq!(roles, expected, "{name}");
    }
}

#[test]
fn notices_belong_to_the_turn_that_runs_already() {
    let mut tracker = TurnTracker::new("p".into(), SessionActivity::TurnRuns);
    let roles = [notice(), result(json!({"user_message_uuid": "o"})), notice()]
        .map(|value| tracker.record(&frame(&value)));
    assert_eq!(roles, [FrameRole::Other, FrameRole::Other, FrameRole::Own]);
}

/// The name of an outcome.
fn name_outcome(judged: &Result<Answer, TurnError>) -> &'static str {
    match judged {
        Ok(_) => "answer",
        Err(TurnError::Api(error)) if error.is_retryable() => "api, retry",
        Err(TurnError::Api(_)) => "api",
        Err(TurnError::MaxTurns(_)) => "max turns",
        Err(TurnError::BudgetExceeded(_)) => "budget",
        Err(TurnError::Interrupted(_)) => "interrupted",
        Err(TurnError::OutputFormat { .. }) => "format",
        Err(TurnError::Hook { .. }) => "hook",
        Err(TurnError::Failed(_)) => "failed",
        Err(TurnError::Conflict(_)) => "conflict",
        Err(TurnError::PromptCancelled) => "cancelled",
        Err(TurnError::Session(_)) => "session",
    }
}

#[test]
fn results_are_judged() {
    let failed = |subtype: &str, reason: Value| {
        result(json!({"subtype": subtype, "is_error": true, "terminal_reason": reason, "result": null}))
    };
    let api = |status: Value| {
        result(json!({"is_error": true, "terminal_reason": "api_error", "api_error_status": status}))
    };
    let failure = |kind: &str| {
        let mut message = assistant("API Error");
        message["error"] = kind.into();
        message
    };
    let notice = json!({"type": "system", "subtype": "informational", "content": "no", "level": "warning",
        "prevent_continuation": true});
    let rows: [(&str, Vec<Value>, &str); 14] = [
        ("success", vec![result(json!({}))], "answer"),
        ("turn limit", vec![failed("error_max_turns", json!("max_turns"))], "max turns"),
        ("budget", vec![failed("error_max_budget_usd", json!("budget_exhausted"))], "budget"),
        ("format", vec![failed("error_max_structured_output_retries", json!(null))], "format"),
        ("interrupt", vec![failed("error_during_execution", json!("aborted_tools"))], "interrupted"),
        ("interrupt of an older engine", vec![failed("error_during_execution", json!(null))], "interrupted"),
        ("other error", vec![failed("error_during_execution", json!("image_error"))], "failed"),
        ("unknown subtype", vec![failed("error_of_tomorrow", json!(null))], "failed"),
        ("bad key", vec![failure("authentication_failed"), api(json!(401))], "api"),
        ("overload", vec![failure("server_error"), api(json!(529))], "api, retry"),
        ("no connection", vec![failure("server_error"), api(json!(null))], "api, retry"),
        ("refusal", vec![result(json!({"is_error": true, "terminal_reason": "model_error"}))], "failed"),
        ("blocked prompt", vec![notice, result(json!({}))], "hook"),
        ("stopped by a hook", vec![result(json!({"terminal_reason": "hook_stopped"}))], "hook"),
    ];
    for (name, frames, expected) in rows {
        let mut causes = FailureCauses::default();
        let mut judged = None;
        for value in frames {
            match frame(&value) {
                Frame::Result(result) => judged = Some(std::mem::take(&mut causes).judge(result)),
                other => causes.record(&other),
            }
        }
        assert_eq!(name_outcome(&judged.unwrap()), expected, "{name}");
    }
}
