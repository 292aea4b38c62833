//! Stories, told from frames.

use serde_json::{Value, json};
use whimbrel_wire::decode;

use super::*;

/// What a person reads of these frames: the text and, marked, the margin.
fn told(frames: &[Value]) -> (String, String) {
    told_in(|| None, frames)
}

/// The same at a terminal of a certain width.
fn told_in(columns: fn() -> Option<usize>, frames: &[Value]) -> (String, String) {
    let (mut text, mut margin) = (Vec::new(), Vec::new());
    let mut story = Story::new((&mut text, &mut margin), columns, Path::new("/place"), Paint::Plain, None);
    for frame in frames {
        story.tell(&decode(&frame.to_string()).unwrap()).unwrap();
    }
    (String::from_utf8(text).unwrap(), String::from_utf8(margin).unwrap())
}

fn assistant(block: &Value) -> Value {
    json!({"type": "assistant", "parent_tool_use_id": null, "message": {"model": "m", "content": [block]}})
}

fn piece(text: &str) -> Value {
    json!({"type": "stream_event", "parent_tool_use_id": null,
        "event": {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}})
}

fn answered(id: &str, text: &str, is_error: bool) -> Value {
    json!({"type": "user", "message": {"role": "user", "content":
        [{"type": "tool_result", "tool_use_id": id, "content": text, "is_error": is_error}]}})
}

#[test]
fn words_are_told_once_whether_they_were_streamed_or_not() {
    let whole = assistant(&json!({"type": "text", "text": "one two"}));
    let streamed = [piece("one "), piece("two"), whole.clone()];
    assert_eq!(told(&[whole]), ("one two\n".into(), String::new()));
    assert_eq!(told(&streamed), ("one two\n".into(), String::new()));
}

#[test]
fn each_call_is_one_line_with_a_mark() {
    let frames = [
        piece("I look."),
        assistant(&json!({"type": "text", "text": "I look."})),
        assistant(&json!({"type": "tool_use", "id": "a", "name": "Bash", "input": {"command": "ls"}})),
        assistant(
            &json!({"type": "tool_use", "id": "b", "name": "Read", "input": {"file_path": "/place/x"}}),
        ),
        answered("b", "no such file", true),
        answered("a", "one\ntwo", false),
        assistant(&json!({"type": "text", "text": "Done."})),
    ];
    let margin = "  ✗ Read  x  → no such file\n  ✓ Bash  ls  → one\n";
    assert_eq!(told(&frames), ("I look.\n\nDone.\n".into(), margin.into()));
}

#[test]
fn a_call_takes_one_line_however_narrow_the_terminal_is() {
    let frames = [
        assistant(
            &json!({"type": "tool_use", "id": "a", "name": "Bash", "input": {"command": "cargo test --workspace"}}),
        ),
        answered("a", "all is well", false),
    ];
    let (_, wide) = told_in(|| Some(100), &frames);
    assert_eq!(wide, "  ✓ Bash  cargo test --workspace  → all is well\n");
    let (_, narrow) = told_in(|| Some(30), &frames);
    assert_eq!(narrow, "  ✓ Bash  cargo test --wor…\n");
}

#[test]
fn what_subagents_say_is_left_out() {
    let mut below = assistant(&json!({"type": "text", "text": "hidden"}));
    below["parent_tool_use_id"] = "t".into();
    assert_eq!(told(&[below]), (String::new(), String::new()));
}

#[test]
fn a_failed_run_says_why_once() {
    let mut report = assistant(&json!({"type": "text", "text": "API Error: no"}));
    report["error"] = "server_error".into();
    let result = json!({"type": "result", "subtype": "success", "is_error": true, "result": "API Error: no",
        "duration_ms": 100, "duration_api_ms": 1, "num_turns": 1});
    assert_eq!(told(&[report, result]), (String::new(), "✗ API Error: no\n1 turn, 0.1 s, no cost\n".into()));
}
