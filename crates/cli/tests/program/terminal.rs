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
fn command_that_asks(rig: &TestDir) -> Command {
    let reply = tool_call("Bash", &json!({"command": "echo $$ > pid.txt; exec sleep 600"}));
    let model = rig.write_script(&json!([reply, "after the call"]));
    let mut command = rig.command(&["--model", &model, "go"]);
    command.env("TERM", "xterm");
    command
}

#[test]
fn signal_ends_a_prompt_at_once() {
    for (sent, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let rig = TestDir::new();
        let mut seat = PtySession::start(command_that_asks(&rig), 80);
        seat.wait_for_text("[y/N] ");
        let began = Instant::now();
        seat.send_signal(sent);
        assert_eq!(seat.wait_for_exit().code(), Some(code));
        assert!(began.elapsed() < IMMEDIATE_EXIT_LIMIT, "{:?}", began.elapsed());
        assert!(seat.output().contains("[y/N] \r\n"), "the next prompt has its own line: {}", seat.output());
        assert!(!rig.work_dir().join("pid.txt").exists());
    }
}

#[test]
fn answer_is_taken_and_end_of_input_denies() {
    for (keys, said) in [("n\n", "said no"), ("\n", "said no"), ("\u{4}", "no answer at the terminal")] {
        let rig = TestDir::new();
        let mut seat = PtySession::start(command_that_asks(&rig), 120);
        seat.wait_for_text("[y/N] ");
        seat.type_keys(keys);
        assert_eq!(seat.wait_for_exit().code(), Some(0));
        let shown = seat.output();
        assert!(shown.contains(said) && shown.contains("after the call"), "{shown}");
        assert!(!rig.work_dir().join("pid.txt").exists());
    }
}

#[test]
fn question_of_the_model_is_answered_by_number() {
    let options = json!([{"label": "Red", "description": "r"}, {"label": "Blue", "description": "b"}]);
    let colour = json!({"question": "Which colour?", "header": "Colour", "options": options});
    let asked = tool_call("AskUserQuestion", &json!({"questions": [colour]}));
    let rig = TestDir::new();
    let model =
        rig.write_script(&json!([asked, {"expect": "Which colour? → Blue", "content": ["Blue it is."]}]));
    let mut command = rig.command(&["--model", &model, "go"]);
    command.env("TERM", "xterm");
    let mut seat = PtySession::start(command, 80);
    seat.wait_for_text("own words: ");
    seat.type_keys("2\n");
    assert_eq!(seat.wait_for_exit().code(), Some(0), "{}", seat.output());
    let shown = seat.output();
    assert!(shown.contains("2. Blue: b") && shown.contains("Blue it is."), "{shown}");
}

/// Starts a run whose command was allowed and is running; returns the pid of the command, too.
fn start_allowed_command(rig: &TestDir) -> (PtySession, i32) {
    let mut seat = PtySession::start(command_that_asks(rig), 80);
    seat.wait_for_text("[y/N] ");
    seat.type_keys("y\n");
    let pid = wait_for_number(&rig.work_dir().join("pid.txt"));
    (seat, pid)
}

#[test]
fn two_interrupts_leave_nothing_behind() {
    let rig = TestDir::new();
    let (mut seat, pid) = start_allowed_command(&rig);
    seat.send_signal(Signal::INT);
    seat.wait_for_text("interrupted");
    seat.send_signal(Signal::INT);
    assert_eq!(seat.wait_for_exit().code(), Some(130));
    wait_until("the end of the command", || has_exited(pid).then_some(()));
}

#[test]
fn spinner_is_cleared_on_interrupt() {
    let rig = TestDir::new();
    let (mut seat, pid) = start_allowed_command(&rig);
    seat.wait_for_text("⠙ Bash");
    seat.send_signal(Signal::INT);
    assert_eq!(seat.wait_for_exit().code(), Some(130));
    wait_until("the end of the command", || has_exited(pid).then_some(()));
    let shown = seat.output();
    assert!(shown.ends_with("no cost\u{1b}[0m\r\n<end>"), "{shown:?}");
}

#[test]
fn suspended_run_goes_on() {
    let rig = TestDir::new();
    let mut seat = PtySession::start(command_that_asks(&rig), 80);
    seat.wait_for_text("[y/N] ");
    seat.send_signal(Signal::STOP);
    let stat = format!("/proc/{}/stat", seat.child.id());
    wait_until("the pause", || std::fs::read_to_string(&stat).ok()?.contains(") T ").then_some(()));
    seat.send_signal(Signal::CONT);
    seat.type_keys("n\n");
    assert_eq!(seat.wait_for_exit().code(), Some(0));
    assert!(seat.output().contains("after the call"), "{}", seat.output());
}

#[test]
fn demo_reports_the_outcome_of_the_answer() {
    let counted = "two curlews";
    let refused = "was not run";
    for (keys, said, unsaid) in
        [("y\n", counted, refused), ("n\n", refused, counted), ("\u{4}", refused, counted)]
    {
        let mut command = TestDir::new().command(&["demo"]);
        command.env("TERM", "xterm").current_dir("/");
        let mut seat = PtySession::start(command, 80);
        seat.wait_for_text("[y/N] ");
        seat.type_keys(keys);
        assert_eq!(seat.wait_for_exit().code(), Some(0));
        let shown = seat.output();
        assert!(shown.contains(said) && !shown.contains(unsaid), "{keys:?}: {shown}");
    }
}

#[test]
fn colours_are_off_when_unwanted_or_unsupported() {
    for (variables, columns) in [(&[("TERM", "dumb")][..], 80), (&[("TERM", "xterm"), ("NO_COLOR", "1")], 20)]
    {
        let rig = TestDir::new();
        let mut command = rig.command(&["demo"]);
        command.envs(variables.iter().copied());
        let mut seat = PtySession::start(command, columns);
        seat.wait_for_text("[y/N] ");
        seat.type_keys("y\n");
        assert_eq!(seat.wait_for_exit().code(), Some(0));
        // The spinner may clear its line; that is not a colour.
        let shown = seat.output().replace("\u{1b}[2K", "");
        assert!(!shown.contains('\u{1b}'), "{variables:?}: {shown:?}");
        assert!(shown.contains("is removed"), "{shown}");
    }
}
