//! Signals, and hosts that disconnect.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::harness::{
    TestDir, TestSession, has_exited, tool_call, wait_for_exit, wait_for_number, wait_until,
};

/// Starts a session whose script runs an endless command; returns the pid of the command, too.
fn start_long_command(test_dir: &TestDir) -> (TestSession, i32) {
    let reply = tool_call("Bash", &json!({"command": "echo $$ > pid.txt; exec sleep 600"}));
    let mut command =
        test_dir.session_command(&json!([reply, "never"]), &["--permission-mode", "bypassPermissions"]);
    command.env("IS_SANDBOX", "1");
    let mut session = TestSession::start(command);
    session.send_prompt("go");
    let pid = wait_for_number(&test_dir.work_dir().join("pid.txt"));
    (session, pid)
}

fn send_signal(session: &TestSession, signal: Signal) {
    kill_process(Pid::from_child(&session.child), signal).unwrap();
}

#[test]
fn signal_ends_the_command_and_the_program() {
    for (sent, code) in [(Signal::TERM, 143), (Signal::INT, 130), (Signal::HUP, 129)] {
        let test_dir = TestDir::new();
        let (mut session, pid) = start_long_command(&test_dir);
        send_signal(&session, sent);
        assert_eq!(wait_for_exit(&mut session.child).code(), Some(code));
        wait_until("the end of the command", || has_exited(pid).then_some(()));
        let frames = session.finish().1;
        let results: Vec<&Value> = frames.iter().filter(|frame| frame["type"] == "result").collect();
        assert_eq!(results.len(), 1, "the interrupted turn has a result: {frames:?}");
    }
}

#[test]
fn signal_ends_an_idle_program() {
    let test_dir = TestDir::new();
    let mut session = test_dir.start_session(&json!(["one"]), &[]);
    session.send_prompt("go");
    session.next_frame("result");
    send_signal(&session, Signal::TERM);
    assert_eq!(wait_for_exit(&mut session.child).code(), Some(143));
}

#[test]
fn signal_ends_a_program_with_unread_output() {
    let test_dir = TestDir::new();
    let mut child =
        spawn_piped(test_dir.session_command(&json!(["x".repeat(900_000)]), &["--include-partial-messages"]));
    send_prompt(&mut child);
    let mut first = [0];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut first).unwrap();
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert_eq!(wait_for_exit(&mut child).code(), Some(143));
}

/// Starts a session whose stdout can be closed.
fn spawn_piped(mut command: Command) -> std::process::Child {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
}

fn send_prompt(child: &mut std::process::Child) {
    let prompt = json!({"type": "user", "message": {"role": "user", "content": "go"}});
    std::io::Write::write_all(child.stdin.as_mut().unwrap(), format!("{prompt}\n").as_bytes()).unwrap();
}

#[test]
fn closed_stdout_ends_the_program() {
    let test_dir = TestDir::new();
    let mut child = spawn_piped(test_dir.session_command(&json!(["words"]), &[]));
    drop(child.stdout.take());
    send_prompt(&mut child);
    assert_eq!(wait_for_exit(&mut child).code(), Some(1));
}

#[test]
fn closed_stdout_ends_a_program_waiting_for_its_model() {
    let test_dir = TestDir::new();
    let mut child =
        spawn_piped(test_dir.session_command(&json!([{"delay_ms": 600_000, "content": ["never"]}]), &[]));
    send_prompt(&mut child);
    let mut first = [0];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut first).unwrap();
    drop((child.stdin.take(), child.stdout.take()));
    assert_eq!(wait_for_exit(&mut child).code(), Some(1));
}

#[test]
fn closed_stdout_is_detected_while_the_input_is_open() {
    let test_dir = TestDir::new();
    let reply = tool_call("Bash", &json!({"command": "echo $$ > pid.txt; exec sleep 600"}));
    let mut command = test_dir.session_command(&json!([reply]), &["--permission-mode", "bypassPermissions"]);
    command.env("IS_SANDBOX", "1");
    let mut child = spawn_piped(command);
    send_prompt(&mut child);
    let pid = wait_for_number(&test_dir.work_dir().join("pid.txt"));
    drop(child.stdout.take());
    assert_eq!(wait_for_exit(&mut child).code(), Some(1));
    wait_until("the end of the command", || has_exited(pid).then_some(()));
}

#[test]
fn closed_pipe_ends_a_pending_prompt() {
    let test_dir = TestDir::new();
    let model = test_dir.write_script(&json!([{"delay_ms": 600_000, "content": ["never"]}]));
    let mut child = spawn_piped(test_dir.command(&["-p", "--model", &model, "go"]));
    drop((child.stdin.take(), child.stdout.take()));
    assert_eq!(wait_for_exit(&mut child).code(), Some(1));
}

#[test]
fn open_question_survives_a_stopped_program() {
    let prompts = ["--permission-prompt-tool", "stdio"];
    for stop in [Some(Signal::TERM), Some(Signal::KILL), None] {
        let test_dir = TestDir::new();
        let call = tool_call("Bash", &json!({"command": "touch made"}));
        let mut child = spawn_piped(test_dir.session_command(&json!([call]), &prompts));
        send_prompt(&mut child);
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let frames = std::iter::from_fn(|| serde_json::from_str::<Value>(&lines.next()?.unwrap()).ok());
        let mut session = String::new();
        let question = frames
            .inspect(|frame| session = frame["session_id"].as_str().unwrap_or(&session).to_owned())
            .find(|frame| frame["request"]["subtype"] == "can_use_tool")
            .unwrap();
        match stop {
            Some(signal) => kill_process(Pid::from_child(&child), signal).unwrap(),
            // The host is gone: both pipes are closed.
            None => drop((child.stdin.take(), lines)),
        }
        wait_for_exit(&mut child);

        let mut resumed =
            test_dir.start_session(&json!(["Done."]), &[&prompts[..], &["--resume", &session]].concat());
        let request = json!({"type": "control_request", "request_id": "r", "request": {"subtype": "resume_pending_calls"}});
        resumed.write(format!("{request}\n").as_bytes());
        let again = resumed.find_frame("question", |frame| frame["request"]["subtype"] == "can_use_tool");
        assert_eq!(again["request"]["tool_use_id"], question["request"]["tool_use_id"], "{stop:?}");
        let answer = json!({"subtype": "success", "request_id": again["request_id"], "response": {"behavior": "allow"}});
        resumed.write(format!("{}\n", json!({"type": "control_response", "response": answer})).as_bytes());
        assert_eq!(resumed.next_frame("result")["result"], "Done.", "{stop:?}");
        assert!(test_dir.work_dir().join("made").exists(), "{stop:?}");
    }
}

/// Starts a session that may detach a background command, which prints again once a file exists; returns its pid, too.
fn start_detachable_command(test_dir: &TestDir) -> (TestSession, i32) {
    let command =
        "echo $$ > pid.txt; echo before; until [ -e gate ]; do sleep 0.05; done; echo after; rm gate";
    let replies =
        json!([tool_call("Bash", &json!({"command": command, "run_in_background": true})), "It runs."]);
    let more = ["--permission-mode", "bypassPermissions", "--background-at-end", "detach"];
    let mut start = test_dir.session_command(&replies, &more);
    start.env("IS_SANDBOX", "1");
    let mut session = TestSession::start(start);
    session.send_prompt("go");
    assert_eq!(session.next_frame("result")["result"], "It runs.");
    (session, wait_for_number(&test_dir.work_dir().join("pid.txt")))
}

#[test]
fn detached_command_outlives_the_run() {
    let test_dir = TestDir::new();
    let (session, pid) = start_detachable_command(&test_dir);
    let (code, frames, _) = session.finish();
    assert_eq!(code, Some(0));
    let last = frames.iter().rev().find(|frame| frame["subtype"] == "task_notification").unwrap();
    assert_eq!((&last["status"], &last["reason"]), (&json!("stopped"), &json!("detached")));
    assert!(last["summary"].as_str().unwrap().contains(&format!("process {pid};")), "{last}");
    assert!(!has_exited(pid), "it goes on");
    let gate = test_dir.work_dir().join("gate");
    std::fs::write(&gate, "").unwrap();
    wait_until("the end of the command", || has_exited(pid).then_some(()));
    assert!(!gate.exists(), "it has come to its own end");
    let printed = std::fs::read_to_string(last["output_file"].as_str().unwrap()).unwrap();
    assert_eq!(printed, "before\nafter\n");
}

#[test]
fn detachable_command_ends_with_a_stopped_or_killed_run() {
    for sent in [Signal::TERM, Signal::KILL] {
        let test_dir = TestDir::new();
        let (mut session, pid) = start_detachable_command(&test_dir);
        send_signal(&session, sent);
        wait_for_exit(&mut session.child);
        wait_until("the end of the command", || has_exited(pid).then_some(()));
    }
}

/// A command that leaves a daemon with a process group of its own and an empty environment.
const DAEMON: &str = "env -i setsid sh -c 'trap \"\" TERM HUP; echo $$ > pid.txt; exec sleep 600' >/dev/null 2>&1 & while [ ! -s pid.txt ]; do sleep 0.01; done";

#[test]
fn daemon_ends_with_the_program() {
    for sent in [None, Some(Signal::TERM), Some(Signal::KILL)] {
        let test_dir = TestDir::new();
        let replies = json!([tool_call("Bash", &json!({"command": DAEMON})), "done"]);
        let mut command = test_dir.session_command(&replies, &["--permission-mode", "bypassPermissions"]);
        command.env("IS_SANDBOX", "1");
        let mut session = TestSession::start(command);
        session.send_prompt("go");
        assert_eq!(session.next_frame("result")["result"], "done");
        let pid = wait_for_number(&test_dir.work_dir().join("pid.txt"));
        assert!(!has_exited(pid), "it goes on as long as the session");
        match sent {
            Some(sent) => send_signal(&session, sent),
            None => session.close_input(),
        }
        wait_for_exit(&mut session.child);
        wait_until("the end of the daemon", || has_exited(pid).then_some(()));
    }
}
