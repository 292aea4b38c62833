//! Tests of callback hooks.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use whimbrel_wire::Frame;
use whimbrel_wire::control::{ControlResponse, Request};
use whimbrel_wire::hook::HookPermissionDecision;

use super::super::inputs::StopDetails;
use super::super::{MergedOutput, join_reasons};
use super::fixture::{HostReply, TestHooks, input_builder, pre_tool_use};

fn decision(folded: &MergedOutput) -> Option<(HookPermissionDecision, String)> {
    folded.decision.as_ref().map(|ruling| (ruling.decision, join_reasons(&ruling.reasons)))
}

fn reply_with(answer: Value) -> impl FnMut(&whimbrel_wire::control::HookCallback) -> HostReply {
    move |_| Some(Ok(answer.clone()))
}

#[tokio::test]
async fn a_callback_receives_the_input_and_decides() {
    let requests = Arc::new(Mutex::new(Vec::new()));
    let notes = Arc::clone(&requests);
    let hooks = json!({"PreToolUse": [{"matcher": "Bash", "hookCallbackIds": ["hook_0"]}], "Stop": [{"hookCallbackIds": ["hook_1"]}]});
    let fixture = TestHooks::with_host(&hooks, move |question| {
        notes.lock().unwrap().push(question.clone());
        Some(Ok(match question.callback_id.as_str() {
            "hook_0" => {
                json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny",
                "permissionDecisionReason": "not here"}})
            }
            _ => json!({}),
        }))
    });
    let folded = fixture.run_bash_hooks().await;
    assert_eq!(decision(&folded), Some((HookPermissionDecision::Deny, "not here".into())));
    assert_eq!(fixture.run(input_builder().stop(StopDetails::default())).await, MergedOutput::default());

    let requests = requests.lock().unwrap();
    assert_eq!(requests[0].tool_use_id.as_deref(), Some("toolu_1"));
    let input = serde_json::to_value(&requests[0].input).unwrap();
    assert_eq!((&input["tool_name"], &input["tool_input"]["command"]), (&json!("Bash"), &json!("ls")));
    let made_up = requests[1].tool_use_id.clone().unwrap();
    assert_eq!(made_up.len(), 36, "{made_up}");
}

#[tokio::test]
async fn all_callbacks_are_requested_concurrently() {
    let hooks = json!({"PreToolUse": [{"hookCallbackIds": ["a", "b"]}, {"matcher": "B.*", "hookCallbackIds": ["b", "c"]}]});
    let mut fixture = TestHooks::with_host(&hooks, |_| None);
    let raise = {
        let hooks = fixture.executor.clone();
        let cancel = fixture.cancel.clone();
        tokio::spawn(async move { hooks.run(pre_tool_use("Bash", &json!({})), &cancel).await })
    };
    // No response is sent before all requests have arrived, each once.
    let mut open = Vec::new();
    while open.len() < 3 {
        let Some(Frame::ControlRequest(requests)) = fixture.frames.recv().await else { panic!() };
        let Request::HookCallback(question) = requests.request else { panic!() };
        open.push((question.callback_id, requests.request_id));
    }
    let decisions = [("a", "allow"), ("b", "deny"), ("c", "ask")];
    for (id, request_id) in open.into_iter().rev() {
        let decision = decisions.iter().find(|(name, _)| *name == id).unwrap().1;
        let specific =
            json!({"hookEventName": "PreToolUse", "permissionDecision": decision, "additionalContext": id});
        let answer = ControlResponse::success(request_id, &json!({"hookSpecificOutput": specific}));
        fixture.deps.requests.handle_response(answer.response);
    }
    let folded = raise.await.unwrap();
    assert_eq!(decision(&folded), Some((HookPermissionDecision::Deny, String::new())));
    assert_eq!(folded.contexts, ["a", "b", "c"]);
}

#[tokio::test]
async fn a_failing_callback_blocks_only_if_required() {
    let failing: [(&str, HostReply, &str); 3] = [
        ("it fails", Some(Err("boom".into())), "boom"),
        ("it is silent", None, "it did not finish within 0.05 s"),
        ("it talks nonsense", Some(Ok(json!({"decision": "perhaps"}))), "decision"),
    ];
    for (name, reply, words) in failing {
        for policy in [None, Some("block")] {
            let group = json!([{"hookCallbackIds": ["h"], "timeout": 0.05, "onFailure": policy}]);
            let reply = reply.clone();
            let fixture = TestHooks::with_host(&json!({ "PreToolUse": group }), move |_| reply.clone());
            let folded = fixture.run_bash_hooks().await;
            let output = if policy == Some("block") {
                assert_eq!(folded.errors, [], "{name}");
                let (decision, reason) = decision(&folded).unwrap();
                assert_eq!(decision, HookPermissionDecision::Deny, "{name}");
                reason
            } else {
                assert_eq!(folded.decision, None, "{name}");
                join_reasons(&folded.errors)
            };
            assert!(output.contains(words), "{name}: {output}");
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
        let folded = fixture.run_bash_hooks().await;
        let (decision, reason) = decision(&folded).unwrap();
        assert_eq!(decision, HookPermissionDecision::Deny);
        let input = format!("{reason}{}", join_reasons(&folded.errors));
        assert!(input.contains("hookSpecificOutput.updatedInput"), "{input}");
    }
}

#[tokio::test]
async fn an_interrupt_withdraws_the_request() {
    let hooks = json!({"PreToolUse": [{"hookCallbackIds": ["h"]}]});
    let mut fixture = TestHooks::with_host(&hooks, |_| None);
    let raise = {
        let (hooks, cancel) = (fixture.executor.clone(), fixture.cancel.clone());
        tokio::spawn(async move { hooks.run(pre_tool_use("Bash", &json!({})), &cancel).await })
    };
    let Some(Frame::ControlRequest(requests)) = fixture.frames.recv().await else { panic!() };
    fixture.cancel.cancel();
    assert_eq!(raise.await.unwrap(), MergedOutput { interrupted: true, ..MergedOutput::default() });
    let Some(Frame::ControlCancel(cancel)) = fixture.frames.recv().await else { panic!() };
    assert_eq!(cancel.request_id, requests.request_id);
}

#[tokio::test]
async fn a_closed_host_denies_calls() {
    let fixture = TestHooks::with_host(&json!({"PreToolUse": [{"hookCallbackIds": ["h"]}]}), |_| None);
    fixture.deps.requests.close();
    let folded = fixture.run_bash_hooks().await;
    let (decision, reasons) = decision(&folded).unwrap();
    assert_eq!(decision, HookPermissionDecision::Deny);
    assert!(format!("{reasons:?}").contains("closed its input"), "{folded:?}");
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
    let cut = format!("{} [... 900 bytes left out to keep the line short]", "x".repeat(100));
    let specific = json!({"hookEventName": "PreToolUse", "permissionDecision": "allow", "updatedInput": {"content": cut, "more": 1}});
    let hooks = json!({"PreToolUse": [{"hookCallbackIds": ["h"]}]});
    let fixture = TestHooks::with_host(&hooks, reply_with(json!({"hookSpecificOutput": specific})));
    let folded = fixture.run(pre_tool_use("Write", &json!({"content": text}))).await;
    assert_eq!(folded.updated_input, json!({"content": text, "more": 1}).as_object().cloned());
}

#[tokio::test]
async fn callbacks_are_not_reported_as_progress() {
    let hooks = json!({"SessionStart": [{"hookCallbackIds": ["h"]}]});
    let mut fixture = TestHooks::with_host(&hooks, reply_with(json!({})));
    fixture.run(input_builder().session_start("resume", None, None)).await;
    assert!(matches!(fixture.frames.recv().await, Some(Frame::ControlRequest(_))));
    assert!(fixture.frames.try_recv().is_err());
}
