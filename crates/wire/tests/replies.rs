//! Answers to control requests, as the official programs give them, read as the type that the question asks for.

use serde_json::{Value, json};
use whimbrel_wire::control::*;
use whimbrel_wire::hook::{HookOutput, HookSpecific};
use whimbrel_wire::permission::PermissionResult;

/// Reads an answer as what the question asks for.
fn read<A: Ask>(answer: &Value) -> A::Reply {
    let reply = ControlResponse::success("r1", answer).response.reply::<A>();
    reply.unwrap_or_else(|error| panic!("{}: {error}", A::SUBTYPE))
}

/// Checks that an answer is written back as it came.
fn same<A: Ask>(answer: &Value) {
    assert_eq!(json!(read::<A>(answer)), *answer, "{}", A::SUBTYPE);
}

#[test]
fn answers_are_written_back_as_they_came() {
    same::<Interrupt>(&json!({"still_queued": ["u1"]}));
    same::<SetPermissionMode>(&json!({"mode": "plan"}));
    same::<SetModel>(&json!({"model": "claude-opus-4"}));
    same::<McpStatus>(&json!({"mcpServers": [
        {"name": "a", "status": "needs-auth", "error": "login", "config": {"type": "claudeai-proxy", "url": "u", "id": "i"}},
        {"name": "b", "status": "connected", "serverInfo": {"name": "b", "version": "1"}, "scope": "user",
         "tools": [{"name": "t", "description": "d", "annotations": {"readOnly": true}}]},
    ]}));
    same::<McpSetServers>(&json!({"added": ["a"], "removed": [], "errors": {"b": "gone"}}));
    same::<RewindFiles>(&json!({"canRewind": true, "filesChanged": ["/a"], "insertions": 1, "deletions": 2}));
    same::<GetSessionCost>(&json!({"text": "$0"}));
    same::<GetBinaryVersion>(&json!({"version": "2.1.325", "buildTime": "now"}));
    same::<FileSuggestions>(&json!({"suggestions": ["a"], "cwd": "/w"}));
    same::<ReadFile>(&json!({"contents": "c", "absPath": "/a", "truncated": false}));
    same::<GetTaskOutput>(&json!({"output": "o", "total_bytes": 1, "truncated": false}));
    same::<CancelAsyncMessage>(&json!({"cancelled": true}));
    same::<McpReadResource>(
        &json!({"contents": [{"uri": "x://y", "mimeType": "text/plain", "text": "t", "_meta": {}}]}),
    );
    same::<McpMessage>(&json!({"mcp_response": {"jsonrpc": "2.0", "id": 1, "result": {"tools": []}}}));
    same::<Elicitation>(&json!({"action": "accept", "content": {"a": 1}}));
    same::<RequestUserDialog>(&json!({"behavior": "completed", "result": 5}));
    same::<GetContextUsage>(&json!({
        "categories": [{"name": "Messages", "tokens": 5, "color": "blue", "kind": "used"}],
        "totalTokens": 5, "maxTokens": 10, "rawMaxTokens": 10, "percentage": 50.0, "gridRows": [], "model": "m",
        "memoryFiles": [], "mcpTools": [], "agents": [], "isAutoCompactEnabled": true, "apiUsage": null,
    }));
    same::<Initialize>(&json!({
        "commands": [{"name": "compact", "description": "d", "argumentHint": ""}],
        "agents": [{"name": "explore", "description": "d", "model": "haiku"}],
        "output_style": "default", "available_output_styles": ["default"],
        "models": [{"value": "default", "displayName": "Default", "description": "d", "supportsEffort": true,
                    "supportedEffortLevels": ["low", "max"], "supportsAdaptiveThinking": true}],
        "account": {"apiKeySource": "none"}, "pid": 5,
    }));
}

#[test]
fn old_engines_say_less() {
    assert_eq!(read::<Interrupt>(&Value::Null), InterruptReply::default());
    let old =
        read::<Initialize>(&json!({"commands": [], "output_style": "default", "models": [], "account": {}}));
    assert_eq!((old.agents, old.pid), (vec![], None));
    assert_eq!(read::<StopTask>(&json!({"anything": 1})), Empty {});
}

#[test]
fn verdicts_of_all_sdks_are_understood() {
    let python = json!({"behavior": "allow", "updatedInput": {"a": 1}});
    assert!(matches!(read::<CanUseTool>(&python), PermissionResult::Allow { updated_input: Some(_), .. }));
    let typescript =
        json!({"behavior": "allow", "toolUseID": "t1", "decisionClassification": "user_permanent"});
    assert!(matches!(read::<CanUseTool>(&typescript), PermissionResult::Allow { updated_input: None, .. }));
    let deny = json!({"behavior": "deny", "message": "no", "interrupt": true, "toolUseID": "t1"});
    assert!(matches!(read::<CanUseTool>(&deny), PermissionResult::Deny { interrupt: true, .. }));
}

#[test]
fn a_hook_answer_with_nulls_or_for_an_unknown_event_is_taken() {
    let nulls = json!({"continue": null, "decision": null, "hookSpecificOutput": null, "async": false});
    assert_eq!(read::<HookCallback>(&nulls), HookOutput::default());
    let newer = json!({"hookSpecificOutput": {"hookEventName": "MoonRise", "tide": "high"}});
    let HookOutput::Sync(output) = read::<HookCallback>(&newer) else { panic!() };
    assert!(matches!(output.specific, Some(HookSpecific::Other(_))));
    assert_eq!(serde_json::to_value(&output).unwrap(), newer);
}

#[test]
fn a_wrong_hook_answer_names_the_field() {
    for (answer, field) in [
        (json!({"decision": "perhaps"}), "decision"),
        (json!({"continue": "no"}), "continue"),
        (
            json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "sure"}}),
            "permissionDecision",
        ),
        (json!({"hookSpecificOutput": {"permissionDecision": "deny"}}), "hookEventName"),
    ] {
        let read = ControlResponse::success("r1", &answer).response.reply::<HookCallback>().unwrap();
        let HookOutput::Sync(output) = read else { panic!() };
        let [flaw] = &output.flaws[..] else { panic!("{output:?}") };
        assert!(flaw.contains(field), "{flaw}");
    }
}
