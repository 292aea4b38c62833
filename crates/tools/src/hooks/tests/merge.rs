//! Tests of merging.

use proptest::prelude::*;
use serde_json::{Value, json};
use whimbrel_wire::hook::{HookEvent, HookPermissionDecision};
use whimbrel_wire::permission::PermissionResult;

use super::super::merge::{
    EventSpecific, HookReason, MergedDecision, MergedOutput, StopRequest, join_reasons, merge,
};
use super::super::output::{HookResult, ParsedOutput};

fn output(json: Value) -> ParsedOutput {
    ParsedOutput::Output(Box::new(serde_json::from_value(json).unwrap()))
}

fn output_for_event(event: HookEvent, mut fields: Value) -> ParsedOutput {
    fields["hookEventName"] = event.as_str().into();
    output(json!({ "hookSpecificOutput": fields }))
}

fn decides(decision: &str) -> ParsedOutput {
    output_for_event(
        HookEvent::PreToolUse,
        json!({"permissionDecision": decision, "permissionDecisionReason": decision}),
    )
}

fn block(reason: &str) -> ParsedOutput {
    ParsedOutput::Block { reason: reason.into(), output: None }
}

/// Merges outputs of hooks named 0, 1, ...
fn merge_all(event: HookEvent, parsed: Vec<ParsedOutput>) -> MergedOutput {
    let named = parsed.into_iter().enumerate();
    let results =
        named.map(|(number, parsed)| HookResult { hook: number.to_string().into(), output: parsed });
    let input = json!({"n": 0});
    merge(event, (event == HookEvent::PreToolUse).then_some(&input), results.collect())
}

fn reasons(rows: &[(&str, &str)]) -> Vec<HookReason> {
    rows.iter().map(|(hook, text)| HookReason { hook: (*hook).into(), text: (*text).into() }).collect()
}

fn decision(decision: HookPermissionDecision, rows: &[(&str, &str)]) -> MergedOutput {
    MergedOutput {
        decision: Some(MergedDecision { decision, reasons: reasons(rows) }),
        ..MergedOutput::default()
    }
}

#[test]
fn the_strictest_decision_wins() {
    use HookPermissionDecision::{Allow, Ask, Defer, Deny};
    let legacy = |decision: &str| output(json!({"decision": decision, "reason": decision}));
    for (name, parsed, expected) in [
        ("no hook", vec![], MergedOutput::default()),
        (
            "no decision",
            vec![ParsedOutput::Empty, ParsedOutput::Async, ParsedOutput::Text("x".into())],
            MergedOutput::default(),
        ),
        ("allow", vec![decides("allow")], decision(Allow, &[("0", "allow")])),
        ("ask before allow", vec![decides("ask"), decides("allow")], decision(Ask, &[("0", "ask")])),
        ("defer before ask", vec![decides("ask"), decides("defer")], decision(Defer, &[("1", "defer")])),
        (
            "deny before all",
            vec![decides("deny"), decides("defer"), decides("allow")],
            decision(Deny, &[("0", "deny")]),
        ),
        (
            "all reasons of the decision are kept",
            vec![decides("deny"), ParsedOutput::Empty, decides("deny")],
            decision(Deny, &[("0", "deny"), ("2", "deny")]),
        ),
        ("the older form", vec![legacy("approve"), legacy("block")], decision(Deny, &[("1", "block")])),
        ("approve is allow", vec![legacy("approve")], decision(Allow, &[("0", "approve")])),
        ("code 2 denies", vec![decides("allow"), block("no")], decision(Deny, &[("1", "no")])),
    ] {
        assert_eq!(merge_all(HookEvent::PreToolUse, parsed), expected, "{name}");
    }
}

#[test]
fn an_allow_covers_what_its_hook_saw_or_wrote() {
    use HookPermissionDecision::{Allow, Ask, Deny};
    let writes = |n: u32, decision: Option<&str>| {
        output_for_event(
            HookEvent::PreToolUse,
            json!({"updatedInput": {"n": n}, "permissionDecision": decision, "permissionDecisionReason": decision}),
        )
    };
    let legacy = || output(json!({"decision": "approve", "reason": "old"}));
    let (allow, deny) = (Some("allow"), Some("deny"));
    for (name, parsed, verdict, input) in [
        ("no hook changes the input", vec![decides("allow")], Some((Allow, vec!["0"])), None),
        ("another hook writes", vec![decides("allow"), writes(1, None)], None, Some(1)),
        ("another hook writes, in any order", vec![writes(1, None), decides("allow")], None, Some(1)),
        ("the legacy form covers no more", vec![legacy(), writes(1, None)], None, Some(1)),
        ("the writer allows", vec![decides("allow"), writes(1, allow)], Some((Allow, vec!["1"])), Some(1)),
        ("a writer whose input is not used", vec![writes(1, allow), writes(2, None)], None, Some(2)),
        (
            "two that write the same",
            vec![writes(1, allow), writes(1, None)],
            Some((Allow, vec!["0"])),
            Some(1),
        ),
        (
            "the original input is written back",
            vec![decides("allow"), writes(0, None)],
            Some((Allow, vec!["0"])),
            Some(0),
        ),
        (
            "other decisions hold for any input",
            vec![decides("ask"), writes(1, allow)],
            Some((Ask, vec!["0"])),
            Some(1),
        ),
        (
            "a deny holds for any input",
            vec![writes(1, deny), writes(2, allow)],
            Some((Deny, vec!["0"])),
            Some(2),
        ),
    ] {
        let merged = merge_all(HookEvent::PreToolUse, parsed);
        let actual = merged.decision.map(|decision| {
            let hooks: Vec<String> = decision.reasons.iter().map(|reason| reason.hook.to_string()).collect();
            (decision.decision, hooks)
        });
        let expected =
            verdict.map(|(decision, hooks)| (decision, hooks.into_iter().map(String::from).collect()));
        assert_eq!(actual, expected, "{name}");
        assert_eq!(
            merged.updated_input,
            input.and_then(|n: u32| json!({ "n": n }).as_object().cloned()),
            "{name}"
        );
    }
}

#[test]
fn a_partly_invalid_output_is_reported_and_blocks() {
    let blocking = Box::new(serde_json::from_value(json!({"decision": "block", "reason": "no"})).unwrap());
    let merged =
        merge_all(HookEvent::PreToolUse, vec![ParsedOutput::Partial { blocking, error: "bad".into() }]);
    let expected = MergedOutput {
        errors: reasons(&[("0", "bad")]),
        ..decision(HookPermissionDecision::Deny, &[("0", "no")])
    };
    assert_eq!(merged, expected);
}

#[test]
fn the_effect_of_a_block_depends_on_the_event() {
    for event in HookEvent::ALL {
        use HookEvent as On;
        let merged = merge_all(*event, vec![block("no")]);
        let objections = reasons(&[("0", "no")]);
        let expected = match event {
            On::PreToolUse | On::PreModelSwitch => decision(HookPermissionDecision::Deny, &[("0", "no")]),
            On::PermissionRequest => MergedOutput {
                permission_result: Some(PermissionResult::deny("no")),
                ..MergedOutput::default()
            },
            On::PostToolUse | On::PostToolUseFailure => {
                MergedOutput { feedback: objections, ..MergedOutput::default() }
            }
            On::UserPromptSubmit
            | On::UserPromptExpansion
            | On::Stop
            | On::SubagentStop
            | On::PostToolBatch
            | On::PreCompact
            | On::TeammateIdle
            | On::TaskCreated
            | On::TaskCompleted
            | On::ConfigChange
            | On::Elicitation
            | On::ElicitationResult
            | On::WorktreeCreate
            | On::WorktreeRemove => MergedOutput { blocked: objections, ..MergedOutput::default() },
            _ => MergedOutput { errors: objections, ..MergedOutput::default() },
        };
        assert_eq!(merged, expected, "{event}");
        assert_eq!(
            merge_all(*event, vec![output(json!({"decision": "block", "reason": "no"}))]),
            expected,
            "{event}"
        );
    }
}

#[test]
fn lists_are_concatenated_and_single_values_replaced() {
    let answer = |n: u32| {
        let specific = json!({"hookEventName": "PreToolUse", "additionalContext": format!("c{n}"), "updatedInput": {"n": n}});
        output(json!({"systemMessage": format!("m{n}"), "hookSpecificOutput": specific}))
    };
    let merged = merge_all(HookEvent::PreToolUse, vec![answer(1), answer(2)]);
    assert_eq!(merged.contexts, ["c1", "c2"]);
    let expected = MergedOutput {
        contexts: vec!["c1".into(), "c2".into()],
        system_messages: vec!["m1".into(), "m2".into()],
        updated_input: json!({"n": 2}).as_object().cloned(),
        ..MergedOutput::default()
    };
    assert_eq!(merged, expected);
}

#[test]
fn one_stop_request_is_enough() {
    let stop = |reason: Option<&str>| output(json!({"continue": false, "stopReason": reason}));
    for (name, parsed, expected) in [
        ("no hook stops", vec![output(json!({"continue": true}))], None),
        ("one does", vec![ParsedOutput::Empty, stop(Some("a"))], Some(Some("a"))),
        ("without a reason", vec![stop(None)], Some(None)),
        ("the first reason counts", vec![stop(None), stop(Some("a")), stop(Some("b"))], Some(Some("a"))),
    ] {
        let expected = expected.map(|reason| StopRequest { reason: reason.map(Into::into) });
        assert_eq!(merge_all(HookEvent::Stop, parsed).stop, expected, "{name}");
    }
}

#[test]
fn text_is_context_where_the_event_says_so() {
    let output = || vec![ParsedOutput::Text("hello".into())];
    for event in [
        HookEvent::UserPromptSubmit,
        HookEvent::UserPromptExpansion,
        HookEvent::SessionStart,
        HookEvent::PostModelSwitch,
    ] {
        assert_eq!(merge_all(event, output()).contexts, ["hello"], "{event}");
    }
    assert_eq!(merge_all(HookEvent::PostToolUse, output()), MergedOutput::default());
    let merged = merge_all(HookEvent::WorktreeCreate, output());
    assert_eq!(merged.event_specific.worktree_path.as_deref(), Some("hello"));
}

#[test]
fn a_deny_wins_over_an_allow() {
    let allow = |n: u32| {
        output_for_event(
            HookEvent::PermissionRequest,
            json!({"decision": {"behavior": "allow", "updatedInput": {"n": n}}}),
        )
    };
    let deny = || {
        output_for_event(
            HookEvent::PermissionRequest,
            json!({"decision": {"behavior": "deny", "message": "no"}}),
        )
    };
    let permission = |output| merge_all(HookEvent::PermissionRequest, output).permission_result;
    assert_eq!(permission(vec![ParsedOutput::Empty]), None);
    assert_eq!(permission(vec![allow(1), deny(), allow(2)]), Some(PermissionResult::deny("no")));
    let Some(PermissionResult::Allow { updated_input, .. }) = permission(vec![allow(1), allow(2)]) else {
        panic!()
    };
    assert_eq!(updated_input, json!({"n": 1}).as_object().cloned());
}

#[test]
fn each_event_has_its_own_fields() {
    use HookEvent as On;
    let event_specific = |event_specific| MergedOutput { event_specific, ..MergedOutput::default() };
    let context = |text: &str| MergedOutput { contexts: vec![text.into()], ..MergedOutput::default() };
    let rows = vec![
        (
            On::PostToolUse,
            json!({"updatedToolOutput": 1, "updatedMCPToolOutput": 2}),
            MergedOutput {
                tool_output: Some(json!(1)),
                mcp_tool_output: Some(json!(2)),
                ..MergedOutput::default()
            },
        ),
        (On::PostToolUseFailure, json!({"additionalContext": "c"}), context("c")),
        (On::Stop, json!({"additionalContext": "c"}), context("c")),
        (On::SubagentStart, json!({"additionalContext": "c"}), context("c")),
        (
            On::PermissionDenied,
            json!({"retry": true}),
            event_specific(EventSpecific { retry: true, ..EventSpecific::default() }),
        ),
        (
            On::UserPromptSubmit,
            json!({"sessionTitle": "t", "suppressOriginalPrompt": true}),
            event_specific(EventSpecific {
                session_title: Some("t".into()),
                suppress_original_prompt: true,
                ..EventSpecific::default()
            }),
        ),
        (
            On::SessionStart,
            json!({"initialUserMessage": "hi", "sessionTitle": "t"}),
            event_specific(EventSpecific {
                initial_user_message: Some("hi".into()),
                session_title: Some("t".into()),
                ..EventSpecific::default()
            }),
        ),
        (
            On::WorktreeCreate,
            json!({"worktreePath": "/w"}),
            event_specific(EventSpecific { worktree_path: Some("/w".into()), ..EventSpecific::default() }),
        ),
        (
            On::PreModelSwitch,
            json!({"permissionDecision": "ask"}),
            decision(HookPermissionDecision::Ask, &[]),
        ),
    ];
    for (event, fields, expected) in rows {
        assert_eq!(merge_all(event, vec![output_for_event(event, fields)]), expected, "{event}");
    }
}

#[test]
fn declining_an_elicitation_wins_over_accepting() {
    let action = |action: &str| output_for_event(HookEvent::Elicitation, json!({ "action": action }));
    let merged =
        merge_all(HookEvent::Elicitation, vec![action("accept"), action("decline"), action("cancel")]);
    let elicitation = serde_json::to_value(merged.event_specific.elicitation).unwrap();
    assert_eq!(elicitation, json!({"action": "decline"}));
}

#[test]
fn failures_and_interruptions_are_recorded() {
    let output = vec![
        ParsedOutput::Failed("broke".into()),
        ParsedOutput::TimedOut(std::time::Duration::from_millis(1_500)),
        ParsedOutput::Cancelled,
    ];
    let expected = MergedOutput {
        errors: reasons(&[("0", "broke"), ("1", "it did not finish within 1.5 s")]),
        interrupted: true,
        ..MergedOutput::default()
    };
    let merged = merge_all(HookEvent::PreToolUse, output);
    assert_eq!(join_reasons(&merged.errors), "broke\nit did not finish within 1.5 s");
    assert_eq!(merged, expected);
}

proptest! {
    #[test]
    fn the_decision_ignores_order(order in Just((0..6).collect::<Vec<usize>>()).prop_shuffle(), from in 0usize..6) {
        let words = ["allow", "ask", "defer", "deny"];
        let output = |number: usize| match number {
            4 => block("no"),
            5 => ParsedOutput::Empty,
            number => decides(words[number]),
        };
        let decision = |order: &[usize]| {
            let merged = merge_all(HookEvent::PreToolUse, order.iter().map(|number| output(*number)).collect());
            merged.decision.map(|merged| merged.decision)
        };
        let mut sorted = order[from..].to_vec();
        sorted.sort_unstable();
        prop_assert_eq!(decision(&order[from..]), decision(&sorted));
    }
}
