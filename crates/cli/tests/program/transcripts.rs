//! Transcripts on a disk that has no room, and sessions that are already somebody's.

use serde_json::{Value, json};

use crate::rig::{Rig, Session, call, finish, is_gone, number_in};

/// The lines of the only transcript.
fn transcript(rig: &Rig) -> String {
    let projects = rig.work().join("../home/.claude/projects");
    let folder = std::fs::read_dir(projects).unwrap().next().unwrap().unwrap().path();
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let path = files.into_iter().find(|path| path.extension().is_some_and(|end| end == "jsonl")).unwrap();
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn a_transcript_that_cannot_grow_ends_with_a_whole_line_and_the_host_is_told_at_once() {
    let rig = Rig::new();
    let plain = rig.session_command(&json!(["one", "two"]), &[]);
    let mut command = rig.command(&[]);
    let mut limited = std::process::Command::new("sh");
    limited
        .args(["-c", r#"trap "" XFSZ; ulimit -f 8; exec "$0" "$@""#])
        .arg(command.get_program())
        .args(plain.get_args());
    limited
        .env_clear()
        .envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .current_dir(rig.work());
    command = limited;
    let mut session = Session::start(command);
    session.say(&"x".repeat(9_000));
    let warning = session.next("informational");
    assert!(warning["content"].as_str().unwrap().contains("cannot be written"), "{warning}");
    assert_eq!(session.next("result")["result"], "one");
    session.say("again");
    let (code, frames, _) = session.finish();
    assert_eq!((code, &frames.last().unwrap()["result"]), (Some(0), &json!("two")));
    assert!(!frames.iter().any(|frame| frame["level"] == "warning"), "told twice: {frames:?}");
    let text = transcript(&rig);
    assert!(text.len() < 9_000 && (text.is_empty() || text.ends_with('\n')), "{text}");
    assert!(text.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{text}");
}

#[test]
fn a_call_that_was_running_when_the_engine_was_killed_is_told_as_unknown() {
    let rig = Rig::new();
    let slow = call("Bash", &json!({"command": "echo $$ > pid; exec sleep 60"}));
    let mut session = rig.session(&json!([slow]), &["--allowedTools", "Bash"]);
    session.say("go");
    let id = session.next("init")["session_id"].as_str().unwrap().to_owned();
    let pid = number_in(&rig.work().join("pid"));
    session.child.kill().unwrap();
    assert_eq!(session.finish().0, None);
    crate::rig::wait_until("the end of the command", || is_gone(pid).then_some(()));
    let text = transcript(&rig);
    let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!((&last["type"], &last["tool"]), (&json!("tool-start"), &json!("Bash")));
    let model = rig.script(&json!(["I see."]));
    let args = ["-p", "--output-format", "json", "--model", &model, "--resume", &id, "What happened?"];
    let out = finish(rig.command(&args), "");
    assert_eq!(out.code, Some(0), "{out:?}");
    let answer: Value = serde_json::from_str(&out.stdout).unwrap();
    assert_eq!((&answer["result"], &answer["session_id"]), (&json!("I see."), &json!(id)));
}

#[test]
fn an_unknown_session_is_an_error_on_stderr() {
    let rig = Rig::new();
    let model = rig.script(&json!(["one"]));
    let id = "99999999-2222-4333-8444-555555555555";
    let out = rig.run(&["-p", "--model", &model, "--resume", id, "hi"], "");
    assert_eq!((out.code, out.stdout.as_str()), (Some(1), ""));
    assert!(out.stderr.contains(&format!("No conversation found with session ID: {id}")), "{}", out.stderr);
}
