//! Decodes events of the Messages API, pure. Each event is parsed once, directly into its fields.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use whimbrel_wire::{Block, RawJson, StopReason};

use super::{error, fast_path};
use crate::error::{ModelError, ModelErrorKind};
use crate::event::{BlockDelta, ReplyEvent};
use crate::model::{RawEvents, ReplyItem};
use crate::usage::ReportedUsage;
use crate::whole_reply::WholeReply;

/// Union of the fields of all events.
#[derive(Deserialize)]
struct EventFields<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(default)]
    index: usize,
    #[serde(borrow)]
    delta: Option<DeltaFields<'a>>,
    #[serde(borrow)]
    content_block: Option<&'a RawValue>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    usage: Option<ReportedUsage>,
}

/// Union of the fields of all deltas.
#[derive(Deserialize)]
struct DeltaFields<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Cow<'a, str>,
    text: Option<String>,
    thinking: Option<String>,
    signature: Option<String>,
    partial_json: Option<String>,
    citation: Option<Value>,
    stop_reason: Option<StopReason>,
    stop_sequence: Option<String>,
}

/// The `message` of a `message_start` event.
#[derive(Deserialize)]
struct MessageStartFields {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    model: Option<String>,
    usage: Option<ReportedUsage>,
}

/// Decodes one event. An `error` event becomes an error; an event of unknown type is not decoded.
pub fn decode_event(name: &str, data: &str, raw: RawEvents) -> Result<ReplyItem, ModelError> {
    if let Some(event) = fast_path::decode(data) {
        // Serializing gives the same bytes and costs no more than validating the original as JSON.
        return Ok(raw.wrap(event));
    }
    let event = match serde_json::from_str::<EventFields<'_>>(data) {
        Ok(fields) => to_event(name, data, fields)?,
        // An unknown event type may use a known field differently.
        Err(error) => match event_type(data) {
            Some(kind) if !KNOWN_EVENT_TYPES.contains(&kind.as_str()) => ReplyEvent::Unknown,
            _ => return Err(decode_error(data, &error)),
        },
    };
    let raw = match raw {
        RawEvents::Keep => to_single_line(data),
        RawEvents::Drop => None,
    };
    Ok(ReplyItem { event, raw })
}

const KNOWN_EVENT_TYPES: [&str; 8] = [
    "message_start",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
    "ping",
    "error",
];

fn to_event(name: &str, data: &str, fields: EventFields<'_>) -> Result<ReplyEvent, ModelError> {
    let kind = if fields.kind.is_empty() { name } else { &fields.kind };
    Ok(match kind {
        "content_block_delta" => {
            ReplyEvent::BlockDelta { index: fields.index, delta: block_delta(fields.delta) }
        }
        "content_block_start" => {
            ReplyEvent::BlockStart { index: fields.index, block: parse_block(fields.content_block, data)? }
        }
        "content_block_stop" => ReplyEvent::BlockStop { index: fields.index },
        "message_start" => message_start(fields.message),
        "message_delta" => {
            let (stop_reason, stop_sequence) =
                fields.delta.map_or((None, None), |end| (end.stop_reason, end.stop_sequence));
            ReplyEvent::MessageDelta { stop_reason, stop_sequence, usage: fields.usage.unwrap_or_default() }
        }
        "message_stop" => ReplyEvent::MessageStop,
        "ping" => ReplyEvent::Ping,
        "error" => return Err(error::from_stream_event(data)),
        _ => ReplyEvent::Unknown,
    })
}

fn block_delta(delta: Option<DeltaFields<'_>>) -> BlockDelta {
    let Some(delta) = delta else { return BlockDelta::Unknown };
    match &*delta.kind {
        "text_delta" => BlockDelta::Text { text: delta.text.unwrap_or_default() },
        "thinking_delta" => BlockDelta::Thinking { thinking: delta.thinking.unwrap_or_default() },
        "signature_delta" => BlockDelta::Signature { signature: delta.signature.unwrap_or_default() },
        "input_json_delta" => BlockDelta::InputJson { partial_json: delta.partial_json.unwrap_or_default() },
        "citations_delta" => BlockDelta::Citation { citation: delta.citation.unwrap_or_default() },
        _ => BlockDelta::Unknown,
    }
}

fn message_start(message: Option<&RawValue>) -> ReplyEvent {
    let fields = message.and_then(|message| serde_json::from_str::<MessageStartFields>(message.get()).ok());
    match fields {
        None => ReplyEvent::MessageStart {
            id: String::new(),
            model: String::new(),
            usage: ReportedUsage::default(),
        },
        Some(start) => ReplyEvent::MessageStart {
            id: start.id.unwrap_or_default(),
            model: start.model.unwrap_or_default(),
            usage: start.usage.unwrap_or_default(),
        },
    }
}

fn parse_block(raw: Option<&RawValue>, data: &str) -> Result<Block, ModelError> {
    let missing = || {
        ModelError::new(
            ModelErrorKind::Protocol,
            format!("A block of the reply has no content: {}", excerpt(data)),
        )
    };
    let raw = raw.ok_or_else(missing)?.get();
    match serde_json::from_str(raw) {
        Ok(block) => Ok(block),
        Err(error) => parse_incomplete_block(raw).ok_or_else(|| decode_error(data, &error)),
    }
}

/// Parses the start of a block of a known type that omits its empty fields.
fn parse_incomplete_block(raw: &str) -> Option<Block> {
    #[derive(Deserialize)]
    struct IncompleteBlock {
        #[serde(rename = "type")]
        kind: String,
        text: Option<String>,
        thinking: Option<String>,
        signature: Option<String>,
        id: Option<String>,
        name: Option<String>,
        input: Option<Value>,
    }
    let block: IncompleteBlock = serde_json::from_str(raw).ok()?;
    match block.kind.as_str() {
        "text" => Some(Block::text(block.text.unwrap_or_default())),
        "thinking" => Some(Block::Thinking {
            thinking: block.thinking.unwrap_or_default(),
            signature: block.signature.unwrap_or_default(),
        }),
        "tool_use" => {
            let input = block.input.unwrap_or_else(|| Value::Object(serde_json::Map::new()));
            Some(Block::ToolUse { id: block.id?, name: block.name?, input })
        }
        _ => None,
    }
}

/// Decodes a reply that came whole although a stream was requested.
pub(super) fn decode_whole(body: &[u8]) -> Result<WholeReply, ModelError> {
    let text = String::from_utf8_lossy(body);
    let value: Value = serde_json::from_str(&text).map_err(|error| not_a_reply(&text, &error.to_string()))?;
    if value["type"] == "error" || value["error"].is_object() {
        return Err(error::from_stream_event(&text));
    }
    serde_json::from_value(value).map_err(|error| not_a_reply(&text, &error.to_string()))
}

/// Error for a response that is not a reply.
pub(super) fn not_a_reply(body: &str, why: &str) -> ModelError {
    let message = format!("The server's response is not a model reply ({why}): {}", excerpt(body));
    ModelError::new(ModelErrorKind::NotAStream, message)
}

fn event_type(data: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct TypeField {
        #[serde(rename = "type")]
        kind: String,
    }
    serde_json::from_str::<TypeField>(data).ok().map(|fields| fields.kind)
}

fn decode_error(data: &str, error: &serde_json::Error) -> ModelError {
    ModelError::new(
        ModelErrorKind::Protocol,
        format!("An event of the reply is invalid ({error}): {}", excerpt(data)),
    )
}

/// The first 200 characters of a text, on one line.
fn excerpt(text: &str) -> String {
    let mut excerpt: String = text.chars().take(200).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if excerpt.len() < text.len() {
        excerpt.push('…');
    }
    excerpt
}

/// Removes line breaks between tokens, because raw events are forwarded as lines.
fn to_single_line(data: &str) -> Option<RawJson> {
    RawJson::parse(if data.contains('\n') { data.replace('\n', " ") } else { data.to_owned() }).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(data: &Value) -> ReplyEvent {
        decode_event("", &data.to_string(), RawEvents::Drop).unwrap().event
    }

    #[test]
    fn every_event_type_is_decoded() {
        let start = json!({"type": "message_start", "message": {"id": "m", "model": "x", "usage": {"input_tokens": 3}}});
        let usage = ReportedUsage::from_json(&json!({"input_tokens": 3}));
        let text = |text: &str| BlockDelta::Text { text: text.into() };
        let table = [
            (start, ReplyEvent::MessageStart { id: "m".into(), model: "x".into(), usage }),
            (
                json!({"type": "content_block_start", "index": 2, "content_block": {"type": "text", "text": ""}}),
                ReplyEvent::BlockStart { index: 2, block: Block::text("") },
            ),
            (
                json!({"type": "content_block_delta", "index": 2, "delta": {"type": "text_delta", "text": "a\n\"b\""}}),
                ReplyEvent::BlockDelta { index: 2, delta: text("a\n\"b\"") },
            ),
            (
                json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "{\"a"}}),
                ReplyEvent::BlockDelta {
                    index: 0,
                    delta: BlockDelta::InputJson { partial_json: "{\"a".into() },
                },
            ),
            (
                json!({"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "s"}}),
                ReplyEvent::BlockDelta { index: 0, delta: BlockDelta::Signature { signature: "s".into() } },
            ),
            (json!({"type": "content_block_stop", "index": 2}), ReplyEvent::BlockStop { index: 2 }),
            (
                json!({"type": "message_delta", "delta": {"stop_reason": "moon_phase"}, "usage": {"output_tokens": 9}}),
                ReplyEvent::MessageDelta {
                    stop_reason: Some(StopReason::Other("moon_phase".into())),
                    stop_sequence: None,
                    usage: ReportedUsage::from_json(&json!({"output_tokens": 9})),
                },
            ),
            (json!({"type": "message_stop"}), ReplyEvent::MessageStop),
            (json!({"type": "ping"}), ReplyEvent::Ping),
        ];
        for (data, expected) in table {
            assert_eq!(event(&data), expected, "{data}");
        }
    }

    #[test]
    fn unknown_event_types_are_forwarded() {
        for data in [
            json!({"type": "brand_new", "index": 1}),
            json!({"type": "brand_new", "index": "one", "delta": [1, 2]}),
        ] {
            let delta = decode_event("", &data.to_string(), RawEvents::Keep).unwrap();
            assert_eq!((delta.event, delta.raw), (ReplyEvent::Unknown, RawJson::from_value(&data).ok()));
        }
        let delta =
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "smell_delta", "smell": 1}});
        assert_eq!(event(&delta), ReplyEvent::BlockDelta { index: 0, delta: BlockDelta::Unknown });
    }

    #[test]
    fn invalid_usage_never_loses_a_reply() {
        for usage in [json!(null), json!("many"), json!({"output_tokens": -3}), json!({"output_tokens": "x"})]
        {
            let data = json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage});
            let ReplyEvent::MessageDelta { usage, .. } = event(&data) else { panic!("{data}") };
            assert_eq!((usage.usage.total(), usage.is_complete()), (0, false), "{data}");
        }
    }

    #[test]
    fn block_may_start_without_its_empty_fields() {
        let table = [
            (json!({"type": "text"}), Block::text("")),
            (
                json!({"type": "thinking"}),
                Block::Thinking { thinking: String::new(), signature: String::new() },
            ),
            (
                json!({"type": "tool_use", "id": "t", "name": "Bash"}),
                Block::ToolUse { id: "t".into(), name: "Bash".into(), input: json!({}) },
            ),
        ];
        for (block, expected) in table {
            let data = json!({"type": "content_block_start", "index": 0, "content_block": block});
            assert_eq!(event(&data), ReplyEvent::BlockStart { index: 0, block: expected });
        }
    }

    #[test]
    fn event_name_is_used_if_the_data_has_no_type() {
        assert_eq!(
            decode_event("message_stop", "{}", RawEvents::Drop).unwrap().event,
            ReplyEvent::MessageStop
        );
    }

    #[test]
    fn invalid_events_are_protocol_errors() {
        for data in [
            "",
            "[DONE]",
            "{\"type\":\"content_block_delta\",\"index\":-1}",
            "{\"type\":\"content_block_start\"}",
        ] {
            assert_eq!(
                decode_event("", data, RawEvents::Drop).unwrap_err().kind,
                ModelErrorKind::Protocol,
                "{data}"
            );
        }
    }

    #[test]
    fn raw_event_stays_on_one_line() {
        let delta = decode_event("", "{\"type\":\n\"ping\"}", RawEvents::Keep).unwrap();
        assert_eq!(delta.raw.unwrap().as_str(), "{\"type\": \"ping\"}");
    }
}
