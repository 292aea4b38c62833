//! Elicitations of servers, progress, and permissions of MCP tools.

use serde_json::{Value, json};
use whimbrel_testkit::{Host, HostResponse, Reply};
use whimbrel_wire::control::{Interrupt, Request, SetMcpPermissionModeOverride};
use whimbrel_wire::options::{Options, PermissionPromptTool};
use whimbrel_wire::permission::{PermissionMode, PermissionResult};

use crate::fixture::{host, options, word_call};

/// Runs a session in which the server sends an elicitation, with these hooks; returns the answer it received.
async fn elicitation_result(hooks: Value, reply: Value) -> String {
    let mut host = host([word_call("mcp__sh__ask", ""), Reply::text("Done.")])
        .on_request(move |request| match request {
            Request::Elicitation(asked) => {
                assert_eq!((asked.mcp_server_name.as_str(), asked.message.as_str()), ("sh", "Who?"));
                HostResponse::Success(reply.clone())
            }
            other => HostResponse::Error(format!("no answer to {}", other.subtype())),
        })
        .configure(|options| options.settings = Some(json!({"hooks": hooks}).to_string()))
        .start()
        .await
        .unwrap();
    host.run("Go.").await.unwrap();
    host.model_requests()[1].last_text()
}

#[tokio::test]
async fn elicitation_goes_to_hooks_and_host() {
    let said = |text: &str| json!([{"hooks": [{"type": "command", "command": format!("echo '{text}'")}]}]);
    let by_hook = |event: &str, name: &str| {
        json!({"hookSpecificOutput": {"hookEventName": event, "action": "accept", "content": {"name": name}}})
            .to_string()
    };
    let accept = json!({"action": "accept", "content": {"name": "Ann"}});
    let rows = [
        ("the host answers", json!({}), accept.clone(), "name:Ann"),
        ("the host declines", json!({}), json!({"action": "decline"}), "action:decline"),
        (
            "a hook answers",
            json!({"Elicitation": said(&by_hook("Elicitation", "Bob"))}),
            accept.clone(),
            "name:Bob",
        ),
        (
            "a hook changes the answer",
            json!({"ElicitationResult": said(&by_hook("ElicitationResult", "Cy"))}),
            accept.clone(),
            "name:Cy",
        ),
        (
            "a hook blocks",
            json!({"Elicitation": said(r#"{"decision":"block","reason":"no"}"#)}),
            accept,
            "action:decline",
        ),
    ];
    for (name, hooks, reply, expected) in rows {
        let text = elicitation_result(hooks, reply).await;
        assert!(text.contains(expected), "{name}: {text}");
    }
}

#[tokio::test]
async fn elicitation_is_cancelled_without_a_responder() {
    let mut host = host([word_call("mcp__sh__ask", ""), Reply::text("Done.")]).start().await.unwrap();
    host.run("Go.").await.unwrap();
    assert!(
        host.model_requests()[1].contains_text("action:cancel"),
        "{}",
        host.model_requests()[1].last_text()
    );
}

#[tokio::test]
async fn interrupt_cancels_a_pending_elicitation() {
    let mut host = host([word_call("mcp__sh__ask", ""), Reply::text("After.")])
        .on_request(|request| match request {
            Request::Elicitation(_) => HostResponse::NoResponse,
            other => HostResponse::Error(format!("no answer to {}", other.subtype())),
        })
        .start()
        .await
        .unwrap();
    host.send_prompt("Go.").await.unwrap();
    let asked = host.next_matching(&json!({"request": {"subtype": "elicitation"}})).await.unwrap();
    let id = asked["request_id"].clone();
    host.send_request(Interrupt::default()).await.unwrap();
    host.next_matching(&json!({"type": "control_cancel_request", "request_id": id})).await.unwrap();
}

#[tokio::test]
async fn tool_progress_reaches_the_host() {
    let mut host = host([word_call("mcp__sh__step", ""), Reply::text("Done.")]).start().await.unwrap();
    host.run("Go.").await.unwrap();
    let progress = host.received().iter().find(|heard| heard.json["type"] == "tool_progress").unwrap();
    assert_eq!(progress.json["tool_name"], "mcp__sh__step");
    assert!(host.model_requests()[1].contains_text("stepped"));
}

#[tokio::test]
async fn mcp_tool_can_decide_permissions() {
    let rows = [
        ("mcp__sh__allow", None, true),
        ("mcp__sh__deny", Some("the tool says no"), false),
        ("mcp__sh__echo", Some("must answer with"), false),
        ("mcp__sh__nosuch", Some("Tool not found: mcp__sh__nosuch"), false),
    ];
    for (tool, expected, made) in rows {
        let prompt_tool = Some(PermissionPromptTool::Mcp(tool.into()));
        let script = [Reply::tool("Bash", json!({"command": "touch made"})), Reply::text("Done.")];
        let mut host = Host::with_script(script)
            .options(Options { permission_prompt_tool: prompt_tool, ..options() })
            .start()
            .await
            .unwrap();
        let result = host.run("Go.").await.unwrap();
        assert_eq!(host.dirs().workspace().join("made").exists(), made, "{tool}");
        assert_eq!(result.permission_denials.len(), usize::from(!made), "{tool}");
        let asked = host.model_requests();
        assert!(expected.is_none_or(|text| asked[1].contains_text(text)), "{tool}: {}", asked[1].last_text());
        assert!(!asked[0].tool_names().contains(&tool), "{tool} is not for the model");
    }
}

#[tokio::test]
async fn url_elicitation_completion_reaches_the_host() {
    let mut host = host([word_call("mcp__sh__send", ""), Reply::text("Done.")])
        .on_request(|request| match request {
            Request::Elicitation(asked) => {
                assert_eq!(
                    (asked.mode.as_deref(), asked.url.as_deref()),
                    (Some("url"), Some("https://pay.test/"))
                );
                assert_eq!(asked.elicitation_id.as_deref(), Some("e1"));
                HostResponse::Success(json!({"action": "accept"}))
            }
            other => HostResponse::Error(format!("no answer to {}", other.subtype())),
        })
        .start()
        .await
        .unwrap();
    host.run("Go.").await.unwrap();
    assert!(host.model_requests()[1].contains_text("sent"));
    let told = host.received().iter().filter(|heard| heard.json["subtype"] == "elicitation_complete");
    let told: Vec<_> =
        told.map(|heard| (&heard.json["mcp_server_name"], &heard.json["elicitation_id"])).collect();
    assert_eq!(told, [(&json!("sh"), &json!("e1"))], "once, and only of what was asked");
}

#[tokio::test]
async fn server_can_have_a_permission_mode_override() {
    let script = || [word_call("mcp__sh__echo", "a"), Reply::text("Done.")];
    let asked = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = std::sync::Arc::clone(&asked);
    let mut host = host([script(), script(), script()].concat())
        .can_use_tool(move |_| {
            count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            PermissionResult::allow()
        })
        .start()
        .await
        .unwrap();
    let override_as = |mode| SetMcpPermissionModeOverride { server_name: "sh".into(), mode };
    for (mode, questions) in [(None, 0), (Some(PermissionMode::Default), 1), (None, 1)] {
        host.send_request(override_as(mode)).await.unwrap();
        host.run("Go.").await.unwrap();
        assert_eq!(asked.load(std::sync::atomic::Ordering::SeqCst), questions, "{mode:?}");
    }
    assert!(host.send_request(override_as(Some(PermissionMode::BypassPermissions))).await.is_err());
    let stranger = SetMcpPermissionModeOverride { server_name: "who".into(), mode: None };
    assert!(host.send_request(stranger).await.unwrap_err().to_string().contains("Server not found: who"));
}

#[tokio::test]
async fn permission_request_names_the_server() {
    let tool = "mcp__sh__echo";
    let rule = json!({"type": "addRules", "rules": [{"toolName": tool}], "behavior": "allow", "destination": "localSettings"});
    let by_mode = json!({"permission_suggestions": [], "suppress_always_allow_rule": true,
        "decision_reason_type": "mode", "decision_reason": "The mode plan says so."});
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
        let question = json!({"subtype": "can_use_tool", "tool_name": "mcp__sh__sign", "display_name": "mcp__sh__sign",
            "input": {"word": "b"}, "tool_use_id": "toolu_2_1", "mcp_server": {"name": "sh", "source": "dynamic"},
            "suppress_always_allow_rule": true, "requires_user_interaction": true});
        assert_eq!(host.permission_requests(), [&question], "{name}");
        let asked = host.model_requests();
        assert!(asked[1].contains_text("said: a") && asked[2].contains_text("not in my name"), "{name}");
        assert!(!asked[2].contains_text("said: b"), "{name}");
    }
}
