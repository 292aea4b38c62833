//! What a hook's exit code and output mean.

use serde_json::json;
use whimbrel_wire::hook::{HookDecision, HookEvent, HookOutput, SyncOutput};

use super::super::outcome::{Said, asks_for_time, late_answer};
use crate::tasks::{Ending, Heard};

fn answer(json: serde_json::Value) -> Box<SyncOutput> {
    Box::new(serde_json::from_value(json).unwrap())
}

fn block(reason: &str) -> Said {
    Said::Block { reason: reason.into(), besides: None }
}

fn fault(text: &str) -> Said {
    Said::Fault(text.into())
}

#[test]
fn a_command_speaks_by_exit_code_and_output() {
    use HookEvent::{PreToolUse, WorktreeCreate};
    let deny = r#"{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "json"}}"#;
    let padded = format!("\n {deny}\n\n");
    let denied = || Said::Answer(answer(serde_json::from_str(deny).unwrap()));
    let bare = answer(json!({"hookSpecificOutput": {"hookEventName": "PreToolUse"}}));
    let message = answer(json!({"systemMessage": "m"}));
    let rows: Vec<(&str, HookEvent, i32, &str, &str, Said)> = vec![
        ("silence is no opinion", PreToolUse, 0, "", "", Said::Nothing),
        ("blank lines are silence", PreToolUse, 0, " \n\n", "noise", Said::Nothing),
        ("text is text", PreToolUse, 0, "hello\n", "", Said::Text("hello".into())),
        ("JSON is an answer", PreToolUse, 0, deny, "", denied()),
        ("blanks around it do not matter", PreToolUse, 0, &padded, "", denied()),
        (
            "text in front makes it text",
            PreToolUse,
            0,
            "hi {\"a\": 1}",
            "",
            Said::Text("hi {\"a\": 1}".into()),
        ),
        (
            "what holds something up counts with other codes too",
            PreToolUse,
            1,
            deny,
            "oops",
            Said::Flawed {
                legible: answer(serde_json::from_str(deny).unwrap()),
                flaw: "it ended with code 1: oops".into(),
            },
        ),
        (
            "what grants something does not",
            PreToolUse,
            1,
            r#"{"decision": "approve"}"#,
            "oops",
            fault("it ended with code 1: oops"),
        ),
        ("code 2 blocks with the complaints", PreToolUse, 2, "", "no\nway\n", block("no\nway")),
        ("code 2 blocks without a reason", PreToolUse, 2, "", "", block("The hook gave no reason.")),
        ("code 2 ignores text", PreToolUse, 2, "hello", "no", block("no")),
        ("code 2 blocks though the answer is wrong", PreToolUse, 2, "{\"decision\": 5}", "no", block("no")),
        (
            "code 2 takes the reason from the answer",
            PreToolUse,
            2,
            deny,
            "complaint",
            Said::Block { reason: "json".into(), besides: Some(bare) },
        ),
        (
            "code 2 blocks beside an allow",
            PreToolUse,
            2,
            r#"{"decision": "approve", "systemMessage": "m"}"#,
            "no",
            Said::Block { reason: "no".into(), besides: Some(message) },
        ),
        ("code 1 is a failure", PreToolUse, 1, "", "oops\nmore", fault("it ended with code 1: oops")),
        ("a missing program is a failure", PreToolUse, 127, "", "", fault("it ended with code 127")),
        ("text does not save a failure", PreToolUse, 1, "hello", "", fault("it ended with code 1")),
        ("a work tree needs code 0", WorktreeCreate, 1, "/tree", "full", block("it ended with code 1: full")),
        (
            "an answer to another event is none",
            HookEvent::Stop,
            0,
            deny,
            "",
            fault("its answer is for PreToolUse, and the event is Stop"),
        ),
        ("a promise kept by ending is nothing", PreToolUse, 0, r#"{"async": true}"#, "", Said::Nothing),
    ];
    for (name, event, code, stdout, stderr, expected) in rows {
        let said = Said::by_command(event, Ending::Exited(code), &Heard::of(stdout, stderr));
        assert_eq!(said, expected, "{name}");
    }
}

#[test]
fn what_begins_as_an_answer_is_no_text() {
    let trailing =
        |column: u32| format!("its answer cannot be read: trailing characters at line 1 column {column}");
    let rows = [
        (
            "one that is cut off",
            r#"{"decision": "block""#,
            fault("its answer cannot be read: EOF while parsing an object at line 1 column 20"),
        ),
        ("text behind what grants something", r#"{"decision": "approve"} done"#, fault(&trailing(25))),
        (
            "text behind what holds something up",
            r#"{"decision": "block"} done"#,
            Said::Flawed { legible: answer(json!({"decision": "block"})), flaw: trailing(23) },
        ),
    ];
    for (name, printed, expected) in rows {
        let by_command = Said::by_command(HookEvent::PreToolUse, Ending::Exited(0), &Heard::of(printed, ""));
        assert_eq!(by_command, expected, "{name}");
        assert_eq!(Said::by_text(HookEvent::PreToolUse, printed), expected, "{name}");
    }
}

#[test]
fn an_answer_in_a_wrong_shape_names_the_field() {
    let wrong = r#"{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "denyy"}}"#;
    let said = Said::by_command(HookEvent::PreToolUse, Ending::Exited(0), &Heard::of(wrong, ""));
    assert!(said.fault().unwrap().contains("permissionDecision"), "{said:?}");
}

#[test]
fn of_two_equal_keys_the_one_that_holds_something_up_counts() {
    let said = |json: &str| Said::by_command(HookEvent::PreToolUse, Ending::Exited(0), &Heard::of(json, ""));
    let specific = |decisions: &str| {
        format!("{{\"hookSpecificOutput\": {{\"hookEventName\": \"PreToolUse\", {decisions}}}}}")
    };
    let (deny, allow) = (r#""permissionDecision": "deny""#, r#""permissionDecision": "allow""#);
    for json in [
        r#"{"decision": "block", "reason": "x", "decision": "approve", "reason": "y"}"#,
        r#"{"decision": "approve", "decision": "block"}"#,
        r#"{"continue": false, "continue": true}"#,
        &specific(&format!("{deny}, {allow}")),
        &specific(&format!("{allow}, {deny}")),
    ] {
        let Said::Flawed { legible, flaw } = said(json) else { panic!("{json}") };
        assert!(flaw.contains("a key twice"), "{flaw}");
        let holds = legible.decision == Some(HookDecision::Block) || legible.specific.is_some();
        assert!(holds || legible.go_on == Some(false), "{json}: {legible:?}");
    }
    let unclear = said(&specific(&format!("{allow}, {allow}")));
    assert!(matches!(&unclear, Said::Fault(text) if text.contains("a key twice")), "{unclear:?}");
}

/// The answer to one event, and what else is in it.
fn for_event(event: HookEvent, mut fields: serde_json::Value) -> serde_json::Value {
    fields["hookEventName"] = event.as_str().into();
    json!({ "hookSpecificOutput": fields })
}

/// A name, the event, the answer, what counts of it, and words of what is told.
type Row = (&'static str, HookEvent, serde_json::Value, Option<serde_json::Value>, &'static str);

fn counts(rows: impl IntoIterator<Item = Row>) {
    for (name, event, json, legible, words) in rows {
        let by_command = Said::by_command(event, Ending::Exited(0), &Heard::of(&json.to_string(), ""));
        let by_host = Said::by_host(event, serde_json::from_value(json).unwrap());
        assert_eq!(by_command, by_host, "{name}");
        let flaw = by_host.fault().unwrap();
        assert!(flaw.contains(words), "{name}: {flaw}");
        let expected = match legible {
            Some(legible) => Said::Flawed { legible: answer(legible), flaw },
            None => Said::Fault(flaw),
        };
        assert_eq!(by_host, expected, "{name}");
    }
}

#[test]
fn of_an_answer_that_is_wrong_in_part_only_what_holds_something_up_counts() {
    use HookEvent::{PreToolUse, Stop};
    let deny = || for_event(PreToolUse, json!({"permissionDecision": "deny"}));
    let refuse = || json!({"decision": "block", "reason": "no"});
    counts([
        (
            "a block",
            PreToolUse,
            json!({"decision": "block", "reason": "no", "suppressOutput": "yes"}),
            Some(refuse()),
            "suppressOutput",
        ),
        (
            "a denial",
            PreToolUse,
            for_event(PreToolUse, json!({"permissionDecision": "deny", "updatedInput": 5})),
            Some(deny()),
            "updatedInput",
        ),
        (
            "a question about what the model wrote",
            PreToolUse,
            for_event(
                PreToolUse,
                json!({"permissionDecision": "ask", "updatedInput": {"a": 1}, "additionalContext": 5}),
            ),
            Some(for_event(PreToolUse, json!({"permissionDecision": "ask"}))),
            "additionalContext",
        ),
        (
            "a wish to stop",
            Stop,
            json!({"continue": false, "stopReason": "enough", "systemMessage": []}),
            Some(json!({"continue": false, "stopReason": "enough"})),
            "systemMessage",
        ),
        (
            "an allow never",
            PreToolUse,
            for_event(PreToolUse, json!({"permissionDecision": "allow", "updatedInput": 5})),
            None,
            "updatedInput",
        ),
    ]);
}

#[test]
fn a_no_that_is_addressed_wrongly_is_a_no() {
    use HookEvent::{PermissionRequest, PreToolUse, Stop};
    let deny = || for_event(PreToolUse, json!({"permissionDecision": "deny"}));
    let refuse = || json!({"decision": "block", "reason": "no"});
    counts([
        (
            "a block beside an answer to another event",
            Stop,
            json!({"decision": "block", "reason": "no", "hookSpecificOutput": {"hookEventName": "PreToolUse"}}),
            Some(refuse()),
            "its answer is for PreToolUse",
        ),
        (
            "a denial without the name of the event",
            PreToolUse,
            json!({"hookSpecificOutput": {"permissionDecision": "deny"}}),
            Some(deny()),
            "hookEventName",
        ),
        (
            "a denial with a misspelt name",
            PreToolUse,
            json!({"hookSpecificOutput": {"hookEventName": "PreToolUs", "permissionDecision": "deny"}}),
            Some(deny()),
            "an unknown event",
        ),
        (
            "an allow with a misspelt name never",
            PreToolUse,
            json!({"hookSpecificOutput": {"hookEventName": "PreToolUs", "permissionDecision": "allow"}}),
            None,
            "an unknown event",
        ),
        (
            "a no to the question about a call is a no to the call",
            PreToolUse,
            for_event(PermissionRequest, json!({"decision": {"behavior": "deny", "message": "no"}})),
            Some(refuse()),
            "its answer is for PermissionRequest",
        ),
        (
            "and the other way round",
            PermissionRequest,
            for_event(PreToolUse, json!({"permissionDecision": "deny", "permissionDecisionReason": "no"})),
            Some(refuse()),
            "its answer is for PreToolUse",
        ),
    ]);
}

#[test]
fn an_answer_that_is_too_long_is_a_failure() {
    let long = format!(r#"{{"reason": "{}"}}"#, "x".repeat(2_000_000));
    let said = Said::by_command(HookEvent::PreToolUse, Ending::Exited(0), &Heard::of(&long, ""));
    assert_eq!(said, fault("it printed 2.0 MB, which is too much for an answer"));
}

#[test]
fn a_killed_command_has_failed() {
    let said = Said::by_command(HookEvent::PreToolUse, Ending::Killed(9), &Heard::of("", ""));
    assert_eq!(said, fault("it was ended by signal 9"));
}

#[test]
fn a_host_answers_in_json_only() {
    for (name, output, expected) in [
        ("nothing", json!({}), Said::Nothing),
        ("a promise", json!({"async": true}), Said::Later),
        (
            "an answer",
            json!({"decision": "block"}),
            Said::Answer(Box::new(SyncOutput {
                decision: Some(HookDecision::Block),
                ..SyncOutput::default()
            })),
        ),
        (
            "an answer to another event",
            json!({"hookSpecificOutput": {"hookEventName": "Dance"}}),
            fault("its answer is for an unknown event, and the event is Stop"),
        ),
    ] {
        let output: HookOutput = serde_json::from_value(output).unwrap();
        assert_eq!(Said::by_host(HookEvent::Stop, output), expected, "{name}");
    }
}

#[test]
fn only_a_promise_asks_for_time() {
    let time = |line| asks_for_time(line).map(|later| later.async_timeout);
    assert_eq!(time(r#"{"async": true}"#), Some(None));
    assert_eq!(time(r#" {"async": true, "asyncTimeout": 2500} "#), Some(Some(2500)));
    for line in [r#"{"async": false}"#, "{}", "hello", ""] {
        assert_eq!(time(line), None, "{line}");
    }
}

#[test]
fn what_comes_late_is_the_last_answer() {
    let message = |text: &str| Said::Answer(answer(json!({"systemMessage": text})));
    for (name, code, stdout, expected) in [
        ("one answer", 0, "{\"systemMessage\": \"a\"}", message("a")),
        ("after a promise", 0, "{\"async\": true}\n{\"systemMessage\": \"a\"}\n", message("a")),
        ("over several lines", 0, "{\"async\": true}\n{\n\"systemMessage\":\n\"a\"\n}", message("a")),
        ("after noise", 0, "{\"async\": true}\nnoise\n{\"systemMessage\": \"a\"}\nnoise", message("a")),
        ("the last of two", 0, "{\"systemMessage\": \"a\"}\n{\"systemMessage\": \"b\"}", message("b")),
        ("nothing after a promise", 0, "{\"async\": true}\n", Said::Nothing),
        ("text", 0, "hello", Said::Nothing),
        ("a failure", 1, "{\"async\": true}\n", fault("it ended with code 1: too late")),
        ("there is nothing left to block", 2, "", fault("it ended with code 2: too late")),
    ] {
        let said = late_answer(HookEvent::PostToolUse, Ending::Exited(code), &Heard::of(stdout, "too late"));
        assert_eq!(said, expected, "{name}");
    }
}
