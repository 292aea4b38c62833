//! Signals, and hosts that go away.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::rig::{Rig, Session, call, ended, is_gone, number_in, wait_until};

/// Everything ends within two seconds; the rest is what a busy machine may add.
const SOON: Duration = Duration::from_secs(5);

/// A session whose script runs a command that never ends by itself, and the number of that command.
fn with_a_long_command(rig: &Rig) -> (Session, i32) {
    let reply = call("Bash", &json!({"command": "echo $$ > pid.txt; exec sleep 600"}));
    let mut command =
        rig.session_command(&json!([reply, "never"]), &["--permission-mode", "bypassPermissions"]);
    command.env("IS_SANDBOX", "1");
    let mut session = Session::start(command);
    session.say("go");
    let pid = number_in(&rig.work().join("pid.txt"));
    (session, pid)
}

fn signal(session: &Session, signal: Signal) {
    kill_process(Pid::from_child(&session.child), signal).unwrap();
}

#[test]
fn a_signal_ends_the_command_and_then_the_program() {
    for (sent, code) in [(Signal::TERM, 143), (Signal::INT, 130), (Signal::HUP, 129)] {
        let rig = Rig::new();
        let (mut session, pid) = with_a_long_command(&rig);
        let began = Instant::now();
        signal(&session, sent);
        assert_eq!(ended(&mut session.child).code(), Some(code));
        assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
        wait_until("the end of the command", || is_gone(pid).then_some(()));
        let frames = session.finish().1;
        let results: Vec<&Value> = frames.iter().filter(|frame| frame["type"] == "result").collect();
        assert_eq!(results.len(), 1, "the interrupted turn has a result: {frames:?}");
    }
}

#[test]
fn a_signal_ends_an_idle_program() {
    let rig = Rig::new();
    let mut session = rig.session(&json!(["one"]), &[]);
    session.say("go");
    session.next("result");
    signal(&session, Signal::TERM);
    assert_eq!(ended(&mut session.child).code(), Some(143));
}

#[test]
fn a_signal_ends_a_program_whose_output_nobody_reads() {
    let rig = Rig::new();
    let mut child =
        piped(rig.session_command(&json!(["x".repeat(900_000)]), &["--include-partial-messages"]));
    say(&mut child);
    let mut first = [0];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut first).unwrap();
    let began = Instant::now();
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert_eq!(ended(&mut child).code(), Some(143));
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
}

/// Starts a session whose stdout can be closed.
fn piped(mut command: Command) -> std::process::Child {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
}

fn say(child: &mut std::process::Child) {
    let prompt = json!({"type": "user", "message": {"role": "user", "content": "go"}});
    std::io::Write::write_all(child.stdin.as_mut().unwrap(), format!("{prompt}\n").as_bytes()).unwrap();
}

#[test]
fn a_host_that_no_longer_reads_ends_the_program() {
    let rig = Rig::new();
    let mut child = piped(rig.session_command(&json!(["words"]), &[]));
    drop(child.stdout.take());
    say(&mut child);
    assert_eq!(ended(&mut child).code(), Some(1));
}

#[test]
fn a_host_that_died_ends_a_program_that_waits_for_its_model() {
    let rig = Rig::new();
    let mut child = piped(rig.session_command(&json!([{"delay_ms": 600_000, "content": ["never"]}]), &[]));
    say(&mut child);
    let mut first = [0];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut first).unwrap();
    let began = Instant::now();
    drop((child.stdin.take(), child.stdout.take()));
    assert_eq!(ended(&mut child).code(), Some(1));
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
}

#[test]
fn a_host_that_no_longer_reads_is_noticed_while_its_input_is_open() {
    let rig = Rig::new();
    let reply = call("Bash", &json!({"command": "echo $$ > pid.txt; exec sleep 600"}));
    let mut command = rig.session_command(&json!([reply]), &["--permission-mode", "bypassPermissions"]);
    command.env("IS_SANDBOX", "1");
    let mut child = piped(command);
    say(&mut child);
    let pid = number_in(&rig.work().join("pid.txt"));
    let began = Instant::now();
    drop(child.stdout.take());
    assert_eq!(ended(&mut child).code(), Some(1));
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    wait_until("the end of the command", || is_gone(pid).then_some(()));
}

#[test]
fn a_pipe_that_nobody_reads_ends_a_prompt_whose_answer_is_awaited() {
    let rig = Rig::new();
    let model = rig.script(&json!([{"delay_ms": 600_000, "content": ["never"]}]));
    let mut child = piped(rig.command(&["-p", "--model", &model, "go"]));
    drop((child.stdin.take(), child.stdout.take()));
    assert_eq!(ended(&mut child).code(), Some(1));
}

/// A session that may be outlived by a command in the background, which prints again once it finds a file; its number.
fn with_a_command_to_be_let_go(rig: &Rig) -> (Session, i32) {
    let command =
        "echo $$ > pid.txt; echo before; until [ -e gate ]; do sleep 0.05; done; echo after; rm gate";
    let replies = json!([call("Bash", &json!({"command": command, "run_in_background": true})), "It runs."]);
    let more = ["--permission-mode", "bypassPermissions", "--background-at-end", "detach"];
    let mut start = rig.session_command(&replies, &more);
    start.env("IS_SANDBOX", "1");
    let mut session = Session::start(start);
    session.say("go");
    assert_eq!(session.next("result")["result"], "It runs.");
    (session, number_in(&rig.work().join("pid.txt")))
}

#[test]
fn a_command_outlives_a_run_that_lets_it_go_and_says_where_it_is() {
    let rig = Rig::new();
    let (session, pid) = with_a_command_to_be_let_go(&rig);
    let (code, frames, _) = session.finish();
    assert_eq!(code, Some(0));
    let last = frames.iter().rev().find(|frame| frame["subtype"] == "task_notification").unwrap();
    assert_eq!((&last["status"], &last["reason"]), (&json!("stopped"), &json!("detached")));
    assert!(last["summary"].as_str().unwrap().contains(&format!("process {pid};")), "{last}");
    assert!(!is_gone(pid), "it goes on");
    let gate = rig.work().join("gate");
    std::fs::write(&gate, "").unwrap();
    wait_until("the end of the command", || is_gone(pid).then_some(()));
    assert!(!gate.exists(), "it has come to its own end");
    let printed = std::fs::read_to_string(last["output_file"].as_str().unwrap()).unwrap();
    assert_eq!(printed, "before\nafter\n");
}

#[test]
fn a_command_that_could_be_let_go_still_ends_with_a_run_that_is_stopped_or_killed() {
    for sent in [Signal::TERM, Signal::KILL] {
        let rig = Rig::new();
        let (mut session, pid) = with_a_command_to_be_let_go(&rig);
        signal(&session, sent);
        ended(&mut session.child);
        wait_until("the end of the command", || is_gone(pid).then_some(()));
    }
}

/// A command that leaves a daemon behind which has left its group and its environment.
const DAEMON: &str = "env -i setsid sh -c 'trap \"\" TERM HUP; echo $$ > pid.txt; exec sleep 600' >/dev/null 2>&1 & while [ ! -s pid.txt ]; do sleep 0.01; done";

#[test]
fn a_daemon_ends_with_the_program_however_that_ends() {
    for sent in [None, Some(Signal::TERM), Some(Signal::KILL)] {
        let rig = Rig::new();
        let replies = json!([call("Bash", &json!({"command": DAEMON})), "done"]);
        let mut command = rig.session_command(&replies, &["--permission-mode", "bypassPermissions"]);
        command.env("IS_SANDBOX", "1");
        let mut session = Session::start(command);
        session.say("go");
        assert_eq!(session.next("result")["result"], "done");
        let pid = number_in(&rig.work().join("pid.txt"));
        assert!(!is_gone(pid), "it goes on as long as the session");
        match sent {
            Some(sent) => signal(&session, sent),
            None => session.end_input(),
        }
        ended(&mut session.child);
        wait_until("the end of the daemon", || is_gone(pid).then_some(()));
    }
}
