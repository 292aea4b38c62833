//! Replies to control requests as the official programs send them, parsed as the type that the request asks for.

use serde_json::{Value, json};
use whimbrel_wire::control::*;
use whimbrel_wire::hook::{HookOutput, HookSpecific};
use whimbrel_wire::permission::PermissionResult;

/// Parses a reply as the type that the request asks for.
fn parse_reply<A: TypedRequest>(answer: &Value) -> A::Reply {
    let reply = ControlResponse::success("r1", answer).response.parse_reply::<A>();
    reply.unwrap_or_else(|error| panic!("{}: {error}", A::SUBTYPE))
}

/// Checks that a reply is serialized as it was received.
fn assert_round_trip<A: TypedRequest>(answer: &Value) {
    assert_eq!(json!(parse_reply::<A>(answer)), *answer, "{}", A::SUBTYPE);
}

#[test]
fn replies_round_trip() {
    assert_round_trip::<Interrupt>(&json!({"still_queued": ["u1"]}));
    assert_round_trip::<SetPermissionMode>(&json!({"mode": "plan"}));
    assert_round_trip::<SetModel>(&json!({"model": "claude-opus-4"}));
    assert_round_trip::<McpStatus>(&json!({"mcpServers": [
        {"name": "a", "status": "needs-auth", "error": "login", "config": {"type": "claudeai-proxy", "url": "u", "id": "i"}},
        {"name": "b", "status": "connected", "serverInfo": {"name": "b", "version": "1"}, "scope": "user",
         "tools": [{"name": "t", "description": "d", "annotations": {"readOnly": true}}]},
    ]}));
    assert_round_trip::<McpSetServers>(&json!({"added": ["a"], "removed": [], "errors": {"b": "gone"}}));
    assert_round_trip::<RewindFiles>(
        &json!({"canRewind": true, "filesChanged": ["/a"], "insertions": 1, "deletions": 2}),
    );
    assert_round_trip::<GetSessionCost>(&json!({"text": "$0"}));
    assert_round_trip::<GetBinaryVersion>(&json!({"version": "2.1.325", "buildTime": "now"}));
    assert_round_trip::<FileSuggestions>(&json!({"suggestions": ["a"], "cwd": "/w"}));
    assert_round_trip::<ReadFile>(&json!({"contents": "c", "absPath": "/a", "truncated": false}));
    assert_round_trip::<GetTaskOutput>(&json!({"output": "o", "total_bytes": 1, "truncated": false}));
    assert_round_trip::<CheckToolInput>(&json!({"errors": [{"field": "edits[0]", "message": "is missing"}]}));
    assert_round_trip::<CancelAsyncMessage>(&json!({"cancelled": true}));
    assert_round_trip::<McpReadResource>(
        &json!({"contents": [{"uri": "x://y", "mimeType": "text/plain", "text": "t", "_meta": {}}]}),
    );
    assert_round_trip::<McpMessage>(
        &json!({"mcp_response": {"jsonrpc": "2.0", "id": 1, "result": {"tools": []}}}),
    );
    assert_round_trip::<Elicitation>(&json!({"action": "accept", "content": {"a": 1}}));
    assert_round_trip::<RequestUserDialog>(&json!({"behavior": "completed", "result": 5}));
    assert_round_trip::<GetContextUsage>(&json!({
        "categories": [{"name": "Messages", "tokens": 5, "color": "blue", "kind": "used"}],
        "totalTokens": 5, "maxTokens": 10, "rawMaxTokens": 10, "percentage": 50.0, "gridRows": [], "model": "m",
        "memoryFiles": [], "mcpTools": [], "agents": [], "isAutoCompactEnabled": true, "apiUsage": null,
    }));
    assert_round_trip::<Initialize>(&json!({
        "commands": [{"name": "compact", "description": "d", "argumentHint": ""}],
        "agents": [{"name": "explore", "description": "d", "model": "haiku"}],
        "output_style": "default", "available_output_styles": ["default"],
        "models": [{"value": "default", "displayName": "Default", "description": "d", "supportsEffort": true,
                    "supportedEffortLevels": ["low", "max"], "supportsAdaptiveThinking": true}],
        "account": {"apiKeySource": "none"}, "pid": 5,
    }));
}

#[test]
fn replies_of_old_engines_have_fewer_fields() {
    assert_eq!(parse_reply::<Interrupt>(&Value::Null), InterruptReply::default());
    let old = parse_reply::<Initialize>(
        &json!({"commands": [], "output_style": "default", "models": [], "account": {}}),
    );
    assert_eq!((old.agents, old.pid), (vec![], None));
    assert_eq!(parse_reply::<StopTask>(&json!({"anything": 1})), Empty {});
}

#[test]
fn permission_results_of_all_sdks_are_accepted() {
    let python = json!({"behavior": "allow", "updatedInput": {"a": 1}});
    assert!(matches!(
        parse_reply::<CanUseTool>(&python),
        PermissionResult::Allow { updated_input: Some(_), .. }
    ));
    let typescript =
        json!({"behavior": "allow", "toolUseID": "t1", "decisionClassification": "user_permanent"});
    assert!(matches!(
        parse_reply::<CanUseTool>(&typescript),
        PermissionResult::Allow { updated_input: None, .. }
    ));
    let deny = json!({"behavior": "deny", "message": "no", "interrupt": true, "toolUseID": "t1"});
    assert!(matches!(parse_reply::<CanUseTool>(&deny), PermissionResult::Deny { interrupt: true, .. }));
}

#[test]
fn hook_output_with_nulls_or_unknown_event_is_accepted() {
    let nulls = json!({"continue": null, "decision": null, "hookSpecificOutput": null, "async": false});
    assert_eq!(parse_reply::<HookCallback>(&nulls), HookOutput::default());
    let newer = json!({"hookSpecificOutput": {"hookEventName": "MoonRise", "tide": "high"}});
    let HookOutput::Sync(output) = parse_reply::<HookCallback>(&newer) else { panic!() };
    assert!(matches!(output.specific, Some(HookSpecific::Other(_))));
    assert_eq!(serde_json::to_value(&output).unwrap(), newer);
}

#[test]
fn invalid_hook_output_names_the_field() {
    for (answer, field) in [
        (json!({"decision": "perhaps"}), "decision"),
        (json!({"continue": "no"}), "continue"),
        (
            json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "sure"}}),
            "permissionDecision",
        ),
        (json!({"hookSpecificOutput": {"permissionDecision": "deny"}}), "hookEventName"),
    ] {
        let read = ControlResponse::success("r1", &answer).response.parse_reply::<HookCallback>().unwrap();
        let HookOutput::Sync(output) = read else { panic!() };
        let [error] = &output.invalid_fields[..] else { panic!("{output:?}") };
        assert!(error.contains(field), "{error}");
    }
}
