//! Frames rendered as text and notes.

use serde_json::{Value, json};
use whimbrel_wire::decode;

use super::*;

/// Returns the text and the notes that a user sees for these frames.
fn render_frames(frames: &[Value]) -> (String, String) {
    render_at_width(|| None, frames)
}

/// Same at a terminal of a given width.
fn render_at_width(columns: fn() -> Option<usize>, frames: &[Value]) -> (String, String) {
    let (mut text, mut notes) = (Vec::new(), Vec::new());
    let mut renderer =
        FrameRenderer::new((&mut text, &mut notes), columns, Path::new("/place"), Style::Plain, None);
    for frame in frames {
        renderer.render(&decode(&frame.to_string()).unwrap()).unwrap();
    }
    (String::from_utf8(text).unwrap(), String::from_utf8(notes).unwrap())
}

fn assistant_frame(block: &Value) -> Value {
    json!({"type": "assistant", "parent_tool_use_id": null, "message": {"model": "m", "content": [block]}})
}

fn delta_frame(text: &str) -> Value {
    json!({"type": "stream_event", "parent_tool_use_id": null,
        "event": {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}})
}

fn tool_result_frame(id: &str, text: &str, is_error: bool) -> Value {
    json!({"type": "user", "message": {"role": "user", "content":
        [{"type": "tool_result", "tool_use_id": id, "content": text, "is_error": is_error}]}})
}

#[test]
fn text_is_written_once_whether_streamed_or_not() {
    let whole = assistant_frame(&json!({"type": "text", "text": "one two"}));
    let streamed = [delta_frame("one "), delta_frame("two"), whole.clone()];
    assert_eq!(render_frames(&[whole]), ("one two\n".into(), String::new()));
    assert_eq!(render_frames(&streamed), ("one two\n".into(), String::new()));
}

#[test]
fn each_call_is_one_line_with_a_symbol() {
    let frames = [
        delta_frame("I look."),
        assistant_frame(&json!({"type": "text", "text": "I look."})),
        assistant_frame(&json!({"type": "tool_use", "id": "a", "name": "Bash", "input": {"command": "ls"}})),
        assistant_frame(
            &json!({"type": "tool_use", "id": "b", "name": "Read", "input": {"file_path": "/place/x"}}),
        ),
        tool_result_frame("b", "no such file", true),
        tool_result_frame("a", "one\ntwo", false),
        assistant_frame(&json!({"type": "text", "text": "Done."})),
    ];
    let notes = "  ✗ Read  x  → no such file\n  ✓ Bash  ls  → one\n";
    assert_eq!(render_frames(&frames), ("I look.\n\nDone.\n".into(), notes.into()));
}

#[test]
fn call_is_one_line_at_any_width() {
    let frames = [
        assistant_frame(
            &json!({"type": "tool_use", "id": "a", "name": "Bash", "input": {"command": "cargo test --workspace"}}),
        ),
        tool_result_frame("a", "all is well", false),
    ];
    let (_, wide) = render_at_width(|| Some(100), &frames);
    assert_eq!(wide, "  ✓ Bash  cargo test --workspace  → all is well\n");
    let (_, narrow) = render_at_width(|| Some(30), &frames);
    assert_eq!(narrow, "  ✓ Bash  cargo test --wor…\n");
}

#[test]
fn subagent_text_is_left_out() {
    let mut subagent = assistant_frame(&json!({"type": "text", "text": "hidden"}));
    subagent["parent_tool_use_id"] = "t".into();
    assert_eq!(render_frames(&[subagent]), (String::new(), String::new()));
}

#[test]
fn failed_run_reports_its_error_once() {
    let mut report = assistant_frame(&json!({"type": "text", "text": "API Error: no"}));
    report["error"] = "server_error".into();
    let result = json!({"type": "result", "subtype": "success", "is_error": true, "result": "API Error: no",
        "duration_ms": 100, "duration_api_ms": 1, "num_turns": 1});
    assert_eq!(
        render_frames(&[report, result]),
        (String::new(), "✗ API Error: no\n1 turn, 0.1 s, no cost\n".into())
    );
}
