//! Tests of hook inputs, field by field.

use std::time::Duration;

use serde_json::{Value, json};
use whimbrel_wire::hook::{BackgroundTaskSummary, HookBase};
use whimbrel_wire::message::FailureKind;
use whimbrel_wire::permission::PermissionMode;
use whimbrel_wire::system::CompactTrigger;

use super::super::inputs::{FailureCause, HookCall, HookInputBuilder, StopDetails, ToolCallRef};

fn input_builder() -> HookInputBuilder {
    HookInputBuilder(HookBase {
        session_id: "s".into(),
        transcript_path: "/s.jsonl".into(),
        cwd: "/w".into(),
        permission_mode: Some(PermissionMode::Plan),
        ..HookBase::default()
    })
}

/// Fields besides the common ones, and whether the mode is among them.
fn extra_fields(hook_call: &HookCall) -> (Value, bool) {
    let mut input = serde_json::to_value(&hook_call.input).unwrap();
    let fields = input.as_object_mut().unwrap();
    for (name, value) in [("session_id", "s"), ("transcript_path", "/s.jsonl"), ("cwd", "/w")] {
        assert_eq!(fields.shift_remove(name), Some(value.into()), "{name}");
    }
    let mode = fields.shift_remove("permission_mode");
    (input, mode == Some("plan".into()))
}

#[test]
fn each_event_has_its_fields() {
    let (input, duration) = (json!({"command": "ls"}), Duration::from_millis(1_250));
    let call = ToolCallRef { name: "Bash", input: &input, id: "toolu_1", server: None };
    let details = || StopDetails { last_message: Some("bye".into()), ..StopDetails::default() };
    let mut subagent = input_builder();
    (subagent.0.agent_id, subagent.0.agent_type) = (Some("a1".into()), Some("Explore".into()));
    let builder = input_builder();
    let mut rows = vec![
        (
            builder.pre_tool_use(call),
            json!({"tool_name": "Bash", "tool_input": input, "tool_use_id": "toolu_1", "hook_event_name": "PreToolUse"}),
        ),
        (
            builder.post_tool_use(call, json!({"stdout": "hi"}), duration),
            json!({"tool_name": "Bash", "tool_input": input, "tool_response": {"stdout": "hi"}, "tool_use_id": "toolu_1",
                "duration_ms": 1250, "hook_event_name": "PostToolUse"}),
        ),
        (
            builder.post_tool_use_failure(call, "boom", FailureCause::Interrupted, duration),
            json!({"tool_name": "Bash", "tool_input": input, "tool_use_id": "toolu_1", "error": "boom", "is_interrupt": true,
                "duration_ms": 1250, "hook_event_name": "PostToolUseFailure"}),
        ),
        (builder.post_tool_batch(vec![]), json!({"tool_calls": [], "hook_event_name": "PostToolBatch"})),
        (
            builder.permission_request(call, vec![]),
            json!({"tool_name": "Bash", "tool_input": input, "hook_event_name": "PermissionRequest"}),
        ),
        (
            builder.permission_denied(call, "rule"),
            json!({"tool_name": "Bash", "tool_input": input, "tool_use_id": "toolu_1", "reason": "rule",
                "hook_event_name": "PermissionDenied"}),
        ),
        (
            builder.notification("idle_prompt", "look", None),
            json!({"message": "look", "notification_type": "idle_prompt", "hook_event_name": "Notification"}),
        ),
        (
            builder.user_prompt_submit("hi", Some("sdk")),
            json!({"prompt": "hi", "source": "sdk", "hook_event_name": "UserPromptSubmit"}),
        ),
        (
            builder.user_prompt_expansion("init", "x y", "do it"),
            json!({"expansion_type": "slash_command", "command_name": "init", "command_args": "x y", "prompt": "do it",
                "hook_event_name": "UserPromptExpansion"}),
        ),
        (
            builder.stop(details()),
            json!({"stop_hook_active": false, "last_assistant_message": "bye", "background_tasks": [], "session_crons": [],
                "hook_event_name": "Stop"}),
        ),
        (
            builder.stop_failure(FailureKind::RateLimit, None),
            json!({"error": "rate_limit", "hook_event_name": "StopFailure"}),
        ),
        (
            subagent.subagent_stop("/a.jsonl", details()),
            json!({"agent_id": "a1", "agent_type": "Explore", "stop_hook_active": false, "agent_transcript_path": "/a.jsonl",
                "last_assistant_message": "bye", "background_tasks": [], "session_crons": [], "hook_event_name": "SubagentStop"}),
        ),
        (
            builder.instructions_loaded("/w/CLAUDE.md", "Project", "session_start"),
            json!({"file_path": "/w/CLAUDE.md", "memory_type": "Project", "load_reason": "session_start",
                "hook_event_name": "InstructionsLoaded"}),
        ),
    ];
    let without_mode = rows.len();
    rows.extend([
        (
            builder.session_start("startup", Some("m"), None),
            json!({"source": "startup", "model": "m", "hook_event_name": "SessionStart"}),
        ),
        (builder.session_end("other"), json!({"reason": "other", "hook_event_name": "SessionEnd"})),
        (
            builder.subagent_start("a1", "Explore"),
            json!({"agent_id": "a1", "agent_type": "Explore", "hook_event_name": "SubagentStart"}),
        ),
        (
            builder.pre_compact(CompactTrigger::Manual, None),
            json!({"trigger": "manual", "custom_instructions": null, "hook_event_name": "PreCompact"}),
        ),
        (
            builder.post_compact(CompactTrigger::Auto, "short"),
            json!({"trigger": "auto", "compact_summary": "short", "hook_event_name": "PostCompact"}),
        ),
    ]);
    for (number, (hook_call, expected)) in rows.iter().enumerate() {
        assert_eq!(extra_fields(hook_call), (expected.clone(), number < without_mode));
        let names_call = expected["tool_name"].is_string();
        assert_eq!(hook_call.tool_use_id.as_deref(), names_call.then_some("toolu_1"), "{expected}");
    }
}

#[test]
fn long_texts_about_background_tasks_are_truncated() {
    let task =
        BackgroundTaskSummary { command: Some("ü".repeat(2_000)), ..BackgroundTaskSummary::default() };
    let (input, _) = extra_fields(
        &input_builder().stop(StopDetails { background_tasks: vec![task], ..StopDetails::default() }),
    );
    assert_eq!(input["background_tasks"][0]["command"], "ü".repeat(1_000));
}
