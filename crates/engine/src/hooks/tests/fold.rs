//! How many answers become one.

use proptest::prelude::*;
use serde_json::{Value, json};
use whimbrel_wire::hook::{HookEvent, HookPermissionDecision};
use whimbrel_wire::permission::PermissionResult;

use super::super::fold::{Folded, Reason, Ruling, Special, Stop, fold, joined};
use super::super::outcome::{Outcome, Said};

fn says(json: Value) -> Said {
    Said::Answer(Box::new(serde_json::from_value(json).unwrap()))
}

fn for_event(event: HookEvent, mut fields: Value) -> Said {
    fields["hookEventName"] = event.as_str().into();
    says(json!({ "hookSpecificOutput": fields }))
}

fn rules(decision: &str) -> Said {
    for_event(
        HookEvent::PreToolUse,
        json!({"permissionDecision": decision, "permissionDecisionReason": decision}),
    )
}

fn blocks(reason: &str) -> Said {
    Said::Block { reason: reason.into(), besides: None }
}

/// Hooks named 0, 1, ...
fn all(event: HookEvent, said: Vec<Said>) -> Folded {
    let named = said.into_iter().enumerate();
    let outcomes = named.map(|(number, said)| Outcome { hook: number.to_string().into(), said });
    let seen = json!({"n": 0});
    fold(event, (event == HookEvent::PreToolUse).then_some(&seen), outcomes.collect())
}

fn reasons(rows: &[(&str, &str)]) -> Vec<Reason> {
    rows.iter().map(|(hook, text)| Reason { hook: (*hook).into(), text: (*text).into() }).collect()
}

fn ruling(decision: HookPermissionDecision, rows: &[(&str, &str)]) -> Folded {
    Folded { ruling: Some(Ruling { decision, reasons: reasons(rows) }), ..Folded::default() }
}

#[test]
fn the_strictest_verdict_on_a_call_counts() {
    use HookPermissionDecision::{Allow, Ask, Defer, Deny};
    let old = |decision: &str| says(json!({"decision": decision, "reason": decision}));
    for (name, said, expected) in [
        ("no hook", vec![], Folded::default()),
        ("no opinion", vec![Said::Nothing, Said::Later, Said::Text("x".into())], Folded::default()),
        ("allow", vec![rules("allow")], ruling(Allow, &[("0", "allow")])),
        ("ask before allow", vec![rules("ask"), rules("allow")], ruling(Ask, &[("0", "ask")])),
        ("defer before ask", vec![rules("ask"), rules("defer")], ruling(Defer, &[("1", "defer")])),
        (
            "deny before all",
            vec![rules("deny"), rules("defer"), rules("allow")],
            ruling(Deny, &[("0", "deny")]),
        ),
        (
            "all reasons of the verdict are kept",
            vec![rules("deny"), Said::Nothing, rules("deny")],
            ruling(Deny, &[("0", "deny"), ("2", "deny")]),
        ),
        ("the older form", vec![old("approve"), old("block")], ruling(Deny, &[("1", "block")])),
        ("approve is allow", vec![old("approve")], ruling(Allow, &[("0", "approve")])),
        ("code 2 denies", vec![rules("allow"), blocks("no")], ruling(Deny, &[("1", "no")])),
    ] {
        assert_eq!(all(HookEvent::PreToolUse, said), expected, "{name}");
    }
}

#[test]
fn an_allow_covers_what_its_hook_saw_or_wrote() {
    use HookPermissionDecision::{Allow, Ask, Deny};
    let writes = |n: u32, decision: Option<&str>| {
        for_event(
            HookEvent::PreToolUse,
            json!({"updatedInput": {"n": n}, "permissionDecision": decision, "permissionDecisionReason": decision}),
        )
    };
    let old = || says(json!({"decision": "approve", "reason": "old"}));
    let (allow, deny) = (Some("allow"), Some("deny"));
    for (name, said, verdict, input) in [
        ("nobody writes", vec![rules("allow")], Some((Allow, vec!["0"])), None),
        ("another writes", vec![rules("allow"), writes(1, None)], None, Some(1)),
        ("another writes, in whichever order", vec![writes(1, None), rules("allow")], None, Some(1)),
        ("the older form is no wider", vec![old(), writes(1, None)], None, Some(1)),
        ("the writer allows", vec![rules("allow"), writes(1, allow)], Some((Allow, vec!["1"])), Some(1)),
        ("a writer whose input is not used", vec![writes(1, allow), writes(2, None)], None, Some(2)),
        (
            "two that write the same",
            vec![writes(1, allow), writes(1, None)],
            Some((Allow, vec!["0"])),
            Some(1),
        ),
        (
            "what was seen is written back",
            vec![rules("allow"), writes(0, None)],
            Some((Allow, vec!["0"])),
            Some(0),
        ),
        (
            "other verdicts hold for any input",
            vec![rules("ask"), writes(1, allow)],
            Some((Ask, vec!["0"])),
            Some(1),
        ),
        ("a denial too", vec![writes(1, deny), writes(2, allow)], Some((Deny, vec!["0"])), Some(2)),
    ] {
        let folded = all(HookEvent::PreToolUse, said);
        let ruled = folded.ruling.map(|ruling| {
            let hooks: Vec<String> = ruling.reasons.iter().map(|reason| reason.hook.to_string()).collect();
            (ruling.decision, hooks)
        });
        let expected =
            verdict.map(|(decision, hooks)| (decision, hooks.into_iter().map(String::from).collect()));
        assert_eq!(ruled, expected, "{name}");
        assert_eq!(
            folded.updated_input,
            input.and_then(|n: u32| json!({ "n": n }).as_object().cloned()),
            "{name}"
        );
    }
}

#[test]
fn an_answer_that_is_wrong_in_part_is_told_and_holds() {
    let legible = Box::new(serde_json::from_value(json!({"decision": "block", "reason": "no"})).unwrap());
    let folded = all(HookEvent::PreToolUse, vec![Said::Flawed { legible, flaw: "bad".into() }]);
    let expected =
        Folded { faults: reasons(&[("0", "bad")]), ..ruling(HookPermissionDecision::Deny, &[("0", "no")]) };
    assert_eq!(folded, expected);
}

#[test]
fn a_block_means_what_the_event_makes_of_it() {
    for event in HookEvent::ALL {
        use HookEvent as On;
        let folded = all(*event, vec![blocks("no")]);
        let told = reasons(&[("0", "no")]);
        let expected = match event {
            On::PreToolUse | On::PreModelSwitch => ruling(HookPermissionDecision::Deny, &[("0", "no")]),
            On::PermissionRequest => {
                Folded { permission: Some(PermissionResult::deny("no")), ..Folded::default() }
            }
            On::PostToolUse | On::PostToolUseFailure => Folded { feedback: told, ..Folded::default() },
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
            | On::WorktreeRemove => Folded { blocked: told, ..Folded::default() },
            _ => Folded { faults: told, ..Folded::default() },
        };
        assert_eq!(folded, expected, "{event}");
        assert_eq!(
            all(*event, vec![says(json!({"decision": "block", "reason": "no"}))]),
            expected,
            "{event}"
        );
    }
}

#[test]
fn what_is_added_adds_up_and_what_is_single_is_the_last() {
    let answer = |n: u32| {
        let specific = json!({"hookEventName": "PreToolUse", "additionalContext": format!("c{n}"), "updatedInput": {"n": n}});
        says(json!({"systemMessage": format!("m{n}"), "hookSpecificOutput": specific}))
    };
    let folded = all(HookEvent::PreToolUse, vec![answer(1), answer(2)]);
    assert_eq!(folded.contexts, ["c1", "c2"]);
    let expected = Folded {
        contexts: vec!["c1".into(), "c2".into()],
        system_messages: vec!["m1".into(), "m2".into()],
        updated_input: json!({"n": 2}).as_object().cloned(),
        ..Folded::default()
    };
    assert_eq!(folded, expected);
}

#[test]
fn one_wish_to_stop_is_enough() {
    let stop = |reason: Option<&str>| says(json!({"continue": false, "stopReason": reason}));
    for (name, said, expected) in [
        ("nobody wants to", vec![says(json!({"continue": true}))], None),
        ("one does", vec![Said::Nothing, stop(Some("a"))], Some(Some("a"))),
        ("without a reason", vec![stop(None)], Some(None)),
        ("the first reason counts", vec![stop(None), stop(Some("a")), stop(Some("b"))], Some(Some("a"))),
    ] {
        let expected = expected.map(|reason| Stop { reason: reason.map(Into::into) });
        assert_eq!(all(HookEvent::Stop, said).stop, expected, "{name}");
    }
}

#[test]
fn text_is_context_where_the_event_says_so() {
    let said = || vec![Said::Text("hello".into())];
    for event in [
        HookEvent::UserPromptSubmit,
        HookEvent::UserPromptExpansion,
        HookEvent::SessionStart,
        HookEvent::PostModelSwitch,
    ] {
        assert_eq!(all(event, said()).contexts, ["hello"], "{event}");
    }
    assert_eq!(all(HookEvent::PostToolUse, said()), Folded::default());
    let folded = all(HookEvent::WorktreeCreate, said());
    assert_eq!(folded.special.worktree_path.as_deref(), Some("hello"));
}

#[test]
fn a_no_in_the_persons_place_counts_before_a_yes() {
    let allow = |n: u32| {
        for_event(
            HookEvent::PermissionRequest,
            json!({"decision": {"behavior": "allow", "updatedInput": {"n": n}}}),
        )
    };
    let deny = || {
        for_event(HookEvent::PermissionRequest, json!({"decision": {"behavior": "deny", "message": "no"}}))
    };
    let permission = |said| all(HookEvent::PermissionRequest, said).permission;
    assert_eq!(permission(vec![Said::Nothing]), None);
    assert_eq!(permission(vec![allow(1), deny(), allow(2)]), Some(PermissionResult::deny("no")));
    let Some(PermissionResult::Allow { updated_input, .. }) = permission(vec![allow(1), allow(2)]) else {
        panic!()
    };
    assert_eq!(updated_input, json!({"n": 1}).as_object().cloned());
}

#[test]
fn each_event_has_answers_of_its_own() {
    use HookEvent as On;
    let special = |special| Folded { special, ..Folded::default() };
    let context = |text: &str| Folded { contexts: vec![text.into()], ..Folded::default() };
    let rows = vec![
        (
            On::PostToolUse,
            json!({"updatedToolOutput": 1, "updatedMCPToolOutput": 2, "classifierContext": "c"}),
            Folded {
                tool_output: Some(json!(1)),
                mcp_tool_output: Some(json!(2)),
                special: Special { classifier_contexts: vec!["c".into()], ..Special::default() },
                ..Folded::default()
            },
        ),
        (On::PostToolUseFailure, json!({"additionalContext": "c"}), context("c")),
        (On::Stop, json!({"additionalContext": "c"}), context("c")),
        (On::SubagentStart, json!({"additionalContext": "c"}), context("c")),
        (
            On::PermissionDenied,
            json!({"retry": true}),
            special(Special { retry: true, ..Special::default() }),
        ),
        (
            On::UserPromptSubmit,
            json!({"sessionTitle": "t", "suppressOriginalPrompt": true}),
            special(Special {
                session_title: Some("t".into()),
                suppress_original_prompt: true,
                ..Special::default()
            }),
        ),
        (
            On::SessionStart,
            json!({"initialUserMessage": "hi", "sessionTitle": "t", "watchPaths": ["/a"], "reloadSkills": true}),
            special(Special {
                initial_user_message: Some("hi".into()),
                session_title: Some("t".into()),
                watch_paths: vec!["/a".into()],
                reload_skills: true,
                ..Special::default()
            }),
        ),
        (
            On::MessageDisplay,
            json!({"displayContent": "d"}),
            special(Special { display_content: Some("d".into()), ..Special::default() }),
        ),
        (
            On::WorktreeCreate,
            json!({"worktreePath": "/w"}),
            special(Special { worktree_path: Some("/w".into()), ..Special::default() }),
        ),
        (On::PreModelSwitch, json!({"permissionDecision": "ask"}), ruling(HookPermissionDecision::Ask, &[])),
    ];
    for (event, fields, expected) in rows {
        assert_eq!(all(event, vec![for_event(event, fields)]), expected, "{event}");
    }
}

#[test]
fn declining_a_server_counts_before_accepting() {
    let action = |action: &str| for_event(HookEvent::Elicitation, json!({ "action": action }));
    let folded = all(HookEvent::Elicitation, vec![action("accept"), action("decline"), action("cancel")]);
    let given = serde_json::to_value(folded.special.elicitation).unwrap();
    assert_eq!(given, json!({"action": "decline"}));
}

#[test]
fn failures_are_told_and_interruptions_noted() {
    let said = vec![
        Said::Fault("broke".into()),
        Said::TimedOut(std::time::Duration::from_millis(1_500)),
        Said::Cancelled,
    ];
    let expected = Folded {
        faults: reasons(&[("0", "broke"), ("1", "it did not end within 1.5 s")]),
        interrupted: true,
        ..Folded::default()
    };
    let folded = all(HookEvent::PreToolUse, said);
    assert_eq!(joined(&folded.faults), "broke\nit did not end within 1.5 s");
    assert_eq!(folded, expected);
}

proptest! {
    /// The verdict does not depend on the order of the hooks.
    #[test]
    fn the_verdict_knows_no_order(order in Just((0..6).collect::<Vec<usize>>()).prop_shuffle(), from in 0usize..6) {
        let words = ["allow", "ask", "defer", "deny"];
        let said = |number: usize| match number {
            4 => blocks("no"),
            5 => Said::Nothing,
            number => rules(words[number]),
        };
        let decision = |order: &[usize]| {
            let folded = all(HookEvent::PreToolUse, order.iter().map(|number| said(*number)).collect());
            folded.ruling.map(|ruling| ruling.decision)
        };
        let mut sorted = order[from..].to_vec();
        sorted.sort_unstable();
        prop_assert_eq!(decision(&order[from..]), decision(&sorted));
    }
}
