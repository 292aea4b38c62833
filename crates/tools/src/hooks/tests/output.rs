//! Tests of parsing exit codes and outputs.

use serde_json::json;
use whimbrel_process::{CommandOutput, ProcessExit};
use whimbrel_wire::hook::{HookDecision, HookEvent, HookOutput, SyncOutput};

use super::super::output::{ParsedOutput, parse_async_request, parse_late_output};

fn output(json: serde_json::Value) -> Box<SyncOutput> {
    Box::new(serde_json::from_value(json).unwrap())
}

fn block(reason: &str) -> ParsedOutput {
    ParsedOutput::Block { reason: reason.into(), output: None }
}

fn failed(text: &str) -> ParsedOutput {
    ParsedOutput::Failed(text.into())
}

#[test]
fn exit_code_and_output_are_combined() {
    use HookEvent::{PreToolUse, WorktreeCreate};
    let deny = r#"{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "json"}}"#;
    let padded = format!("\n {deny}\n\n");
    let denied = || ParsedOutput::Output(output(serde_json::from_str(deny).unwrap()));
    let bare = output(json!({"hookSpecificOutput": {"hookEventName": "PreToolUse"}}));
    let message = output(json!({"systemMessage": "m"}));
    let rows: Vec<(&str, HookEvent, i32, &str, &str, ParsedOutput)> = vec![
        ("silence is no opinion", PreToolUse, 0, "", "", ParsedOutput::Empty),
        ("blank lines are silence", PreToolUse, 0, " \n\n", "noise", ParsedOutput::Empty),
        ("text is text", PreToolUse, 0, "hello\n", "", ParsedOutput::Text("hello".into())),
        ("JSON is an answer", PreToolUse, 0, deny, "", denied()),
        ("blanks around it do not matter", PreToolUse, 0, &padded, "", denied()),
        (
            "text in front makes it text",
            PreToolUse,
            0,
            "hi {\"a\": 1}",
            "",
            ParsedOutput::Text("hi {\"a\": 1}".into()),
        ),
        (
            "what holds something up counts with other codes too",
            PreToolUse,
            1,
            deny,
            "oops",
            ParsedOutput::Partial {
                blocking: output(serde_json::from_str(deny).unwrap()),
                error: "it exited with code 1: oops".into(),
            },
        ),
        (
            "what grants something does not",
            PreToolUse,
            1,
            r#"{"decision": "approve"}"#,
            "oops",
            failed("it exited with code 1: oops"),
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
            ParsedOutput::Block { reason: "json".into(), output: Some(bare) },
        ),
        (
            "code 2 blocks beside an allow",
            PreToolUse,
            2,
            r#"{"decision": "approve", "systemMessage": "m"}"#,
            "no",
            ParsedOutput::Block { reason: "no".into(), output: Some(message) },
        ),
        ("code 1 is a failure", PreToolUse, 1, "", "oops\nmore", failed("it exited with code 1: oops")),
        ("a missing program is a failure", PreToolUse, 127, "", "", failed("it exited with code 127")),
        ("text does not save a failure", PreToolUse, 1, "hello", "", failed("it exited with code 1")),
        (
            "a worktree hook needs exit code 0",
            WorktreeCreate,
            1,
            "/tree",
            "full",
            block("it exited with code 1: full"),
        ),
        (
            "an answer to another event is none",
            HookEvent::Stop,
            0,
            deny,
            "",
            failed("its output is for PreToolUse, but the event is Stop"),
        ),
        ("a promise kept by ending is nothing", PreToolUse, 0, r#"{"async": true}"#, "", ParsedOutput::Empty),
    ];
    for (name, event, code, stdout, stderr, expected) in rows {
        let parsed = ParsedOutput::from_command(
            event,
            ProcessExit::Exited(code),
            &CommandOutput::for_test(stdout, stderr),
        );
        assert_eq!(parsed, expected, "{name}");
    }
}

#[test]
fn output_that_begins_as_json_is_not_text() {
    let trailing =
        |column: u32| format!("its output is not valid: trailing characters at line 1 column {column}");
    let rows = [
        (
            "one that is cut off",
            r#"{"decision": "block""#,
            failed("its output is not valid: EOF while parsing an object at line 1 column 20"),
        ),
        ("text behind what grants something", r#"{"decision": "approve"} done"#, failed(&trailing(25))),
        (
            "text behind what holds something up",
            r#"{"decision": "block"} done"#,
            ParsedOutput::Partial { blocking: output(json!({"decision": "block"})), error: trailing(23) },
        ),
    ];
    for (name, printed, expected) in rows {
        let by_command = ParsedOutput::from_command(
            HookEvent::PreToolUse,
            ProcessExit::Exited(0),
            &CommandOutput::for_test(printed, ""),
        );
        assert_eq!(by_command, expected, "{name}");
        assert_eq!(ParsedOutput::from_http(HookEvent::PreToolUse, printed), expected, "{name}");
    }
}

#[test]
fn a_wrong_type_names_the_field() {
    let wrong = r#"{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "denyy"}}"#;
    let output = ParsedOutput::from_command(
        HookEvent::PreToolUse,
        ProcessExit::Exited(0),
        &CommandOutput::for_test(wrong, ""),
    );
    assert!(output.error().unwrap().contains("permissionDecision"), "{output:?}");
}

#[test]
fn of_duplicate_keys_the_blocking_one_counts() {
    let output = |json: &str| {
        ParsedOutput::from_command(
            HookEvent::PreToolUse,
            ProcessExit::Exited(0),
            &CommandOutput::for_test(json, ""),
        )
    };
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
        let ParsedOutput::Partial { blocking: legible, error } = output(json) else { panic!("{json}") };
        assert!(error.contains("duplicate keys"), "{error}");
        let holds = legible.decision == Some(HookDecision::Block) || legible.specific.is_some();
        assert!(holds || legible.should_continue == Some(false), "{json}: {legible:?}");
    }
    let unclear = output(&specific(&format!("{allow}, {allow}")));
    assert!(matches!(&unclear, ParsedOutput::Failed(text) if text.contains("duplicate keys")), "{unclear:?}");
}

/// Output for one event.
fn output_for_event(event: HookEvent, mut fields: serde_json::Value) -> serde_json::Value {
    fields["hookEventName"] = event.as_str().into();
    json!({ "hookSpecificOutput": fields })
}

/// Name, event, output, blocking part of it, and words of the error.
type Row = (&'static str, HookEvent, serde_json::Value, Option<serde_json::Value>, &'static str);

fn assert_partial(rows: impl IntoIterator<Item = Row>) {
    for (name, event, json, legible, words) in rows {
        let by_command = ParsedOutput::from_command(
            event,
            ProcessExit::Exited(0),
            &CommandOutput::for_test(&json.to_string(), ""),
        );
        let by_host = ParsedOutput::from_host(event, serde_json::from_value(json).unwrap());
        assert_eq!(by_command, by_host, "{name}");
        let error = by_host.error().unwrap();
        assert!(error.contains(words), "{name}: {error}");
        let expected = match legible {
            Some(legible) => ParsedOutput::Partial { blocking: output(legible), error },
            None => ParsedOutput::Failed(error),
        };
        assert_eq!(by_host, expected, "{name}");
    }
}

#[test]
fn of_invalid_output_only_the_blocking_part_counts() {
    use HookEvent::{PreToolUse, Stop};
    let deny = || output_for_event(PreToolUse, json!({"permissionDecision": "deny"}));
    let refuse = || json!({"decision": "block", "reason": "no"});
    assert_partial([
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
            output_for_event(PreToolUse, json!({"permissionDecision": "deny", "updatedInput": 5})),
            Some(deny()),
            "updatedInput",
        ),
        (
            "a question about what the model wrote",
            PreToolUse,
            output_for_event(
                PreToolUse,
                json!({"permissionDecision": "ask", "updatedInput": {"a": 1}, "additionalContext": 5}),
            ),
            Some(output_for_event(PreToolUse, json!({"permissionDecision": "ask"}))),
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
            output_for_event(PreToolUse, json!({"permissionDecision": "allow", "updatedInput": 5})),
            None,
            "updatedInput",
        ),
    ]);
}

#[test]
fn a_deny_for_the_wrong_event_still_denies() {
    use HookEvent::{PermissionRequest, PreToolUse, Stop};
    let deny = || output_for_event(PreToolUse, json!({"permissionDecision": "deny"}));
    let refuse = || json!({"decision": "block", "reason": "no"});
    assert_partial([
        (
            "a block beside an answer to another event",
            Stop,
            json!({"decision": "block", "reason": "no", "hookSpecificOutput": {"hookEventName": "PreToolUse"}}),
            Some(refuse()),
            "its output is for PreToolUse",
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
            output_for_event(PermissionRequest, json!({"decision": {"behavior": "deny", "message": "no"}})),
            Some(refuse()),
            "its output is for PermissionRequest",
        ),
        (
            "and the other way round",
            PermissionRequest,
            output_for_event(
                PreToolUse,
                json!({"permissionDecision": "deny", "permissionDecisionReason": "no"}),
            ),
            Some(refuse()),
            "its output is for PreToolUse",
        ),
    ]);
}

#[test]
fn oversized_output_is_a_failure() {
    let long = format!(r#"{{"reason": "{}"}}"#, "x".repeat(2_000_000));
    let output = ParsedOutput::from_command(
        HookEvent::PreToolUse,
        ProcessExit::Exited(0),
        &CommandOutput::for_test(&long, ""),
    );
    assert_eq!(output, failed("its output of 2.0 MB is too large"));
}

#[test]
fn a_killed_command_has_failed() {
    let output = ParsedOutput::from_command(
        HookEvent::PreToolUse,
        ProcessExit::Killed(9),
        &CommandOutput::for_test("", ""),
    );
    assert_eq!(output, failed("it was killed by signal 9"));
}

#[test]
fn a_host_responds_in_json() {
    for (name, output, expected) in [
        ("nothing", json!({}), ParsedOutput::Empty),
        ("a promise", json!({"async": true}), ParsedOutput::Async),
        (
            "an answer",
            json!({"decision": "block"}),
            ParsedOutput::Output(Box::new(SyncOutput {
                decision: Some(HookDecision::Block),
                ..SyncOutput::default()
            })),
        ),
        (
            "an answer to another event",
            json!({"hookSpecificOutput": {"hookEventName": "Dance"}}),
            failed("its output is for an unknown event, but the event is Stop"),
        ),
    ] {
        let output: HookOutput = serde_json::from_value(output).unwrap();
        assert_eq!(ParsedOutput::from_host(HookEvent::Stop, output), expected, "{name}");
    }
}

#[test]
fn only_an_async_request_goes_async() {
    let time = |line| parse_async_request(line).map(|later| later.async_timeout);
    assert_eq!(time(r#"{"async": true}"#), Some(None));
    assert_eq!(time(r#" {"async": true, "asyncTimeout": 2500} "#), Some(Some(2500)));
    for line in [r#"{"async": false}"#, "{}", "hello", ""] {
        assert_eq!(time(line), None, "{line}");
    }
}

#[test]
fn the_last_json_line_of_an_async_hook_counts() {
    let message = |text: &str| ParsedOutput::Output(output(json!({"systemMessage": text})));
    for (name, code, stdout, expected) in [
        ("one answer", 0, "{\"systemMessage\": \"a\"}", message("a")),
        ("after a promise", 0, "{\"async\": true}\n{\"systemMessage\": \"a\"}\n", message("a")),
        ("over several lines", 0, "{\"async\": true}\n{\n\"systemMessage\":\n\"a\"\n}", message("a")),
        ("after noise", 0, "{\"async\": true}\nnoise\n{\"systemMessage\": \"a\"}\nnoise", message("a")),
        ("the last of two", 0, "{\"systemMessage\": \"a\"}\n{\"systemMessage\": \"b\"}", message("b")),
        ("nothing after a promise", 0, "{\"async\": true}\n", ParsedOutput::Empty),
        ("text", 0, "hello", ParsedOutput::Empty),
        ("a failure", 1, "{\"async\": true}\n", failed("it exited with code 1: too late")),
        ("there is nothing left to block", 2, "", failed("it exited with code 2: too late")),
    ] {
        let parsed = parse_late_output(
            HookEvent::PostToolUse,
            ProcessExit::Exited(code),
            &CommandOutput::for_test(stdout, "too late"),
        );
        assert_eq!(parsed, expected, "{name}");
    }
}
