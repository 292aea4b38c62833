//! What the model says, made before anything is measured.
//!
//! A step is answered by how many tool results its request carries, so that any number of sessions can follow one script.

use std::time::Duration;

use serde_json::{Value, json};

use super::http;

/// What the model says.
pub(super) struct Script {
    /// The reply to the request with so many tool results; the last one also to all with more.
    replies: Vec<Reply>,
    /// A text that good tool results contain.
    pub(super) expected: Option<String>,
}

/// One reply.
pub(super) enum Reply {
    /// Everything at once.
    Flood(Vec<u8>),
    /// Deltas at a pace; each tells when it was sent.
    Paced {
        /// How many.
        deltas: usize,
        /// The time between them.
        gap: Duration,
    },
    /// These deltas, and then nothing until the connection is closed.
    Silence(Vec<u8>),
}

/// A tool call.
pub(super) struct Call {
    tool: &'static str,
    input: Value,
}

impl Call {
    /// A command.
    pub(super) fn bash(command: &str) -> Self {
        Self::new("Bash", json!({ "command": command, "description": "a step" }))
    }

    /// Any call.
    pub(super) fn new(tool: &'static str, input: Value) -> Self {
        Self { tool, input }
    }
}

impl Script {
    /// A word, whatever is asked.
    pub(super) fn word() -> Self {
        Self::calls(&[])
    }

    /// One call after the other, then a word.
    pub(super) fn calls(calls: &[Call]) -> Self {
        let mut replies: Vec<Reply> =
            calls.iter().enumerate().map(|(at, call)| Reply::Flood(calling(at, call))).collect();
        replies.push(Reply::Flood(saying(["OK"])));
        Self { replies, expected: None }
    }

    /// The same call so many times; `make` is given the number of the call, so that no two need be the same.
    pub(super) fn repeat(times: usize, make: impl Fn(usize) -> Call) -> Self {
        Self::calls(&(0..times).map(make).collect::<Vec<_>>())
    }

    /// A long text in many pieces.
    pub(super) fn long(deltas: usize) -> Self {
        Self::one(Reply::Flood(saying((0..deltas).map(|number| format!("word {number} ")))))
    }

    /// One reply.
    pub(super) fn one(reply: Reply) -> Self {
        Self { replies: vec![reply], expected: None }
    }

    /// Three words, then silence.
    pub(super) fn silence() -> Self {
        let mut bytes = begin_text();
        bytes.extend(["one ", "two ", "three "].iter().flat_map(|text| delta(text)));
        Self::one(Reply::Silence(bytes))
    }

    /// Good results contain this text.
    pub(super) fn expecting(self, text: &str) -> Self {
        Self { expected: Some(text.to_owned()), ..self }
    }

    /// The reply to a request with so many tool results.
    pub(super) fn reply(&self, results: usize) -> Option<&Reply> {
        self.replies.get(results).or(self.replies.last())
    }
}

/// The first event of a reply.
pub(super) fn opening(number: usize) -> Vec<u8> {
    let message = json!({
        "id": format!("msg_bench_{number}"), "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
        "content": [], "stop_reason": null, "stop_sequence": null,
        "usage": { "input_tokens": 10, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 1 },
    });
    http::event("message_start", &json!({ "type": "message_start", "message": message }).to_string())
}

/// A reply in one piece.
pub(super) fn whole() -> String {
    json!({
        "id": "msg_bench_whole", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
        "content": [{ "type": "text", "text": "OK" }], "stop_reason": "end_turn", "stop_sequence": null,
        "usage": { "input_tokens": 10, "output_tokens": 1 },
    })
    .to_string()
}

/// A text and the end, without the first event.
pub(super) fn saying(pieces: impl IntoIterator<Item = impl AsRef<str>>) -> Vec<u8> {
    let mut bytes = begin_text();
    for piece in pieces {
        bytes.extend(delta(piece.as_ref()));
    }
    bytes.extend(end("end_turn"));
    bytes
}

/// The beginning of a text.
pub(super) fn begin_text() -> Vec<u8> {
    start(&json!({ "type": "text", "text": "" }))
}

/// A piece of a text.
pub(super) fn delta(text: &str) -> Vec<u8> {
    grow(&json!({ "type": "text_delta", "text": text }))
}

/// The end of the only block, and of the reply.
pub(super) fn end(reason: &str) -> Vec<u8> {
    let stop = json!({
        "type": "message_delta",
        "delta": { "stop_reason": reason, "stop_sequence": null },
        "usage": { "output_tokens": 20 },
    });
    [
        http::event("content_block_stop", r#"{"type":"content_block_stop","index":0}"#),
        http::event("message_delta", &stop.to_string()),
        http::event("message_stop", r#"{"type":"message_stop"}"#),
        http::END.to_vec(),
    ]
    .concat()
}

fn calling(at: usize, call: &Call) -> Vec<u8> {
    let id = format!("toolu_bench_{at:06}");
    let mut bytes = start(&json!({ "type": "tool_use", "id": id, "name": call.tool, "input": {} }));
    bytes.extend(grow(&json!({ "type": "input_json_delta", "partial_json": call.input.to_string() })));
    bytes.extend(end("tool_use"));
    bytes
}

fn start(block: &Value) -> Vec<u8> {
    let data = json!({ "type": "content_block_start", "index": 0, "content_block": block });
    http::event("content_block_start", &data.to_string())
}

fn grow(delta: &Value) -> Vec<u8> {
    let data = json!({ "type": "content_block_delta", "index": 0, "delta": delta });
    http::event("content_block_delta", &data.to_string())
}
