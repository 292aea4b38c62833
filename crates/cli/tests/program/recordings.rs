//! Recordings: a session is replayed without a model, and reports where it deviates.

use serde_json::{Value, json};

use crate::harness::{TestDir, TestSession, tool_call};

const PROMPT: &str = "What is in note.txt?";

#[test]
fn recorded_session_is_replayed_without_a_model() {
    let test_dir = TestDir::new();
    std::fs::write(test_dir.work_dir().join("note.txt"), "first\n").unwrap();
    let read = json!([{"type": "tool_use", "name": "Read", "input": {"file_path": "note.txt"}}]);
    let model = test_dir.write_script(&json!([read, "It says first."]));
    let first = test_dir.run(&["-p", "--model", &model, "--record", "tape.jsonl", PROMPT], "");
    assert_eq!((first.code, first.stdout.as_str()), (Some(0), "It says first.\n"), "{}", first.stderr);

    let again = test_dir.run(&["-p", "--replay", "tape.jsonl", PROMPT], "");
    assert_eq!((again.code, again.stdout.as_str()), (Some(0), "It says first.\n"), "{}", again.stderr);

    std::fs::write(test_dir.work_dir().join("note.txt"), "second\n").unwrap();
    let other = test_dir.run(&["-p", "--replay", "tape.jsonl", PROMPT], "");
    let output = format!("{}{}", other.stdout, other.stderr);
    assert_eq!(other.code, Some(1), "{output}");
    for part in ["differs from the recording", "step 2", "first", "second"] {
        assert!(output.contains(part), "{part}: {output}");
    }

    let refused = test_dir.run(&["-p", "--model", &model, "--record", "tape.jsonl", PROMPT], "");
    assert_eq!(refused.code, Some(1), "an older recording is not overwritten: {}", refused.stdout);
}

/// Starts a session that replays the recording.
fn start_replay(test_dir: &TestDir) -> TestSession {
    let args = ["--input-format", "stream-json", "--output-format", "stream-json", "--verbose"];
    TestSession::start(test_dir.command(&[&args[..], &["--replay", "tape.jsonl"]].concat()))
}

#[test]
fn timestamps_may_differ_and_unused_steps_are_reported() {
    let test_dir = TestDir::new();
    let when = tool_call("Bash", &json!({"command": "date -u +%Y-%m-%dT%H:%M:%S.%NZ"}));
    let more = ["--record", "tape.jsonl", "--allowedTools", "Bash"];
    let mut first = test_dir.start_session(&json!([when, "It is late.", "Later still."]), &more);
    for prompt in ["When?", "And now?"] {
        first.send_prompt(prompt);
        first.next_frame("result");
    }
    let (code, rest, _) = first.finish();
    assert_eq!((code, rest.len()), (Some(0), 0), "a recording that is made owes nothing: {rest:?}");

    let mut again = start_replay(&test_dir);
    again.send_prompt("When?");
    let result = again.next_frame("result");
    assert_eq!(result["result"], "It is late.", "{result}");
    let (code, rest, _) = again.finish();
    let warning = rest.iter().find_map(|frame| frame["content"].as_str()).unwrap_or_default();
    assert!(warning.starts_with("1 of the 3 recorded steps") && warning.contains("step 3"), "{rest:?}");
    assert_eq!(code, Some(0));

    let mut whole = start_replay(&test_dir);
    for (prompt, answer) in [("When?", "It is late."), ("And now?", "Later still.")] {
        whole.send_prompt(prompt);
        assert_eq!(whole.next_frame("result")["result"], answer);
    }
    assert_eq!(whole.finish().1, Vec::<Value>::new());
}

#[test]
fn interrupted_compaction_is_replayed() {
    let test_dir = TestDir::new();
    let mut first =
        test_dir.start_session(&json!(["Hello.", "The user said hi."]), &["--record", "tape.jsonl"]);
    for prompt in ["Hi.", "/compact"] {
        first.send_prompt(prompt);
        first.next_frame("result");
    }
    first.finish();
    let recording = test_dir.work_dir().join("tape.jsonl");
    let text = std::fs::read_to_string(&recording).unwrap();
    let mut steps: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    steps[1]["events"] = json!([]);
    steps[1]["fault"] =
        json!({"kind": "Cut", "message": "The reply was abandoned before its end.", "left": true});
    std::fs::write(&recording, steps.iter().map(|step| format!("{step}\n")).collect::<String>()).unwrap();

    let mut again = start_replay(&test_dir);
    again.send_prompt("Hi.");
    assert_eq!(again.next_frame("result")["result"], "Hello.");
    again.send_prompt("/compact");
    let result = again.next_frame("result");
    assert_eq!(result["subtype"], "error_during_execution", "{result}");
    assert_eq!(again.finish().1, Vec::<Value>::new());
}
