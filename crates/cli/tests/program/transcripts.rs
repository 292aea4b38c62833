//! Transcripts on a full disk and after a kill, and sessions that do not exist.

use serde_json::{Value, json};

use crate::harness::{TestDir, TestSession, has_exited, run_command, tool_call, wait_for_number};

#[test]
fn transcript_on_a_full_disk_ends_with_a_whole_line() {
    let test_dir = TestDir::new();
    let plain = test_dir.session_command(&json!(["one", "two"]), &[]);
    let mut command = test_dir.command(&[]);
    let mut limited = std::process::Command::new("sh");
    limited
        .args(["-c", r#"trap "" XFSZ; ulimit -f 8; exec "$0" "$@""#])
        .arg(command.get_program())
        .args(plain.get_args());
    limited
        .env_clear()
        .envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .current_dir(test_dir.work_dir());
    command = limited;
    let mut session = TestSession::start(command);
    session.send_prompt(&"x".repeat(9_000));
    let warning = session.next_frame("informational");
    assert!(warning["content"].as_str().unwrap().contains("cannot be written"), "{warning}");
    assert_eq!(session.next_frame("result")["result"], "one");
    session.send_prompt("again");
    let (code, frames, _) = session.finish();
    assert_eq!((code, &frames.last().unwrap()["result"]), (Some(0), &json!("two")));
    assert!(!frames.iter().any(|frame| frame["level"] == "warning"), "reported twice: {frames:?}");
    let text = test_dir.read_transcript();
    assert!(text.len() < 9_000 && (text.is_empty() || text.ends_with('\n')), "{text}");
    assert!(text.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{text}");
}

#[test]
fn call_running_at_a_kill_is_recorded_as_started() {
    let test_dir = TestDir::new();
    let slow = tool_call("Bash", &json!({"command": "echo $$ > pid; exec sleep 60"}));
    let mut session = test_dir.start_session(&json!([slow]), &["--allowedTools", "Bash"]);
    session.send_prompt("go");
    let id = session.next_frame("init")["session_id"].as_str().unwrap().to_owned();
    let pid = wait_for_number(&test_dir.work_dir().join("pid"));
    session.child.kill().unwrap();
    assert_eq!(session.finish().0, None);
    crate::harness::wait_until("the end of the command", || has_exited(pid).then_some(()));
    let text = test_dir.read_transcript();
    let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!((&last["type"], &last["tool"]), (&json!("tool-start"), &json!("Bash")));
    let model = test_dir.write_script(&json!(["I see."]));
    let args = ["-p", "--output-format", "json", "--model", &model, "--resume", &id, "What happened?"];
    let out = run_command(test_dir.command(&args), "");
    assert_eq!(out.code, Some(0), "{out:?}");
    let answer: Value = serde_json::from_str(&out.stdout).unwrap();
    assert_eq!((&answer["result"], &answer["session_id"]), (&json!("I see."), &json!(id)));
}

#[test]
fn unknown_session_is_an_error_on_stderr() {
    let test_dir = TestDir::new();
    let model = test_dir.write_script(&json!(["one"]));
    let id = "99999999-2222-4333-8444-555555555555";
    let out = test_dir.run(&["-p", "--model", &model, "--resume", id, "hi"], "");
    assert_eq!((out.code, out.stdout.as_str()), (Some(1), ""));
    assert!(out.stderr.contains(&format!("No conversation found with session ID: {id}")), "{}", out.stderr);
}
