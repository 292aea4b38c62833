//! The debug log: its topics and destinations.

use serde_json::json;

use crate::harness::{TestDir, TestSession, run_command, tool_call};

#[test]
fn debug_file_lists_actions_without_contents() {
    let test_dir = TestDir::new();
    let log = test_dir.work_dir().join("debug.log");
    let replies = json!([tool_call("Bash", &json!({"command": "pwd # hush"})), "hush"]);
    let mut session =
        TestSession::start(test_dir.session_command(&replies, &["--debug-file", &log.display().to_string()]));
    session.write(
        b"{\"type\":\"control_request\",\"request_id\":\"r1\",\"request\":{\"subtype\":\"initialize\"}}\n",
    );
    session.send_prompt("hush");
    session.next_frame("result");
    let (code, _, stderr) = session.finish();
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    let log_text = std::fs::read_to_string(&log).unwrap();
    for part in [
        "[control] in: initialize requested as r1",
        "[control] out: r1 answered",
        "[frames] in: user: 4 bytes of text",
        "[api] ",
        "complete after",
        "[tools] Bash ",
        ": allowed",
        "[frames] out: result: Success, 2 turns",
    ] {
        assert!(log_text.contains(part), "{part}: {log_text}");
    }
    assert!(log_text.lines().all(|line| line.starts_with("20") && line.contains("Z [")), "{log_text}");
    assert!(!log_text.contains("hush"), "{log_text}");
}

#[test]
fn debug_output_is_filtered_and_shows_no_key() {
    let test_dir = TestDir::new();
    for (flag, frames) in [
        (&["--debug"][..], true),
        (&["-d2e"], true),
        (&["--debug=api"], false),
        (&["--debug", "api"], false),
        (&["--debug=!frames"], false),
    ] {
        let args = [&["-p"], flag, &["--model", "claude-opus-4-5", "hi"]].concat();
        let mut command = test_dir.command(&args);
        command.env("ANTHROPIC_API_KEY", "sk-hush").env("ANTHROPIC_BASE_URL", "http://127.0.0.1:1");
        command.env("CLAUDE_CODE_MAX_RETRIES", "0");
        let out = run_command(command, "");
        assert_eq!(out.code, Some(1), "{flag:?}");
        assert!(
            out.stdout.starts_with("API Error: ") && !out.stdout.contains("hush"),
            "{flag:?}: {}",
            out.stdout
        );
        assert!(out.stderr.contains("[api] claude-opus-4-5: sending"), "{flag:?}: {}", out.stderr);
        assert!(out.stderr.contains("[api] claude-opus-4-5: failed after"), "{flag:?}: {}", out.stderr);
        assert_eq!(out.stderr.contains("[frames]"), frames, "{flag:?}: {}", out.stderr);
        assert!(!out.stderr.contains("hush"), "{flag:?}: {}", out.stderr);
    }
}

#[test]
fn unwritable_debug_file_prevents_the_start() {
    let test_dir = TestDir::new();
    let out = test_dir.run(
        &["-p", "--debug-file", "/nowhere/debug.log", "--model", &test_dir.write_script(&json!(["x"])), "hi"],
        "",
    );
    assert_eq!((out.code, out.stdout.as_str()), (Some(1), ""));
    assert!(out.stderr.contains("/nowhere/debug.log cannot be written"), "{}", out.stderr);
}
