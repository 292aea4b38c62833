//! Cheap estimate of the memory that a queued frame occupies.

use std::io;

use serde_json::{Map, Value};
use whimbrel_wire::content::{Content, ResultContent, Source};
use whimbrel_wire::system::SystemEvent;
use whimbrel_wire::{Block, Frame};

/// Estimates the size of a frame in bytes. The large parts of frequent types are measured; rare types are serialized.
pub(crate) fn estimate_size(frame: &Frame) -> usize {
    match frame {
        Frame::StreamEvent(event) => size_of_val(&**event) + event.event.as_str().len(),
        Frame::Assistant(assistant) => size_of_val(&**assistant) + blocks_size(&assistant.message.content),
        Frame::User(user) => {
            let content = match &user.message.content {
                Content::Text(text) => text.len(),
                Content::Blocks(list) => blocks_size(list),
            };
            size_of_val(&**user) + content + user.tool_use_result.as_ref().map_or(0, value_size)
        }
        Frame::System(system) if let SystemEvent::Other(raw) = &system.event => raw.as_str().len(),
        Frame::Unknown(raw) => raw.as_str().len(),
        Frame::ToolOutput(chunk) => size_of_val(&**chunk) + chunk.text.len(),
        rare => serialized_size(rare),
    }
}

fn blocks_size(list: &[Block]) -> usize {
    list.iter().map(|block| size_of_val(block) + block_size(block)).sum()
}

fn block_size(block: &Block) -> usize {
    match block {
        Block::Text { text, citations } => text.len() + citations.as_ref().map_or(0, value_size),
        Block::Thinking { thinking, signature } => thinking.len() + signature.len(),
        Block::RedactedThinking { data } => data.len(),
        Block::ToolUse { input, .. } => value_size(input),
        Block::ToolResult { content, .. } => match content {
            Some(ResultContent::Text(text)) => text.len(),
            Some(ResultContent::Blocks(list)) => blocks_size(list),
            None => 0,
        },
        Block::Image { source } | Block::Document { source, .. } => match source {
            Source::Base64 { data, .. } | Source::Text { data, .. } => data.len(),
            _ => 0,
        },
        Block::Other(fields) => map_size(fields),
        _ => 0,
    }
}

fn value_size(value: &Value) -> usize {
    size_of::<Value>()
        + match value {
            Value::String(text) => text.len(),
            Value::Array(list) => list.iter().map(value_size).sum(),
            Value::Object(fields) => map_size(fields),
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        }
}

fn map_size(fields: &Map<String, Value>) -> usize {
    fields.iter().map(|(name, field)| name.len() + value_size(field)).sum()
}

fn serialized_size(frame: &Frame) -> usize {
    let mut counter = ByteCounter(0);
    // Counting cannot fail, and every frame can be serialized.
    let _ = serde_json::to_writer(&mut counter, frame);
    counter.0
}

/// Writer that counts bytes.
struct ByteCounter(usize);

impl io::Write for ByteCounter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn everything_that_makes_a_frame_large_is_counted() {
        let long = "x".repeat(100_000);
        let user = |block: Value| json!({"type": "user", "session_id": "s", "message": {"role": "user", "content": [block]}});
        let base64 = json!({"type": "base64", "media_type": "image/png", "data": long});
        let frames = [
            json!({"type": "user", "session_id": "s", "message": {"role": "user", "content": long}}),
            json!({"type": "user", "session_id": "s", "message": {"role": "user", "content": ""}, "tool_use_result": {"a": [long]}}),
            user(json!({"type": "text", "text": long})),
            user(json!({"type": "thinking", "thinking": long})),
            user(json!({"type": "redacted_thinking", "data": long})),
            user(json!({"type": "tool_use", "id": "t", "name": "n", "input": {"a": {"b": long}}})),
            user(json!({"type": "tool_result", "tool_use_id": "t", "content": long})),
            user(
                json!({"type": "tool_result", "tool_use_id": "t", "content": [{"type": "image", "source": base64}]}),
            ),
            user(json!({"type": "newer", "field": long})),
            json!({"type": "newer", "field": long}),
            json!({"type": "system", "subtype": "newer", "field": long}),
            json!({"type": "keep_alive"}),
        ];
        for line in frames {
            let line = line.to_string();
            let size = estimate_size(&whimbrel_wire::decode(&line).unwrap());
            let minimum = if line.len() < 1000 { 1 } else { long.len() };
            assert!(
                (minimum..line.len() + 3000).contains(&size),
                "{size} for {}",
                &line[..80.min(line.len())]
            );
        }
    }
}
