//! Permissions of MCP tools, and an MCP tool that decides permissions.

use serde_json::json;
use whimbrel_testkit::{Host, Reply};
use whimbrel_wire::control::SetMcpPermissionModeOverride;
use whimbrel_wire::options::{Options, PermissionPromptTool};
use whimbrel_wire::permission::{PermissionMode, PermissionResult};

use crate::fixture::{host, options, word_call};

#[tokio::test]
async fn mcp_tool_can_decide_permissions() {
    let rows = [
        ("mcp__sh__allow", None, true),
        ("mcp__sh__deny", Some("the tool says no"), false),
        ("mcp__sh__echo", Some("must answer with"), false),
        ("mcp__sh__nosuch", Some("Tool not found: mcp__sh__nosuch"), false),
    ];
    for (tool, expected, allowed) in rows {
        let prompt_tool = Some(PermissionPromptTool::Mcp(tool.into()));
        let script = [Reply::tool("Bash", json!({"command": "touch made"})), Reply::text("Done.")];
        let mut host = Host::with_script(script)
            .options(Options { permission_prompt_tool: prompt_tool, ..options() })
            .start()
            .await
            .unwrap();
        let result = host.run("Go.").await.unwrap();
        assert_eq!(host.dirs().workspace().join("made").exists(), allowed, "{tool}");
        assert_eq!(result.permission_denials.len(), usize::from(!allowed), "{tool}");
        let requests = host.model_requests();
        assert!(
            expected.is_none_or(|text| requests[1].contains_text(text)),
            "{tool}: {}",
            requests[1].last_text()
        );
        assert!(!requests[0].tool_names().contains(&tool), "{tool} is hidden from the model");
    }
}

#[tokio::test]
async fn server_can_have_a_permission_mode_override() {
    let script = || [word_call("mcp__sh__echo", "a"), Reply::text("Done.")];
    let request_count = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = std::sync::Arc::clone(&request_count);
    let mut host = host([script(), script(), script()].concat())
        .can_use_tool(move |_| {
            count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            PermissionResult::allow()
        })
        .start()
        .await
        .unwrap();
    let override_as = |mode| SetMcpPermissionModeOverride { server_name: "sh".into(), mode };
    for (mode, expected) in [(None, 0), (Some(PermissionMode::Default), 1), (None, 1)] {
        host.send_request(override_as(mode)).await.unwrap();
        host.run("Go.").await.unwrap();
        assert_eq!(request_count.load(std::sync::atomic::Ordering::SeqCst), expected, "{mode:?}");
    }
    assert!(host.send_request(override_as(Some(PermissionMode::BypassPermissions))).await.is_err());
    let unknown_server = SetMcpPermissionModeOverride { server_name: "who".into(), mode: None };
    assert!(
        host.send_request(unknown_server).await.unwrap_err().to_string().contains("Server not found: who")
    );
}

#[tokio::test]
async fn permission_request_names_the_server() {
    let tool = "mcp__sh__echo";
    let rule = json!({"type": "addRules", "rules": [{"toolName": tool}], "behavior": "allow", "destination": "localSettings"});
    let by_mode = json!({"permission_suggestions": [], "suppress_always_allow_rule": true,
        "decision_reason_type": "mode", "decision_reason": "The permission mode is plan."});
    let rows = [
        (PermissionMode::Default, json!({"permission_suggestions": [rule]})),
        (PermissionMode::Plan, by_mode),
    ];
    for (mode, rest) in rows {
        let mut host = Host::with_script([word_call(tool, "a"), Reply::text("Done.")])
            .options(Options { permission_mode: Some(mode), ..options() })
            .can_use_tool(|_| PermissionResult::deny("no"))
            .start()
            .await
            .unwrap();
        host.run("Go.").await.unwrap();
        let mut expected = json!({"subtype": "can_use_tool", "tool_name": tool, "display_name": tool,
            "input": {"word": "a"}, "tool_use_id": "toolu_1_1", "mcp_server": {"name": "sh", "source": "dynamic"}});
        expected.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        assert_eq!(host.permission_requests(), [&expected], "{mode}");
    }
}

#[tokio::test]
async fn user_interaction_tool_always_asks() {
    let allow = json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow"}});
    let hook = json!([{"hooks": [{"type": "command", "command": format!("echo '{allow}'")}]}]);
    let hooks = Some(json!({"hooks": {"PreToolUse": hook}}).to_string());
    let bypass = Some(PermissionMode::BypassPermissions);
    let rows = [
        ("the mode", Options { permission_mode: bypass, ..options() }),
        (
            "a rule",
            Options { allowed_tools: vec!["mcp__sh__sign".into(), "mcp__sh__echo".into()], ..options() },
        ),
        ("a rule for the server", Options { allowed_tools: vec!["mcp__sh".into()], ..options() }),
        ("a hook", Options { settings: hooks, ..options() }),
    ];
    for (name, options) in rows {
        let script = [word_call("mcp__sh__echo", "a"), word_call("mcp__sh__sign", "b"), Reply::text("Done.")];
        let mut host = Host::with_script(script)
            .options(options)
            .can_use_tool(|_| PermissionResult::deny("not in my name"))
            .start()
            .await
            .unwrap();
        host.run("Go.").await.unwrap();
        let request = json!({"subtype": "can_use_tool", "tool_name": "mcp__sh__sign", "display_name": "mcp__sh__sign",
            "input": {"word": "b"}, "tool_use_id": "toolu_2_1", "mcp_server": {"name": "sh", "source": "dynamic"},
            "suppress_always_allow_rule": true, "requires_user_interaction": true});
        assert_eq!(host.permission_requests(), [&request], "{name}");
        let requests = host.model_requests();
        assert!(
            requests[1].contains_text("said: a") && requests[2].contains_text("not in my name"),
            "{name}"
        );
        assert!(!requests[2].contains_text("said: b"), "{name}");
    }
}
