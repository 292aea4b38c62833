//! The program on a terminal: prompts, signals, narrow and dumb terminals.

use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;

use crate::harness::{TestDir, has_exited, tool_call, wait_for_number, wait_until};
use crate::pty::PtySession;

/// A stopped run has two seconds before it is killed; an immediate exit takes less.
const IMMEDIATE_EXIT_LIMIT: Duration = Duration::from_millis(1500);

/// A run that asks for permission to run a command.
fn command_that_asks(test_dir: &TestDir) -> Command {
    let reply = tool_call("Bash", &json!({"command": "echo $$ > pid.txt; exec sleep 600"}));
    let model = test_dir.write_script(&json!([reply, "after the call"]));
    let mut command = test_dir.command(&["--model", &model, "go"]);
    command.env("TERM", "xterm");
    command
}

#[test]
fn signal_ends_a_prompt_at_once() {
    for (sent, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let test_dir = TestDir::new();
        let mut pty = PtySession::start(command_that_asks(&test_dir), 80);
        pty.wait_for_text("[y/N] ");
        let start = Instant::now();
        pty.send_signal(sent);
        assert_eq!(pty.wait_for_exit().code(), Some(code));
        assert!(start.elapsed() < IMMEDIATE_EXIT_LIMIT, "{:?}", start.elapsed());
        assert!(pty.output().contains("[y/N] \r\n"), "the next prompt has its own line: {}", pty.output());
        assert!(!test_dir.work_dir().join("pid.txt").exists());
    }
}

#[test]
fn answer_is_taken_and_end_of_input_denies() {
    for (keys, expected) in
        [("n\n", "denied the call"), ("\n", "denied the call"), ("\u{4}", "did not answer")]
    {
        let test_dir = TestDir::new();
        let mut pty = PtySession::start(command_that_asks(&test_dir), 120);
        pty.wait_for_text("[y/N] ");
        pty.type_keys(keys);
        assert_eq!(pty.wait_for_exit().code(), Some(0));
        let shown = pty.output();
        assert!(shown.contains(expected) && shown.contains("after the call"), "{shown}");
        assert!(!test_dir.work_dir().join("pid.txt").exists());
    }
}

#[test]
fn question_of_the_model_is_answered_by_number() {
    let options = json!([{"label": "Red", "description": "r"}, {"label": "Blue", "description": "b"}]);
    let color = json!({"question": "Which color?", "header": "Color", "options": options});
    let asked = tool_call("AskUserQuestion", &json!({"questions": [color]}));
    let test_dir = TestDir::new();
    let model =
        test_dir.write_script(&json!([asked, {"expect": "Which color? → Blue", "content": ["Blue it is."]}]));
    let mut command = test_dir.command(&["--model", &model, "go"]);
    command.env("TERM", "xterm");
    let mut pty = PtySession::start(command, 80);
    pty.wait_for_text("own text: ");
    pty.type_keys("2\n");
    assert_eq!(pty.wait_for_exit().code(), Some(0), "{}", pty.output());
    let shown = pty.output();
    assert!(shown.contains("2. Blue: b") && shown.contains("Blue it is."), "{shown}");
}

/// Starts a run whose command was allowed and is running; returns the pid of the command, too.
fn start_allowed_command(test_dir: &TestDir) -> (PtySession, i32) {
    let mut pty = PtySession::start(command_that_asks(test_dir), 80);
    pty.wait_for_text("[y/N] ");
    pty.type_keys("y\n");
    let pid = wait_for_number(&test_dir.work_dir().join("pid.txt"));
    (pty, pid)
}

#[test]
fn two_interrupts_leave_nothing_behind() {
    let test_dir = TestDir::new();
    let (mut pty, pid) = start_allowed_command(&test_dir);
    pty.send_signal(Signal::INT);
    pty.wait_for_text("interrupted");
    pty.send_signal(Signal::INT);
    assert_eq!(pty.wait_for_exit().code(), Some(130));
    wait_until("the end of the command", || has_exited(pid).then_some(()));
}

#[test]
fn spinner_is_cleared_on_interrupt() {
    let test_dir = TestDir::new();
    let (mut pty, pid) = start_allowed_command(&test_dir);
    pty.wait_for_text("⠙ Bash");
    pty.send_signal(Signal::INT);
    assert_eq!(pty.wait_for_exit().code(), Some(130));
    wait_until("the end of the command", || has_exited(pid).then_some(()));
    let shown = pty.output();
    assert!(shown.ends_with("no cost\u{1b}[0m\r\n<end>"), "{shown:?}");
}

#[test]
fn suspended_run_goes_on() {
    let test_dir = TestDir::new();
    let mut pty = PtySession::start(command_that_asks(&test_dir), 80);
    pty.wait_for_text("[y/N] ");
    pty.send_signal(Signal::STOP);
    let stat = format!("/proc/{}/stat", pty.child.id());
    wait_until("the pause", || std::fs::read_to_string(&stat).ok()?.contains(") T ").then_some(()));
    pty.send_signal(Signal::CONT);
    pty.type_keys("n\n");
    assert_eq!(pty.wait_for_exit().code(), Some(0));
    assert!(pty.output().contains("after the call"), "{}", pty.output());
}

#[test]
fn demo_reports_the_outcome_of_the_answer() {
    let counted = "two curlews";
    let denied = "did not run";
    for (keys, expected, unexpected) in
        [("y\n", counted, denied), ("n\n", denied, counted), ("\u{4}", denied, counted)]
    {
        let mut command = TestDir::new().command(&["demo"]);
        command.env("TERM", "xterm").current_dir("/");
        let mut pty = PtySession::start(command, 80);
        pty.wait_for_text("[y/N] ");
        pty.type_keys(keys);
        assert_eq!(pty.wait_for_exit().code(), Some(0));
        let shown = pty.output();
        assert!(shown.contains(expected) && !shown.contains(unexpected), "{keys:?}: {shown}");
    }
}

#[test]
fn screen_reader_gets_plain_lines() {
    let test_dir = TestDir::new();
    let replies = json!([tool_call("Bash", &json!({"command": "echo hi"})), "plain words"]);
    let model = test_dir.write_script(&replies);
    let run = |flags: &[&str]| {
        let mut command =
            test_dir.command(&[&["--allowedTools", "Bash", "--model", &model], flags, &["go"]].concat());
        command.env("TERM", "xterm");
        let mut pty = PtySession::start(command, 80);
        assert_eq!(pty.wait_for_exit().code(), Some(0));
        pty.output()
    };
    let shown = run(&["--ax-screen-reader"]);
    assert!(shown.contains("plain words") && !shown.contains('\u{1b}'), "{shown:?}");
    assert!(run(&[]).contains('\u{1b}'));
}

#[test]
fn colours_are_off_when_unwanted_or_unsupported() {
    for (variables, columns) in [(&[("TERM", "dumb")][..], 80), (&[("TERM", "xterm"), ("NO_COLOR", "1")], 20)]
    {
        let test_dir = TestDir::new();
        let mut command = test_dir.command(&["demo"]);
        command.envs(variables.iter().copied());
        let mut pty = PtySession::start(command, columns);
        pty.wait_for_text("[y/N] ");
        pty.type_keys("y\n");
        assert_eq!(pty.wait_for_exit().code(), Some(0));
        // The spinner may clear its line; that is not a color.
        let shown = pty.output().replace("\u{1b}[2K", "");
        assert!(!shown.contains('\u{1b}'), "{variables:?}: {shown:?}");
        assert!(shown.contains("was removed"), "{shown}");
    }
}
