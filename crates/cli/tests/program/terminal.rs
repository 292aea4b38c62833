//! The program on a terminal: the interactive terminal, the prompts of a run whose output is a file, the demo.

use std::fs::File;
use std::process::Command;

use rustix::process::Signal;
use serde_json::json;

use crate::harness::{TestDir, has_exited, tool_call, wait_for_number, wait_until};
use crate::pty::PtySession;

/// A run that asks for permission to run a command.
fn command_that_asks(test_dir: &TestDir, arguments: &[&str]) -> Command {
    let reply = tool_call("Bash", &json!({"command": "echo $$ > pid.txt; exec sleep 600"}));
    let model = test_dir.write_script(&json!([reply, "after the call"]));
    let mut command = test_dir.command(&[&["--model", &model], arguments].concat());
    command.env("TERM", "xterm");
    command
}

/// Starts it with its output in a file, so that only the prompt is on the terminal.
fn start_with_output_file(test_dir: &TestDir) -> PtySession {
    let file = File::create(test_dir.work_dir().join("out.txt")).unwrap();
    PtySession::start_with_stdout(command_that_asks(test_dir, &["go"]), 80, Some(file))
}

#[test]
fn signal_ends_a_prompt() {
    for (sent, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let test_dir = TestDir::new();
        let mut pty = start_with_output_file(&test_dir);
        pty.wait_for_text("[y/N] ");
        pty.send_signal(sent);
        assert_eq!(pty.wait_for_exit().code(), Some(code));
        assert!(!test_dir.work_dir().join("pid.txt").exists());
    }
}

#[test]
fn answer_is_taken_and_end_of_input_denies() {
    for keys in ["n\n", "\n", "\u{4}"] {
        let test_dir = TestDir::new();
        let mut pty = start_with_output_file(&test_dir);
        pty.wait_for_text("[y/N] ");
        pty.type_keys(keys);
        assert_eq!(pty.wait_for_exit().code(), Some(0));
        let answer = std::fs::read_to_string(test_dir.work_dir().join("out.txt")).unwrap();
        assert_eq!(answer, "after the call\n");
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
    pty.wait_for_text("Something else");
    pty.type_keys("2");
    pty.wait_for_text("Blue it is.");
    pty.type_keys("\u{4}");
    assert_eq!(pty.wait_for_exit().code(), Some(0), "{}", pty.output());
}

/// Starts the interactive terminal whose command was allowed and is running; returns the pid of the command, too.
fn start_allowed_command(test_dir: &TestDir) -> (PtySession, i32) {
    let mut pty = PtySession::start(command_that_asks(test_dir, &["go"]), 80);
    pty.wait_for_text("Allow once");
    pty.type_keys("y");
    let pid = wait_for_number(&test_dir.work_dir().join("pid.txt"));
    (pty, pid)
}

#[test]
fn escape_interrupts_and_the_conversation_goes_on() {
    let test_dir = TestDir::new();
    let (mut pty, pid) = start_allowed_command(&test_dir);
    pty.type_keys("\u{1b}");
    pty.wait_for_text("interrupted");
    wait_until("the end of the command", || has_exited(pid).then_some(()));
    pty.type_keys("again\r");
    pty.wait_for_text("after the call");
    pty.type_keys("\u{4}");
    assert_eq!(pty.wait_for_exit().code(), Some(0), "{}", pty.output());
}

#[test]
fn signal_leaves_and_nothing_runs_on() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::HUP, 129), (Signal::INT, 130)] {
        let test_dir = TestDir::new();
        let (mut pty, pid) = start_allowed_command(&test_dir);
        pty.send_signal(signal);
        assert_eq!(pty.wait_for_exit().code(), Some(code));
        wait_until("the end of the command", || has_exited(pid).then_some(()));
    }
}

/// Writes a program for the user, such as an editor.
fn write_program(test_dir: &TestDir, text: &str) -> String {
    use std::os::unix::fs::PermissionsExt;
    let path = test_dir.temp_dir().join("program");
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

#[test]
fn interrupt_in_the_external_editor_keeps_the_program_and_the_draft() {
    let test_dir = TestDir::new();
    let editor = write_program(
        &test_dir,
        "#!/bin/sh\necho $$ > editor.txt\nread line < go\nprintf ' edited' >> \"$1\"\n",
    );
    let go = test_dir.work_dir().join("go");
    assert!(Command::new("mkfifo").arg(&go).status().unwrap().success());
    let model = test_dir.write_script(&json!(["an answer"]));
    let mut command = test_dir.command(&["--model", &model]);
    command.env("TERM", "xterm").env("VISUAL", editor);
    let mut pty = PtySession::start(command, 80);
    pty.wait_for_text("what is to be done?");
    pty.type_keys("draft\u{7}");
    wait_for_number(&test_dir.work_dir().join("editor.txt"));
    pty.send_signal(Signal::INT);
    std::fs::write(&go, "now\n").unwrap();
    pty.wait_for_text("draft edited");
    pty.type_keys("\r");
    pty.wait_for_text("an answer");
    pty.type_keys("\u{4}");
    assert_eq!(pty.wait_for_exit().code(), Some(0), "{}", pty.output());
}

#[test]
fn end_of_linear_input_refuses_a_request() {
    let test_dir = TestDir::new();
    let mut command = command_that_asks(&test_dir, &["go"]);
    command.env("TERM", "dumb");
    let mut pty = PtySession::start(command, 80);
    pty.wait_for_text("permission: Bash");
    pty.wait_for_text("number: ");
    pty.type_keys("\u{4}");
    pty.wait_for_text("after the call");
    assert_eq!(pty.wait_for_exit().code(), Some(0), "{}", pty.output());
    assert!(!test_dir.work_dir().join("pid.txt").exists());
}

#[test]
fn question_that_was_open_at_a_kill_is_asked_again() {
    let test_dir = TestDir::new();
    let mut killed = PtySession::start(command_that_asks(&test_dir, &["go"]), 80);
    killed.wait_for_text("Allow once");
    killed.child.kill().unwrap();
    killed.child.wait().unwrap();
    let model = test_dir.write_script(&json!(["after the restart"]));
    let mut command = test_dir.command(&["--model", &model, "--continue"]);
    command.env("TERM", "xterm");
    let mut pty = PtySession::start(command, 80);
    pty.wait_for_text("Allow once");
    pty.type_keys("n");
    pty.wait_for_text("after the restart");
    pty.type_keys("\u{4}");
    assert_eq!(pty.wait_for_exit().code(), Some(0), "{}", pty.output());
    assert!(!test_dir.work_dir().join("pid.txt").exists());
}

#[test]
fn command_line_of_the_user_gets_no_keys() {
    let test_dir = TestDir::new();
    let model = test_dir.write_script(&json!(["hi there"]));
    let mut command = test_dir.command(&["--model", &model, "go"]);
    command.env("TERM", "xterm").env("OPENAI_API_KEY", "secret").env("OTHER", "kept");
    let mut pty = PtySession::start(command, 80);
    pty.wait_for_text("hi there");
    pty.type_keys("!echo \"[$OTHER,$OPENAI_API_KEY]\"\r");
    pty.wait_for_text("[kept,]");
    pty.type_keys("\u{4}");
    assert_eq!(pty.wait_for_exit().code(), Some(0), "{}", pty.output());
}

#[test]
fn refused_call_does_not_run() {
    let test_dir = TestDir::new();
    let mut pty = PtySession::start(command_that_asks(&test_dir, &["go"]), 80);
    pty.wait_for_text("Allow once");
    pty.type_keys("n");
    pty.wait_for_text("after the call");
    pty.type_keys("\u{4}");
    assert_eq!(pty.wait_for_exit().code(), Some(0), "{}", pty.output());
    assert!(!test_dir.work_dir().join("pid.txt").exists());
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
fn linear_output_asks_by_number_and_moves_nothing() {
    for (variable, flags) in [
        (("TERM", "dumb"), &[][..]),
        (("TERM", "xterm"), &["--ax-screen-reader"]),
        (("CLAUDE_AX_SCREEN_READER", "1"), &[]),
    ] {
        let test_dir = TestDir::new();
        let mut command = command_that_asks(&test_dir, flags);
        command.env(variable.0, variable.1);
        let mut pty = PtySession::start(command, 80);
        pty.wait_for_text("you: ");
        pty.type_keys("go\n");
        pty.wait_for_text("number: ");
        pty.type_keys("2\n");
        pty.wait_for_text("after the call");
        pty.type_keys("\u{4}");
        assert_eq!(pty.wait_for_exit().code(), Some(0), "{}", pty.output());
        let shown = pty.output();
        assert!(shown.contains("permission: ") && !shown.contains('\u{1b}'), "{shown:?}");
    }
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
