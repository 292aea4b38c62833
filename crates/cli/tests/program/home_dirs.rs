//! Unusable home directories.

use serde_json::{Value, json};

use crate::harness::{TestDir, TestSession, tool_call};

/// Returns the entries of the working directory.
fn work_dir_entries(rig: &TestDir) -> Vec<String> {
    let entries = std::fs::read_dir(rig.work_dir()).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Runs a background command with this home; returns the warnings and the path of its output.
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
fn unusable_home_is_reported_once() {
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
fn unusable_home_is_reported_on_stderr() {
    let rig = TestDir::new();
    let model = rig.write_script(&json!(["words"]));
    let mut command = rig.command(&["-p", "--model", &model, "hi"]);
    command.env("HOME", "/no/such/home");
    let out = crate::harness::run_command(command, "");
    assert_eq!((out.code, out.stdout.as_str()), (Some(0), "words\n"));
    assert_eq!(out.stderr.matches("/no/such/home").count(), 1, "{}", out.stderr);
}

#[test]
fn nothing_is_stored_in_the_working_directory() {
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
fn unpersisted_session_leaves_no_output_files() {
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
