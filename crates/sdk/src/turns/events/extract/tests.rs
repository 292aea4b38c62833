//! Text and events of frames.

use serde_json::{Value, json};
use whimbrel_wire::decode;

use super::*;

fn stream(event: &Value) -> Frame {
    decode(&json!({"type": "stream_event", "event": event, "parent_tool_use_id": null}).to_string()).unwrap()
}

fn message_start(id: &str) -> Frame {
    stream(&json!({"type": "message_start", "message": {"id": id}}))
}

fn block_start() -> Frame {
    stream(&json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}))
}

fn text_delta(text: &str) -> Frame {
    stream(&json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}))
}

fn message(id: &str, parent: Option<&str>, block: &Value) -> Frame {
    let line = json!({"type": "assistant", "parent_tool_use_id": parent,
        "message": {"id": id, "model": "x", "content": [block]}});
    decode(&line.to_string()).unwrap()
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

#[test]
fn text_is_given_out_once() {
    let rows: [(&str, Vec<Frame>, &str); 5] = [
        (
            "streamed",
            vec![
                message_start("m"),
                block_start(),
                text_delta("He"),
                text_delta("llo"),
                message("m", None, &text("Hello")),
            ],
            "Hello",
        ),
        ("whole", vec![message("m", None, &text("Hello"))], "Hello"),
        (
            "two replies",
            vec![message("m", None, &text("One")), message("n", None, &text("Two"))],
            "One\n\nTwo",
        ),
        (
            "two streamed blocks",
            vec![message_start("m"), block_start(), text_delta("One"), block_start(), text_delta("Two")],
            "One\n\nTwo",
        ),
        (
            "a subagent",
            vec![message("m", Some("call"), &text("inner")), message("n", None, &text("outer"))],
            "outer",
        ),
    ];
    for (name, frames, expected) in rows {
        let mut extractor = TextExtractor::default();
        let pieces: Vec<String> = frames.iter().filter_map(|frame| extractor.extract(frame)).collect();
        assert_eq!(pieces.concat(), expected, "{name}");
    }
}

#[test]
fn notices_become_warnings() {
    let system = |fields: Value| {
        let mut line = json!({"type": "system"});
        line.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        decode(&line.to_string()).unwrap()
    };
    let rows = [
        (
            "retry",
            json!({"subtype": "api_retry", "attempt": 1, "max_retries": 3, "retry_delay_ms": 5,
                "error_status": 529, "error": "overloaded"}),
            Some("A model call failed with status 529 and is repeated (1 of 3)."),
        ),
        ("warning", json!({"subtype": "informational", "content": "odd", "level": "warning"}), Some("odd")),
        ("information", json!({"subtype": "informational", "content": "fine", "level": "info"}), None),
    ];
    for (name, fields, expected) in rows {
        let mut events = VecDeque::new();
        EventExtractor::default().extract(system(fields), &mut events);
        let expected: Vec<Event> = expected.map(|text| Event::Warning(text.into())).into_iter().collect();
        assert_eq!(Vec::from(events), expected, "{name}");
    }
}
