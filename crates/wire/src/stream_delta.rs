//! The parts of a streamed reply that front ends show, read from the provider's raw events.

use std::borrow::Cow;

use serde::Deserialize;

use crate::message::StreamEvent;

/// A piece of a reply while it streams.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StreamDelta<'a> {
    /// A reply begins. The complete messages of this reply carry the same id.
    MessageStart {
        /// Id of the reply.
        id: Cow<'a, str>,
    },
    /// A block of the reply begins.
    BlockStart,
    /// More text.
    Text(Cow<'a, str>),
    /// More reasoning.
    Thinking(Cow<'a, str>),
    /// More of the input of a tool call, as a piece of JSON text.
    ToolInput(Cow<'a, str>),
}

impl StreamEvent {
    /// Reads the piece that the event carries; `None` for events without one and for unknown events.
    ///
    /// ```
    /// use whimbrel_wire::message::StreamEvent;
    /// use whimbrel_wire::stream_delta::StreamDelta;
    ///
    /// let frame: StreamEvent = serde_json::from_str(
    ///     r#"{"event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}},
    ///         "parent_tool_use_id":null}"#,
    /// )
    /// .unwrap();
    /// assert_eq!(frame.delta(), Some(StreamDelta::Text("Hi".into())));
    /// ```
    pub fn delta(&self) -> Option<StreamDelta<'_>> {
        Some(match self.event.decode().ok()? {
            RawEvent::MessageStart { message } => StreamDelta::MessageStart { id: message.id },
            RawEvent::ContentBlockStart => StreamDelta::BlockStart,
            RawEvent::ContentBlockDelta { delta: RawDelta::Text { text } } => StreamDelta::Text(text),
            RawEvent::ContentBlockDelta { delta: RawDelta::Thinking { thinking } } => {
                StreamDelta::Thinking(thinking)
            }
            RawEvent::ContentBlockDelta { delta: RawDelta::InputJson { partial_json } } => {
                StreamDelta::ToolInput(partial_json)
            }
            RawEvent::ContentBlockDelta { delta: RawDelta::Other } | RawEvent::Other => return None,
        })
    }
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum RawEvent<'a> {
    MessageStart {
        #[serde(borrow)]
        message: RawMessage<'a>,
    },
    ContentBlockStart,
    ContentBlockDelta {
        #[serde(borrow)]
        delta: RawDelta<'a>,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct RawMessage<'a> {
    #[serde(borrow, default)]
    id: Cow<'a, str>,
}

#[derive(Deserialize)]
#[serde(tag = "type")]
enum RawDelta<'a> {
    #[serde(rename = "text_delta")]
    Text {
        #[serde(borrow)]
        text: Cow<'a, str>,
    },
    #[serde(rename = "thinking_delta")]
    Thinking {
        #[serde(borrow)]
        thinking: Cow<'a, str>,
    },
    #[serde(rename = "input_json_delta")]
    InputJson {
        #[serde(borrow)]
        partial_json: Cow<'a, str>,
    },
    #[serde(other)]
    Other,
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::RawJson;

    #[test]
    fn deltas_are_read_from_raw_events() {
        let delta = |delta: Value| json!({"type": "content_block_delta", "index": 1, "delta": delta});
        let rows: [(&str, Value, Option<StreamDelta<'_>>); 8] = [
            (
                "message start",
                json!({"type": "message_start", "message": {"id": "m1", "model": "x"}}),
                Some(StreamDelta::MessageStart { id: "m1".into() }),
            ),
            (
                "block start",
                json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
                Some(StreamDelta::BlockStart),
            ),
            (
                "text",
                delta(json!({"type": "text_delta", "text": "a\nb"})),
                Some(StreamDelta::Text("a\nb".into())),
            ),
            (
                "thinking",
                delta(json!({"type": "thinking_delta", "thinking": "hm"})),
                Some(StreamDelta::Thinking("hm".into())),
            ),
            (
                "tool input",
                delta(json!({"type": "input_json_delta", "partial_json": "{\"a\""})),
                Some(StreamDelta::ToolInput("{\"a\"".into())),
            ),
            ("signature", delta(json!({"type": "signature_delta", "signature": "s"})), None),
            ("unknown delta", delta(json!({"type": "new_delta", "x": 1})), None),
            ("unknown event", json!({"type": "ping"}), None),
        ];
        for (name, event, expected) in rows {
            let frame = StreamEvent {
                event: RawJson::from_value(&event).unwrap(),
                parent_tool_use_id: None,
                session_id: String::new(),
                uuid: String::new(),
                ttft_ms: None,
            };
            assert_eq!(frame.delta(), expected, "{name}");
        }
    }
}
