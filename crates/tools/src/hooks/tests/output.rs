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
#[expect(clippy::too_many_lines, reason = "one table")]
fn exit_code_and_output_are_combined() {
    use HookEvent::{PreToolUse, WorktreeCreate};
    let deny = r#"{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "json"}}"#;
    let padded = format!("\n {deny}\n\n");
    let denied = || ParsedOutput::Output(output(serde_json::from_str(deny).unwrap()));
    let bare = output(json!({"hookSpecificOutput": {"hookEventName": "PreToolUse"}}));
    let message = output(json!({"systemMessage": "m"}));
    let rows: Vec<(&str, HookEvent, i32, &str, &str, ParsedOutput)> = vec![
        ("no output", PreToolUse, 0, "", "", ParsedOutput::Empty),
        ("blank lines are no output", PreToolUse, 0, " \n\n", "noise", ParsedOutput::Empty),
        ("text is text", PreToolUse, 0, "hello\n", "", ParsedOutput::Text("hello".into())),
        ("JSON is output", PreToolUse, 0, deny, "", denied()),
        ("surrounding blanks are ignored", PreToolUse, 0, &padded, "", denied()),
        (
            "text before JSON makes it text",
            PreToolUse,
            0,
            "hi {\"a\": 1}",
            "",
            ParsedOutput::Text("hi {\"a\": 1}".into()),
        ),
        (
            "a block counts with any exit code",
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
            "an allow does not",
            PreToolUse,
            1,
            r#"{"decision": "approve"}"#,
            "oops",
            failed("it exited with code 1: oops"),
        ),
        ("code 2 blocks with stderr", PreToolUse, 2, "", "no\nway\n", block("no\nway")),
        ("code 2 blocks without a reason", PreToolUse, 2, "", "", block("The hook gave no reason.")),
        ("code 2 ignores text", PreToolUse, 2, "hello", "no", block("no")),
        ("code 2 blocks despite invalid output", PreToolUse, 2, "{\"decision\": 5}", "no", block("no")),
        (
            "code 2 takes the reason from the output",
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
        ("text does not change a failure", PreToolUse, 1, "hello", "", failed("it exited with code 1")),
        (
            "a worktree hook needs exit code 0",
            WorktreeCreate,
            1,
            "/tree",
            "full",
            block("it exited with code 1: full"),
        ),
        (
            "output for another event is invalid",
            HookEvent::Stop,
            0,
            deny,
            "",
            failed("its output is for PreToolUse, but the event is Stop"),
        ),
        (
            "an async request of an ended hook is empty",
            PreToolUse,
            0,
            r#"{"async": true}"#,
            "",
            ParsedOutput::Empty,
        ),
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
            "truncated JSON",
            r#"{"decision": "block""#,
            failed("its output is not valid: EOF while parsing an object at line 1 column 20"),
        ),
        ("text after an allow", r#"{"decision": "approve"} done"#, failed(&trailing(25))),
        (
            "text after a block",
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
        let ParsedOutput::Partial { blocking, error } = output(json) else { panic!("{json}") };
        assert!(error.contains("duplicate keys"), "{error}");
        let holds = blocking.decision == Some(HookDecision::Block) || blocking.specific.is_some();
        assert!(holds || blocking.should_continue == Some(false), "{json}: {blocking:?}");
    }
    let ambiguous = output(&specific(&format!("{allow}, {allow}")));
    assert!(
        matches!(&ambiguous, ParsedOutput::Failed(text) if text.contains("duplicate keys")),
        "{ambiguous:?}"
    );
}

/// Output for one event.
fn output_for_event(event: HookEvent, mut fields: serde_json::Value) -> serde_json::Value {
    fields["hookEventName"] = event.as_str().into();
    json!({ "hookSpecificOutput": fields })
}

/// Name, event, output, blocking part of it, and words of the error.
type Row = (&'static str, HookEvent, serde_json::Value, Option<serde_json::Value>, &'static str);

fn assert_partial(rows: impl IntoIterator<Item = Row>) {
    for (name, event, json, blocking, words) in rows {
        let by_command = ParsedOutput::from_command(
            event,
            ProcessExit::Exited(0),
            &CommandOutput::for_test(&json.to_string(), ""),
        );
        let by_host = ParsedOutput::from_host(event, serde_json::from_value(json).unwrap());
        assert_eq!(by_command, by_host, "{name}");
        let error = by_host.error().unwrap();
        assert!(error.contains(words), "{name}: {error}");
        let expected = match blocking {
            Some(blocking) => ParsedOutput::Partial { blocking: output(blocking), error },
            None => ParsedOutput::Failed(error),
        };
        assert_eq!(by_host, expected, "{name}");
    }
}

#[test]
fn of_invalid_output_only_the_blocking_part_counts() {
    use HookEvent::{PreToolUse, Stop};
    let deny = || output_for_event(PreToolUse, json!({"permissionDecision": "deny"}));
    let blocked = || json!({"decision": "block", "reason": "no"});
    assert_partial([
        (
            "a block",
            PreToolUse,
            json!({"decision": "block", "reason": "no", "suppressOutput": "yes"}),
            Some(blocked()),
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
            "an ask",
            PreToolUse,
            output_for_event(
                PreToolUse,
                json!({"permissionDecision": "ask", "updatedInput": {"a": 1}, "additionalContext": 5}),
            ),
            Some(output_for_event(PreToolUse, json!({"permissionDecision": "ask"}))),
            "additionalContext",
        ),
        (
            "a stop request",
            Stop,
            json!({"continue": false, "stopReason": "enough", "systemMessage": []}),
            Some(json!({"continue": false, "stopReason": "enough"})),
            "systemMessage",
        ),
        (
            "an allow is dropped",
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
    let blocked = || json!({"decision": "block", "reason": "no"});
    assert_partial([
        (
            "a block beside output for another event",
            Stop,
            json!({"decision": "block", "reason": "no", "hookSpecificOutput": {"hookEventName": "PreToolUse"}}),
            Some(blocked()),
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
            "a denial with a misspelled name",
            PreToolUse,
            json!({"hookSpecificOutput": {"hookEventName": "PreToolUs", "permissionDecision": "deny"}}),
            Some(deny()),
            "an unknown event",
        ),
        (
            "an allow with a misspelled name is dropped",
            PreToolUse,
            json!({"hookSpecificOutput": {"hookEventName": "PreToolUs", "permissionDecision": "allow"}}),
            None,
            "an unknown event",
        ),
        (
            "a denied permission request denies the call",
            PreToolUse,
            output_for_event(PermissionRequest, json!({"decision": {"behavior": "deny", "message": "no"}})),
            Some(blocked()),
            "its output is for PermissionRequest",
        ),
        (
            "a denied call denies the permission request",
            PermissionRequest,
            output_for_event(
                PreToolUse,
                json!({"permissionDecision": "deny", "permissionDecisionReason": "no"}),
            ),
            Some(blocked()),
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
        ("an async request", json!({"async": true}), ParsedOutput::Async),
        (
            "an output",
            json!({"decision": "block"}),
            ParsedOutput::Output(Box::new(SyncOutput {
                decision: Some(HookDecision::Block),
                ..SyncOutput::default()
            })),
        ),
        (
            "output for another event",
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
    let time = |line| parse_async_request(line).map(|request| request.async_timeout);
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
        ("one output", 0, "{\"systemMessage\": \"a\"}", message("a")),
        ("after an async request", 0, "{\"async\": true}\n{\"systemMessage\": \"a\"}\n", message("a")),
        ("over several lines", 0, "{\"async\": true}\n{\n\"systemMessage\":\n\"a\"\n}", message("a")),
        ("after noise", 0, "{\"async\": true}\nnoise\n{\"systemMessage\": \"a\"}\nnoise", message("a")),
        ("the last of two", 0, "{\"systemMessage\": \"a\"}\n{\"systemMessage\": \"b\"}", message("b")),
        ("nothing after an async request", 0, "{\"async\": true}\n", ParsedOutput::Empty),
        ("text", 0, "hello", ParsedOutput::Empty),
        ("a failure", 1, "{\"async\": true}\n", failed("it exited with code 1: too late")),
        ("a late block is a failure", 2, "", failed("it exited with code 2: too late")),
    ] {
        let parsed = parse_late_output(
            HookEvent::PostToolUse,
            ProcessExit::Exited(code),
            &CommandOutput::for_test(stdout, "too late"),
        );
        assert_eq!(parsed, expected, "{name}");
    }
}
