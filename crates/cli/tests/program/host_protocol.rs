//! Frames on stdin and stdout, as a host sees them.

use std::process::{Command, Stdio};

use serde_json::json;

use crate::harness::{TestDir, TestSession, run_command, tool_call, wait_for_exit};

#[test]
fn empty_input_gives_no_output_and_no_failure() {
    let test_dir = TestDir::new();
    let (code, frames, stderr) = test_dir.start_session(&json!([]), &[]).finish();
    assert_eq!((code, frames, stderr.as_str()), (Some(0), vec![], ""));
}

#[test]
fn malformed_line_is_reported_and_the_session_goes_on() {
    let test_dir = TestDir::new();
    let mut session = test_dir.start_session(&json!(["one", "two"]), &[]);
    session.send_prompt("first");
    assert_eq!(session.next_frame("result")["result"], "one");
    session.write(b"this is not json\n");
    assert!(session.next_frame("wire_error")["message"].as_str().unwrap().contains("this is not json"));
    session.send_prompt("second");
    assert_eq!(session.next_frame("result")["result"], "two");
    assert_eq!(session.finish().0, Some(0));
}

#[test]
fn malformed_line_ends_a_strict_session() {
    let test_dir = TestDir::new();
    let mut session = test_dir.start_session(&json!(["one"]), &["--strict-input"]);
    session.send_prompt("first");
    assert_eq!(session.next_frame("result")["result"], "one");
    session.write(b"this is not json\n");
    assert_eq!(wait_for_exit(&mut session.child).code(), Some(1));
    assert!(session.finish().2.contains("this is not json"));
}

#[test]
fn partial_last_line_is_ignored() {
    let test_dir = TestDir::new();
    let mut session = test_dir.start_session(&json!(["one"]), &[]);
    session.send_prompt("first");
    session.write(br#"{"type":"user","message":{"#);
    let (code, frames, stderr) = session.finish();
    assert_eq!((code, &frames.last().unwrap()["result"]), (Some(0), &json!("one")));
    assert!(stderr.contains("within a line"), "{stderr}");
}

#[test]
fn long_line_is_read_and_overlong_line_skipped() {
    let test_dir = TestDir::new();
    let mut session = test_dir.start_session(&json!(["one", "two"]), &[]);
    let line = json!({"type": "user", "padding": "x".repeat(5_000_000), "message": {"role": "user", "content": "hi"}});
    session.write(format!("{line}\n").as_bytes());
    assert_eq!(session.next_frame("result")["result"], "one");
    session.write("y".repeat(65 << 20).as_bytes());
    session.write(b"\n");
    assert!(session.next_frame("wire_error")["message"].as_str().unwrap().contains("MiB"));
    session.send_prompt("still there?");
    assert_eq!(session.next_frame("result")["result"], "two");
    assert_eq!(session.finish().0, Some(0));
}

#[test]
fn running_turn_is_finished_after_the_input_ended() {
    let test_dir = TestDir::new();
    let mut session =
        test_dir.start_session(&json!([{"delay_ms": 300, "content": ["finished anyway"]}]), &[]);
    session.send_prompt("go");
    session.next_frame("init");
    let (code, frames, _) = session.finish();
    assert_eq!((code, &frames.last().unwrap()["result"]), (Some(0), &json!("finished anyway")));
}

#[test]
fn slow_reader_misses_nothing() {
    let test_dir = TestDir::new();
    let long = "x".repeat(400_000);
    let mut command = test_dir.session_command(&json!([long]), &["--include-partial-messages"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let prompt = json!({"type": "user", "message": {"role": "user", "content": "go"}});
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), format!("{prompt}\n").as_bytes()).unwrap();
    // A pipe holds far less than that, so the program is still running.
    assert_eq!(child.try_wait().unwrap(), None);
    let mut out = String::new();
    std::io::Read::read_to_string(&mut child.stdout.take().unwrap(), &mut out).unwrap();
    assert_eq!(wait_for_exit(&mut child).code(), Some(0));
    let last: serde_json::Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
    assert_eq!(last["result"].as_str().map(str::len), Some(400_000));
}

#[test]
fn failed_start_is_reported_on_stdout_and_stderr() {
    let test_dir = TestDir::new();
    let session = test_dir.start_session(&json!([]), &["--session-id", "nonsense"]);
    let result = session.next_frame("result");
    assert_eq!((&result["is_error"], &result["num_turns"]), (&json!(true), &json!(0)));
    let (code, _, stderr) = session.finish();
    assert_eq!(code, Some(1));
    assert!(result.to_string().contains("nonsense") && stderr.contains("nonsense"), "{result} {stderr}");
}

#[test]
fn unknown_sdk_flag_is_a_warning_unless_it_restricts() {
    let test_dir = TestDir::new();
    let mut command = test_dir.session_command(&json!(["fine"]), &["--brand-new", "x"]);
    command.env("CLAUDE_CODE_ENTRYPOINT", "sdk-py");
    let mut session = TestSession::start(command);
    session.send_prompt("hi");
    assert_eq!(session.next_frame("result")["result"], "fine");
    let (code, _, stderr) = session.finish();
    assert_eq!(code, Some(0));
    assert!(stderr.contains("--brand-new"), "{stderr}");
    let mut command = test_dir.session_command(&json!([]), &["--sandbox-level", "x"]);
    command.env("CLAUDE_CODE_ENTRYPOINT", "sdk-py");
    let out = run_command(command, "");
    assert_eq!((out.code, out.stdout.as_str()), (Some(1), ""));
    assert!(out.stderr.contains("--sandbox-level"), "{}", out.stderr);
}

#[test]
fn exit_code_after_max_turns_depends_on_the_host() {
    let rows = [
        (None, None, 1),
        (Some("sdk-ts"), Some("0.3.325"), 1),
        (Some("sdk-ts"), Some("0.2.50"), 0),
        (Some("sdk-ts"), None, 0),
    ];
    for (entrypoint, version, expected) in rows {
        let test_dir = TestDir::new();
        let reply = tool_call("Glob", &json!({"pattern": "*"}));
        let mut command = test_dir.session_command(&json!([reply, reply]), &["--max-turns", "1"]);
        command.envs(entrypoint.map(|name| ("CLAUDE_CODE_ENTRYPOINT", name)));
        command.envs(version.map(|version| ("CLAUDE_AGENT_SDK_VERSION", version)));
        let mut session = TestSession::start(command);
        session.send_prompt("go");
        assert_eq!(session.next_frame("result")["subtype"], "error_max_turns");
        assert_eq!(session.finish().0, Some(expected), "{entrypoint:?} {version:?}");
    }
}

#[test]
fn unread_stderr_does_not_block() {
    let test_dir = TestDir::new();
    let strangers: Vec<String> = (0..3000).map(|n| format!("--unknown-flag-number-{n}")).collect();
    let strangers: Vec<&str> = strangers.iter().map(String::as_str).collect();
    let mut command = test_dir.session_command(&json!([]), &strangers);
    command.env("CLAUDE_CODE_ENTRYPOINT", "sdk-ts");
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    assert_eq!(wait_for_exit(&mut child).code(), Some(0));
}

#[test]
fn every_request_with_an_id_is_answered() {
    let test_dir = TestDir::new();
    let mut session = test_dir.start_session(&json!([]), &[]);
    let rows = [
        (json!({}), "`request`"),
        (json!({"request": null}), "`request`"),
        (json!({"request": "interrupt"}), "subtype"),
        (json!({"request": {}}), "subtype"),
        (json!({"request": {"subtype": 5}}), "subtype"),
        (json!({"request": {"subtype": "no_such_thing"}}), "no_such_thing"),
        (json!({"request": {"subtype": "set_permission_mode", "mode": 5}}), "mode"),
        (json!({"request": {"subtype": "set_permission_mode", "mode": "yolo"}}), "yolo"),
        (json!({"request": {"subtype": "set_model", "model": []}}), "model"),
        (json!({"request": {"subtype": "can_use_tool", "tool_name": "x", "input": {}}}), "can_use_tool"),
    ];
    for (number, (more, part)) in rows.into_iter().enumerate() {
        let mut line = json!({"type": "control_request", "request_id": number.to_string()});
        line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        session.write(format!("{line}\n").as_bytes());
        let response = session.next_frame("control_response")["response"].clone();
        assert_eq!(
            (&response["subtype"], &response["request_id"]),
            (&json!("error"), &json!(number.to_string())),
            "{line}"
        );
        assert!(response["error"].as_str().unwrap().contains(part), "{line}: {response}");
    }
    assert_eq!(session.finish().0, Some(0));
}

#[test]
fn unknown_values_are_warnings_for_an_sdk() {
    let test_dir = TestDir::new();
    let more = ["--tools", "Nope,Read", "--add-dir", "/no/such/folder"];
    let mut command = test_dir.session_command(&json!(["fine"]), &more);
    command.env("CLAUDE_CODE_ENTRYPOINT", "sdk-ts");
    let mut session = TestSession::start(command);
    session.send_prompt("hi");
    assert_eq!(session.next_frame("init")["tools"], json!(["Read"]));
    assert_eq!(session.next_frame("result")["result"], "fine");
    let (code, _, stderr) = session.finish();
    assert_eq!(code, Some(0));
    assert!(stderr.contains("Nope") && stderr.contains("/no/such/folder"), "{stderr}");
}

#[test]
fn unknown_lines_and_stray_responses_change_nothing() {
    let test_dir = TestDir::new();
    let mut session = test_dir.start_session(&json!(["one"]), &[]);
    let answer =
        |id: &str| json!({"type": "control_response", "response": {"subtype": "success", "request_id": id}});
    for line in [
        json!({"type": "brand_new", "x": 1}),
        json!({"type": "keep_alive"}),
        answer("unknown"),
        answer("unknown"),
    ] {
        session.write(format!("{line}\n").as_bytes());
    }
    session.send_prompt("hi");
    assert_eq!(session.next_frame("result")["result"], "one");
    let (code, frames, _) = session.finish();
    assert_eq!((code, frames), (Some(0), vec![]));
}

#[test]
fn few_file_descriptors_are_enough() {
    let test_dir = TestDir::new();
    let mut replies: Vec<serde_json::Value> =
        (0..40).map(|number| tool_call("Bash", &json!({"command": format!("echo {number}")}))).collect();
    replies.push(json!("done"));
    let whole = test_dir.session_command(&json!(replies), &["--permission-mode", "bypassPermissions"]);
    let mut limited = Command::new("sh");
    limited.args(["-c", r#"ulimit -n 64; exec "$@""#, "sh"]).arg(whole.get_program()).args(whole.get_args());
    limited.current_dir(test_dir.work_dir()).env("IS_SANDBOX", "1");
    let mut session = TestSession::start(limited);
    session.send_prompt("go");
    assert_eq!(session.next_frame("result")["result"], "done");
    assert_eq!(session.finish().0, Some(0));
}
