//! Replies of the model, rendered before the measurement.
//!
//! The reply is selected by the number of tool results in the request, so that any number of sessions can share a
//! script.

use std::time::Duration;

use serde_json::{Value, json};

use super::http;

/// Replies of the model.
pub(super) struct ModelScript {
    /// Replies by the number of tool results in the request; the last one serves all larger numbers.
    replies: Vec<ModelReply>,
    /// A text that correct tool results contain.
    pub(super) expected_text: Option<String>,
}

pub(super) enum ModelReply {
    /// All bytes at once.
    Burst(Vec<u8>),
    /// Deltas at a fixed pace, each with the time at which it was sent.
    Paced {
        /// Number of deltas.
        deltas: usize,
        /// The time between them.
        gap: Duration,
    },
    /// These bytes, then nothing until the connection is closed.
    Hang(Vec<u8>),
}

pub(super) struct ToolCall {
    tool: &'static str,
    input: Value,
}

impl ToolCall {
    /// A Bash call.
    pub(super) fn bash(command: &str) -> Self {
        Self::new("Bash", json!({ "command": command, "description": "a step" }))
    }

    pub(super) fn new(tool: &'static str, input: Value) -> Self {
        Self { tool, input }
    }
}

impl ModelScript {
    /// One word as reply to every request.
    pub(super) fn short_reply() -> Self {
        Self::tool_calls(&[])
    }

    /// One tool call after the other, then one word.
    pub(super) fn tool_calls(calls: &[ToolCall]) -> Self {
        let mut replies: Vec<ModelReply> = calls
            .iter()
            .enumerate()
            .map(|(number, call)| ModelReply::Burst(call_reply(number, call)))
            .collect();
        replies.push(ModelReply::Burst(text_reply(["OK"])));
        Self { replies, expected_text: None }
    }

    /// Several calls from a template; `create` gets the number of the call, so that the calls can differ.
    pub(super) fn repeat_call(times: usize, create: impl Fn(usize) -> ToolCall) -> Self {
        Self::tool_calls(&(0..times).map(create).collect::<Vec<_>>())
    }

    /// A long text of this number of deltas.
    pub(super) fn long_text(deltas: usize) -> Self {
        Self::single_reply(ModelReply::Burst(text_reply((0..deltas).map(|number| format!("word {number} ")))))
    }

    pub(super) fn single_reply(reply: ModelReply) -> Self {
        Self { replies: vec![reply], expected_text: None }
    }

    /// Three words, then no further data.
    pub(super) fn hang() -> Self {
        let mut bytes = text_start();
        bytes.extend(["one ", "two ", "three "].iter().flat_map(|text| text_delta(text)));
        Self::single_reply(ModelReply::Hang(bytes))
    }

    /// Sets the text that correct tool results contain.
    pub(super) fn expecting_text(self, text: &str) -> Self {
        Self { expected_text: Some(text.to_owned()), ..self }
    }

    /// The reply to a request with this number of tool results.
    pub(super) fn reply(&self, results: usize) -> Option<&ModelReply> {
        self.replies.get(results).or(self.replies.last())
    }
}

/// The `message_start` event.
pub(super) fn message_start(number: usize) -> Vec<u8> {
    let message = json!({
        "id": format!("msg_bench_{number}"), "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
        "content": [], "stop_reason": null, "stop_sequence": null,
        "usage": { "input_tokens": 10, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 1 },
    });
    http::event_chunk("message_start", &json!({ "type": "message_start", "message": message }).to_string())
}

/// A reply that is not streamed.
pub(super) fn whole_reply() -> String {
    json!({
        "id": "msg_bench_whole", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
        "content": [{ "type": "text", "text": "OK" }], "stop_reason": "end_turn", "stop_sequence": null,
        "usage": { "input_tokens": 10, "output_tokens": 1 },
    })
    .to_string()
}

/// A text reply and its end, without `message_start`.
pub(super) fn text_reply(texts: impl IntoIterator<Item = impl AsRef<str>>) -> Vec<u8> {
    let mut bytes = text_start();
    for text in texts {
        bytes.extend(text_delta(text.as_ref()));
    }
    bytes.extend(reply_end("end_turn"));
    bytes
}

/// Start of a text block.
pub(super) fn text_start() -> Vec<u8> {
    block_start(&json!({ "type": "text", "text": "" }))
}

/// A text delta.
pub(super) fn text_delta(text: &str) -> Vec<u8> {
    block_delta(&json!({ "type": "text_delta", "text": text }))
}

/// End of the only block, and of the reply.
pub(super) fn reply_end(reason: &str) -> Vec<u8> {
    let stop = json!({
        "type": "message_delta",
        "delta": { "stop_reason": reason, "stop_sequence": null },
        "usage": { "output_tokens": 20 },
    });
    [
        http::event_chunk("content_block_stop", r#"{"type":"content_block_stop","index":0}"#),
        http::event_chunk("message_delta", &stop.to_string()),
        http::event_chunk("message_stop", r#"{"type":"message_stop"}"#),
        http::LAST_CHUNK.to_vec(),
    ]
    .concat()
}

fn call_reply(number: usize, call: &ToolCall) -> Vec<u8> {
    let id = format!("toolu_bench_{number:06}");
    let mut bytes = block_start(&json!({ "type": "tool_use", "id": id, "name": call.tool, "input": {} }));
    bytes.extend(block_delta(&json!({ "type": "input_json_delta", "partial_json": call.input.to_string() })));
    bytes.extend(reply_end("tool_use"));
    bytes
}

fn block_start(block: &Value) -> Vec<u8> {
    let data = json!({ "type": "content_block_start", "index": 0, "content_block": block });
    http::event_chunk("content_block_start", &data.to_string())
}

fn block_delta(delta: &Value) -> Vec<u8> {
    let data = json!({ "type": "content_block_delta", "index": 0, "delta": delta });
    http::event_chunk("content_block_delta", &data.to_string())
}
