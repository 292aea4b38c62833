//! Unusable home directories.

use serde_json::{Value, json};

use crate::harness::{TestDir, TestSession, tool_call};

/// Returns the entries of the working directory.
fn work_dir_entries(test_dir: &TestDir) -> Vec<String> {
    let entries = std::fs::read_dir(test_dir.work_dir()).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Runs a background command with this home; returns the warnings and the path of its output.
fn run_background_command(test_dir: &TestDir, home: &str) -> (Vec<Value>, String) {
    let reply = tool_call("Bash", &json!({"command": "echo hello", "run_in_background": true}));
    let mut command =
        test_dir.session_command(&json!([reply, "started", "done"]), &["--allowedTools", "Bash"]);
    command.env("HOME", home).env("TMPDIR", test_dir.temp_dir());
    let mut session = TestSession::start(command);
    session.send_prompt("go");
    let (code, frames, stderr) = session.finish();
    assert_eq!((code, stderr.as_str()), (Some(0), ""), "{home:?}");
    let warnings = frames.iter().filter(|frame| frame["level"] == "warning").cloned().collect();
    let notification = frames.iter().find(|frame| frame["subtype"] == "task_notification").unwrap();
    (warnings, notification["output_file"].as_str().unwrap().to_owned())
}

#[test]
fn unusable_home_is_reported_once() {
    let test_dir = TestDir::new();
    let file = test_dir.work_dir().join("../file");
    std::fs::write(&file, "").unwrap();
    for (home, reason) in
        [("/no/such/home", "does not exist"), (file.to_str().unwrap(), "is not a directory")]
    {
        let (warnings, output) = run_background_command(&test_dir, home);
        assert_eq!(warnings.len(), 1, "{home}: {warnings:?}");
        let text = warnings[0]["content"].as_str().unwrap();
        assert!(text.contains("This session is not saved") && text.contains(reason), "{text}");
        assert!(output.starts_with(test_dir.temp_dir().to_str().unwrap()), "{output}");
        assert_eq!(std::fs::read_to_string(output).unwrap(), "hello\n");
        assert_eq!(work_dir_entries(&test_dir), Vec::<String>::new(), "{home}");
    }
}

#[test]
fn unusable_home_is_reported_on_stderr() {
    let test_dir = TestDir::new();
    let model = test_dir.write_script(&json!(["words"]));
    let mut command = test_dir.command(&["-p", "--model", &model, "hi"]);
    command.env("HOME", "/no/such/home");
    let out = crate::harness::run_command(command, "");
    assert_eq!((out.code, out.stdout.as_str()), (Some(0), "words\n"));
    assert_eq!(out.stderr.matches("/no/such/home").count(), 1, "{}", out.stderr);
}

#[test]
fn nothing_is_stored_in_the_working_directory() {
    for home in ["", ".", "a/b"] {
        let test_dir = TestDir::new();
        let model = test_dir.write_script(&json!(["words"]));
        let mut command = test_dir.command(&["-p", "--no-session-persistence", "--model", &model, "hi"]);
        command.env("HOME", home);
        let out = crate::harness::run_command(command, "");
        assert_eq!(
            (out.code, out.stdout.as_str(), out.stderr.as_str()),
            (Some(0), "words\n", ""),
            "{home:?}"
        );
        assert_eq!(work_dir_entries(&test_dir), Vec::<String>::new(), "{home:?}");
    }
}

#[test]
fn unpersisted_session_leaves_no_output_files() {
    let test_dir = TestDir::new();
    let reply = tool_call("Bash", &json!({"command": "seq 1 20000"}));
    let flags = ["--allowedTools", "Bash", "--no-session-persistence"];
    let mut command = test_dir.session_command(&json!([reply, "done"]), &flags);
    command.env("TMPDIR", test_dir.temp_dir());
    let mut session = TestSession::start(command);
    session.send_prompt("go");
    let (code, frames, _) = session.finish();
    assert_eq!(code, Some(0));
    let output = serde_json::to_string(&frames).unwrap();
    assert!(
        output.contains(&format!("{}/whimbrel-", test_dir.temp_dir().display())),
        "the output was not put aside"
    );
    assert_eq!(std::fs::read_dir(test_dir.temp_dir()).unwrap().count(), 0);
}
