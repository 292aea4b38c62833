//! What was streamed of the messages that are not stored yet, for clients that connect during a reply. Pure.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

/// Streamed messages, by the call of the agent that speaks; the main one has an empty name.
#[derive(Debug, Default)]
pub(crate) struct LiveBuffer {
    messages: BTreeMap<String, LiveMessage>,
}

#[derive(Debug, Default)]
struct LiveMessage {
    start: Json,
    blocks: Vec<LiveBlock>,
    /// Blocks that were stored since.
    stored: usize,
}

#[derive(Debug)]
struct LiveBlock {
    start: Json,
    kind: &'static str,
    field: &'static str,
    text: String,
    stopped: bool,
}

impl LiveBuffer {
    /// Adds a `stream_event` frame. Returns whether it begins a message.
    pub(crate) fn add(&mut self, frame: &Json) -> bool {
        let event = &frame["event"];
        let speaker = frame["parent_tool_use_id"].as_str().unwrap_or_default();
        let index = event["index"].as_u64().and_then(|index| usize::try_from(index).ok());
        match event["type"].as_str().unwrap_or_default() {
            "message_start" => {
                let message = LiveMessage { start: event.clone(), ..LiveMessage::default() };
                self.messages.insert(speaker.to_owned(), message);
                return true;
            }
            "content_block_start" => {
                if let Some(message) = self.messages.get_mut(speaker) {
                    let start = event.clone();
                    message.blocks.push(LiveBlock {
                        start,
                        kind: "",
                        field: "",
                        text: String::new(),
                        stopped: false,
                    });
                }
            }
            "content_block_delta" => {
                let block = self
                    .messages
                    .get_mut(speaker)
                    .zip(index)
                    .and_then(|(message, index)| message.blocks.get_mut(index));
                if let Some(block) = block {
                    block.add_delta(&event["delta"]);
                }
            }
            "content_block_stop" => {
                let block = self
                    .messages
                    .get_mut(speaker)
                    .zip(index)
                    .and_then(|(message, index)| message.blocks.get_mut(index));
                if let Some(block) = block {
                    block.stopped = true;
                }
            }
            _ => {}
        }
        false
    }

    /// A block of a message was stored: it is not live any more.
    pub(crate) fn stored(&mut self, speaker: Option<&str>) {
        if let Some(message) = self.messages.get_mut(speaker.unwrap_or_default()) {
            message.stored += 1;
        }
    }

    /// The turn has ended.
    pub(crate) fn clear(&mut self) {
        self.messages.clear();
    }

    /// Stream events that show what was streamed: one delta per block.
    pub(crate) fn snapshot(&self) -> Vec<Json> {
        let mut frames = Vec::new();
        for (speaker, message) in &self.messages {
            let parent = if speaker.is_empty() { Json::Null } else { speaker.clone().into() };
            let mut push = |event: Json| {
                frames.push(json!({"type": "stream_event", "event": event, "parent_tool_use_id": parent}));
            };
            if message.blocks.len() <= message.stored && message.stored > 0 {
                continue;
            }
            push(message.start.clone());
            for (index, block) in message.blocks.iter().enumerate().skip(message.stored) {
                push(block.start.clone());
                if !block.text.is_empty() {
                    let mut delta = json!({"type": block.kind});
                    delta[block.field] = block.text.clone().into();
                    push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
                }
                if block.stopped {
                    push(json!({"type": "content_block_stop", "index": index}));
                }
            }
        }
        frames
    }
}

impl LiveBlock {
    fn add_delta(&mut self, delta: &Json) {
        let (kind, field) = match delta["type"].as_str().unwrap_or_default() {
            "text_delta" => ("text_delta", "text"),
            "thinking_delta" => ("thinking_delta", "thinking"),
            "input_json_delta" => ("input_json_delta", "partial_json"),
            _ => return,
        };
        (self.kind, self.field) = (kind, field);
        self.text.push_str(delta[field].as_str().unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(event: &Json) -> Json {
        json!({"type": "stream_event", "event": event, "parent_tool_use_id": null})
    }

    #[test]
    fn a_snapshot_has_one_joined_delta_per_open_block() {
        let mut buffer = LiveBuffer::default();
        let delta = |index: u64, text: &str| {
            event(
                &json!({"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": text}}),
            )
        };
        let start = |index: u64| {
            event(
                &json!({"type": "content_block_start", "index": index, "content_block": {"type": "text", "text": ""}}),
            )
        };
        assert!(buffer.add(&event(&json!({"type": "message_start", "message": {"id": "m"}}))));
        for frame in [start(0), delta(0, "done"), event(&json!({"type": "content_block_stop", "index": 0}))] {
            assert!(!buffer.add(&frame));
        }
        buffer.stored(None);
        for frame in [start(1), delta(1, "Hel"), delta(1, "lo")] {
            buffer.add(&frame);
        }
        let expected =
            [event(&json!({"type": "message_start", "message": {"id": "m"}})), start(1), delta(1, "Hello")];
        assert_eq!(buffer.snapshot(), expected);
        buffer.clear();
        assert_eq!(buffer.snapshot(), Vec::<Json>::new());
    }
}
