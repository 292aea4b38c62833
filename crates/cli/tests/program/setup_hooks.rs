//! Hooks that prepare or maintain a project (`--init`, `--init-only`, `--maintenance`).

use serde_json::{Value, json};

use crate::harness::TestDir;

/// Settings whose hooks write their trigger and source to a file; the last one runs this command.
fn settings(command: &str) -> String {
    let record = |field: &str| format!("grep -o '\"{field}\":\"[a-z]*\"' >> ran");
    let hooks = |command: &str| json!([{"hooks": [{"type": "command", "command": command}]}]);
    let setup = json!([
        {"matcher": "init", "hooks": [{"type": "command", "command": record("trigger")}]},
        {"matcher": "maintenance", "hooks": [{"type": "command", "command": record("trigger")}]},
        {"hooks": [{"type": "command", "command": command}]},
    ]);
    json!({"hooks": {"Setup": setup, "SessionStart": hooks(&record("source"))}}).to_string()
}

const CONTEXT: &str =
    r#"echo '{"hookSpecificOutput":{"hookEventName":"Setup","additionalContext":"PREPARED"}}'"#;

#[test]
fn setup_hooks_run_before_the_session_starts() {
    for (flag, trigger) in [("--init", "init"), ("--maintenance", "maintenance")] {
        let test_dir = TestDir::new();
        let mut session =
            test_dir.start_session(&json!(["One.", "Two."]), &["--settings", &settings(CONTEXT), flag]);
        for (prompt, answer) in [("Go.", "One."), ("Again.", "Two.")] {
            session.send_prompt(prompt);
            assert_eq!(session.next_frame("result")["result"], answer, "{flag}");
        }
        assert_eq!(session.finish().0, Some(0));
        let ran = std::fs::read_to_string(test_dir.work_dir().join("ran")).unwrap();
        assert_eq!(ran, format!("\"trigger\":\"{trigger}\"\n\"source\":\"startup\"\n"), "once");
        let transcript = test_dir.read_transcript();
        assert!(transcript.contains("PREPARED"), "{transcript}");
    }
}

#[test]
fn init_only_runs_hooks_without_a_turn() {
    for (command, code) in [(CONTEXT, 0), ("echo broken >&2; exit 1", 1), ("echo blocked >&2; exit 2", 1)] {
        let test_dir = TestDir::new();
        let settings = settings(command);
        // No model is needed.
        let output = test_dir.run(&["--init-only", "--settings", &settings], "");
        assert_eq!((output.code, output.stdout.as_str()), (Some(code), ""), "{output:?}");
        let ran = std::fs::read_to_string(test_dir.work_dir().join("ran")).unwrap();
        assert_eq!(ran, "\"trigger\":\"init\"\n\"source\":\"startup\"\n");
        let reason =
            command.strip_prefix("echo ").filter(|_| code == 1).and_then(|text| text.split(' ').next());
        assert!(reason.is_none_or(|reason| output.stderr.contains(reason)), "{output:?}");
    }
    let output = TestDir::new().run(&["--init-only", "Go."], "");
    assert!(output.code == Some(1) && output.stderr.contains("--init-only runs no prompt"), "{output:?}");
}

#[test]
fn setup_hooks_do_not_run_by_themselves() {
    let test_dir = TestDir::new();
    let mut session = test_dir.start_session(&json!(["One."]), &["--settings", &settings(CONTEXT)]);
    session.send_prompt("Go.");
    assert_eq!(session.next_frame("result")["result"], Value::from("One."));
    assert_eq!(session.finish().0, Some(0));
    let ran = std::fs::read_to_string(test_dir.work_dir().join("ran")).unwrap();
    assert_eq!(ran, "\"source\":\"startup\"\n");
}
