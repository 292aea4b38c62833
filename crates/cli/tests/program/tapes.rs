//! Recordings: a session is run again without a model, and says where it comes out differently.

use serde_json::json;

use crate::rig::Rig;

const PROMPT: &str = "What is in note.txt?";

#[test]
fn a_recorded_session_is_run_again_without_a_model() {
    let rig = Rig::new();
    std::fs::write(rig.work().join("note.txt"), "first\n").unwrap();
    let read = json!([{"type": "tool_use", "name": "Read", "input": {"file_path": "note.txt"}}]);
    let model = rig.script(&json!([read, "It says first."]));
    let first = rig.run(&["-p", "--model", &model, "--record", "tape.jsonl", PROMPT], "");
    assert_eq!((first.code, first.stdout.as_str()), (Some(0), "It says first.\n"), "{}", first.stderr);

    let again = rig.run(&["-p", "--replay", "tape.jsonl", PROMPT], "");
    assert_eq!((again.code, again.stdout.as_str()), (Some(0), "It says first.\n"), "{}", again.stderr);

    std::fs::write(rig.work().join("note.txt"), "second\n").unwrap();
    let other = rig.run(&["-p", "--replay", "tape.jsonl", PROMPT], "");
    let said = format!("{}{}", other.stdout, other.stderr);
    assert_eq!(other.code, Some(1), "{said}");
    for part in ["left the recording", "step 2", "first", "second"] {
        assert!(said.contains(part), "{part}: {said}");
    }

    let taken = rig.run(&["-p", "--model", &model, "--record", "tape.jsonl", PROMPT], "");
    assert_eq!(taken.code, Some(1), "an older recording is not overwritten: {}", taken.stdout);
}
