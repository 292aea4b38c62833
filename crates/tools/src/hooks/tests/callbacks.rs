//! Tests of callback hooks.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use whimbrel_wire::Frame;
use whimbrel_wire::control::{ControlResponse, Request};
use whimbrel_wire::hook::HookPermissionDecision;

use super::super::inputs::StopDetails;
use super::super::{MergedOutput, join_reasons};
use super::fixture::{HostReply, TestHooks, input_builder, pre_tool_use};

fn decision(merged: &MergedOutput) -> Option<(HookPermissionDecision, String)> {
    merged.decision.as_ref().map(|decision| (decision.decision, join_reasons(&decision.reasons)))
}

fn reply_with(reply: Value) -> impl FnMut(&whimbrel_wire::control::HookCallback) -> HostReply {
    move |_| Some(Ok(reply.clone()))
}

#[tokio::test]
async fn a_callback_receives_the_input_and_decides() {
    let requests = Arc::new(Mutex::new(Vec::new()));
    let recorded = Arc::clone(&requests);
    let hooks = json!({"PreToolUse": [{"matcher": "Bash", "hookCallbackIds": ["hook_0"]}], "Stop": [{"hookCallbackIds": ["hook_1"]}]});
    let fixture = TestHooks::with_host(&hooks, move |callback| {
        recorded.lock().unwrap().push(callback.clone());
        Some(Ok(match callback.callback_id.as_str() {
            "hook_0" => {
                json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny",
                "permissionDecisionReason": "not here"}})
            }
            _ => json!({}),
        }))
    });
    let merged = fixture.run_bash_hooks().await;
    assert_eq!(decision(&merged), Some((HookPermissionDecision::Deny, "not here".into())));
    assert_eq!(fixture.run(input_builder().stop(StopDetails::default())).await, MergedOutput::default());

    let requests = requests.lock().unwrap();
    assert_eq!(requests[0].tool_use_id.as_deref(), Some("toolu_1"));
    let input = serde_json::to_value(&requests[0].input).unwrap();
    assert_eq!((&input["tool_name"], &input["tool_input"]["command"]), (&json!("Bash"), &json!("ls")));
    let generated = requests[1].tool_use_id.clone().unwrap();
    assert_eq!(generated.len(), 36, "{generated}");
}

#[tokio::test]
async fn all_callbacks_are_requested_concurrently() {
    let hooks = json!({"PreToolUse": [{"hookCallbackIds": ["a", "b"]}, {"matcher": "B.*", "hookCallbackIds": ["b", "c"]}]});
    let mut fixture = TestHooks::with_host(&hooks, |_| None);
    let run = {
        let hooks = fixture.executor.clone();
        let cancel = fixture.cancel.clone();
        tokio::spawn(async move { hooks.run(pre_tool_use("Bash", &json!({})), &cancel).await })
    };
    // No response is sent before all requests have arrived, each once.
    let mut pending = Vec::new();
    while pending.len() < 3 {
        let Some(Frame::ControlRequest(request)) = fixture.frames.recv().await else { panic!() };
        let Request::HookCallback(callback) = request.request else { panic!() };
        pending.push((callback.callback_id, request.request_id));
    }
    let decisions = [("a", "allow"), ("b", "deny"), ("c", "ask")];
    for (id, request_id) in pending.into_iter().rev() {
        let decision = decisions.iter().find(|(name, _)| *name == id).unwrap().1;
        let specific =
            json!({"hookEventName": "PreToolUse", "permissionDecision": decision, "additionalContext": id});
        let response = ControlResponse::success(request_id, &json!({"hookSpecificOutput": specific}));
        fixture.deps.requests.handle_response(response.response);
    }
    let merged = run.await.unwrap();
    assert_eq!(decision(&merged), Some((HookPermissionDecision::Deny, String::new())));
    assert_eq!(merged.contexts, ["a", "b", "c"]);
}

#[tokio::test]
async fn a_failing_callback_blocks_only_if_required() {
    let failing: [(&str, HostReply, &str); 3] = [
        ("it fails", Some(Err("boom".into())), "boom"),
        ("it is silent", None, "it did not finish within 0.05 s"),
        ("its output is invalid", Some(Ok(json!({"decision": "perhaps"}))), "decision"),
    ];
    for (name, reply, expected) in failing {
        for policy in [None, Some("block")] {
            let group = json!([{"hookCallbackIds": ["h"], "timeout": 0.05, "onFailure": policy}]);
            let reply = reply.clone();
            let fixture = TestHooks::with_host(&json!({ "PreToolUse": group }), move |_| reply.clone());
            let merged = fixture.run_bash_hooks().await;
            let output = if policy == Some("block") {
                assert_eq!(merged.errors, [], "{name}");
                let (decision, reason) = decision(&merged).unwrap();
                assert_eq!(decision, HookPermissionDecision::Deny, "{name}");
                reason
            } else {
                assert_eq!(merged.decision, None, "{name}");
                join_reasons(&merged.errors)
            };
            assert!(output.contains(expected), "{name}: {output}");
        }
    }
}

#[tokio::test]
async fn a_deny_counts_although_the_rest_is_invalid() {
    let specific = json!({"hookEventName": "PreToolUse", "permissionDecision": "deny", "updatedInput": "rm"});
    let hooks =
        |policy: Option<&str>| json!({"PreToolUse": [{"hookCallbackIds": ["h"], "onFailure": policy}]});
    for policy in [None, Some("block")] {
        let fixture =
            TestHooks::with_host(&hooks(policy), reply_with(json!({ "hookSpecificOutput": specific })));
        let merged = fixture.run_bash_hooks().await;
        let (decision, reason) = decision(&merged).unwrap();
        assert_eq!(decision, HookPermissionDecision::Deny);
        let input = format!("{reason}{}", join_reasons(&merged.errors));
        assert!(input.contains("hookSpecificOutput.updatedInput"), "{input}");
    }
}

#[tokio::test]
async fn an_interrupt_withdraws_the_request() {
    let hooks = json!({"PreToolUse": [{"hookCallbackIds": ["h"]}]});
    let mut fixture = TestHooks::with_host(&hooks, |_| None);
    let run = {
        let (hooks, cancel) = (fixture.executor.clone(), fixture.cancel.clone());
        tokio::spawn(async move { hooks.run(pre_tool_use("Bash", &json!({})), &cancel).await })
    };
    let Some(Frame::ControlRequest(request)) = fixture.frames.recv().await else { panic!() };
    fixture.cancel.cancel();
    assert_eq!(run.await.unwrap(), MergedOutput { interrupted: true, ..MergedOutput::default() });
    let Some(Frame::ControlCancel(cancel)) = fixture.frames.recv().await else { panic!() };
    assert_eq!(cancel.request_id, request.request_id);
}

#[tokio::test]
async fn a_closed_host_denies_calls() {
    let fixture = TestHooks::with_host(&json!({"PreToolUse": [{"hookCallbackIds": ["h"]}]}), |_| None);
    fixture.deps.requests.close();
    let merged = fixture.run_bash_hooks().await;
    let (decision, reasons) = decision(&merged).unwrap();
    assert_eq!(decision, HookPermissionDecision::Deny);
    assert!(format!("{reasons:?}").contains("closed its input"), "{merged:?}");
}

#[tokio::test]
async fn an_async_callback_is_not_awaited() {
    let hooks = json!({"PreToolUse": [{"hookCallbackIds": ["h"], "onFailure": "block"}]});
    let fixture = TestHooks::with_host(&hooks, reply_with(json!({"async": true, "asyncTimeout": 5})));
    assert_eq!(fixture.run_bash_hooks().await, MergedOutput::default());
}

#[tokio::test]
async fn truncated_input_is_restored() {
    let text = "x".repeat(1_000);
    let truncated = format!("{} [... 900 bytes left out to keep the line short]", "x".repeat(100));
    let specific = json!({"hookEventName": "PreToolUse", "permissionDecision": "allow", "updatedInput": {"content": truncated, "more": 1}});
    let hooks = json!({"PreToolUse": [{"hookCallbackIds": ["h"]}]});
    let fixture = TestHooks::with_host(&hooks, reply_with(json!({"hookSpecificOutput": specific})));
    let merged = fixture.run(pre_tool_use("Write", &json!({"content": text}))).await;
    assert_eq!(merged.updated_input, json!({"content": text, "more": 1}).as_object().cloned());
}

#[tokio::test]
async fn callbacks_are_not_reported_as_progress() {
    let hooks = json!({"SessionStart": [{"hookCallbackIds": ["h"]}]});
    let mut fixture = TestHooks::with_host(&hooks, reply_with(json!({})));
    fixture.run(input_builder().session_start("resume", None, None)).await;
    assert!(matches!(fixture.frames.recv().await, Some(Frame::ControlRequest(_))));
    assert!(fixture.frames.try_recv().is_err());
}
