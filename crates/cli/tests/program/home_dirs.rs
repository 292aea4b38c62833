//! Home folders that are of no use.

use serde_json::{Value, json};

use crate::harness::{TestDir, TestSession, tool_call};

/// What is in the folder that the program works in.
fn work_dir_entries(rig: &TestDir) -> Vec<String> {
    let entries = std::fs::read_dir(rig.work_dir()).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Runs a command in the background with this home, and gives the warnings and where its output went.
fn run_background_command(rig: &TestDir, home: &str) -> (Vec<Value>, String) {
    let reply = tool_call("Bash", &json!({"command": "echo hello", "run_in_background": true}));
    let mut command = rig.session_command(&json!([reply, "started", "done"]), &["--allowedTools", "Bash"]);
    command.env("HOME", home).env("TMPDIR", rig.temp_dir());
    let mut session = TestSession::start(command);
    session.send_prompt("go");
    let (code, frames, stderr) = session.finish();
    assert_eq!((code, stderr.as_str()), (Some(0), ""), "{home:?}");
    let warnings = frames.iter().filter(|frame| frame["level"] == "warning").cloned().collect();
    let told = frames.iter().find(|frame| frame["subtype"] == "task_notification").unwrap();
    (warnings, told["output_file"].as_str().unwrap().to_owned())
}

#[test]
fn a_home_that_cannot_be_used_is_told_once_and_the_session_goes_on() {
    let rig = TestDir::new();
    let file = rig.work_dir().join("../file");
    std::fs::write(&file, "").unwrap();
    for (home, why) in [("/no/such/home", "does not exist"), (file.to_str().unwrap(), "is not a folder")] {
        let (warnings, output) = run_background_command(&rig, home);
        assert_eq!(warnings.len(), 1, "{home}: {warnings:?}");
        let text = warnings[0]["content"].as_str().unwrap();
        assert!(text.contains("Nothing of this session is kept") && text.contains(why), "{text}");
        assert!(output.starts_with(rig.temp_dir().to_str().unwrap()), "{output}");
        assert_eq!(std::fs::read_to_string(output).unwrap(), "hello\n");
        assert_eq!(work_dir_entries(&rig), Vec::<String>::new(), "{home}");
    }
}

#[test]
fn a_person_is_told_on_stderr() {
    let rig = TestDir::new();
    let model = rig.write_script(&json!(["words"]));
    let mut command = rig.command(&["-p", "--model", &model, "hi"]);
    command.env("HOME", "/no/such/home");
    let out = crate::harness::run_command(command, "");
    assert_eq!((out.code, out.stdout.as_str()), (Some(0), "words\n"));
    assert_eq!(out.stderr.matches("/no/such/home").count(), 1, "{}", out.stderr);
}

#[test]
fn nothing_is_kept_in_the_working_folder_when_the_home_is_no_path() {
    for home in ["", ".", "a/b"] {
        let rig = TestDir::new();
        let model = rig.write_script(&json!(["words"]));
        let mut command = rig.command(&["-p", "--no-session-persistence", "--model", &model, "hi"]);
        command.env("HOME", home);
        let out = crate::harness::run_command(command, "");
        assert_eq!(
            (out.code, out.stdout.as_str(), out.stderr.as_str()),
            (Some(0), "words\n", ""),
            "{home:?}"
        );
        assert_eq!(work_dir_entries(&rig), Vec::<String>::new(), "{home:?}");
    }
}

#[test]
fn a_session_that_is_to_leave_nothing_leaves_no_output_either() {
    let rig = TestDir::new();
    let reply = tool_call("Bash", &json!({"command": "seq 1 20000"}));
    let flags = ["--allowedTools", "Bash", "--no-session-persistence"];
    let mut command = rig.session_command(&json!([reply, "done"]), &flags);
    command.env("TMPDIR", rig.temp_dir());
    let mut session = TestSession::start(command);
    session.send_prompt("go");
    let (code, frames, _) = session.finish();
    assert_eq!(code, Some(0));
    let told = serde_json::to_string(&frames).unwrap();
    assert!(
        told.contains(&format!("{}/whimbrel-", rig.temp_dir().display())),
        "the output was not put aside"
    );
    assert_eq!(std::fs::read_dir(rig.temp_dir()).unwrap().count(), 0);
}
