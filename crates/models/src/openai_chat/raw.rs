//! Events as JSON in the form of the Messages API, for hosts that want to see the stream.

use serde_json::{Value, json};
use whimbrel_wire::RawJson;

use crate::event::{BlockDelta, Event};

/// The event as JSON; nothing for events that have no such form.
pub(super) fn raw(event: &Event) -> Option<RawJson> {
    RawJson::of(&value(event)?).ok()
}

fn value(event: &Event) -> Option<Value> {
    Some(match event {
        Event::MessageStart { id, model, usage } => json!({
            "type": "message_start",
            "message": {
                "id": id,
                "type": "message",
                "role": "assistant",
                "model": model,
                "content": [],
                "stop_reason": null,
                "stop_sequence": null,
                "usage": usage,
            },
        }),
        Event::BlockStart { index, block } => {
            json!({ "type": "content_block_start", "index": index, "content_block": block })
        }
        Event::BlockDelta { index, delta } => {
            json!({ "type": "content_block_delta", "index": index, "delta": delta_value(delta)? })
        }
        Event::BlockStop { index } => json!({ "type": "content_block_stop", "index": index }),
        Event::MessageDelta { stop_reason, stop_sequence, usage } => json!({
            "type": "message_delta",
            "delta": { "stop_reason": stop_reason, "stop_sequence": stop_sequence },
            "usage": usage,
        }),
        Event::MessageStop => json!({ "type": "message_stop" }),
        Event::Ping => json!({ "type": "ping" }),
        Event::Unknown => return None,
    })
}

fn delta_value(delta: &BlockDelta) -> Option<Value> {
    Some(match delta {
        BlockDelta::Text { text } => json!({ "type": "text_delta", "text": text }),
        BlockDelta::Thinking { thinking } => json!({ "type": "thinking_delta", "thinking": thinking }),
        BlockDelta::Signature { signature } => json!({ "type": "signature_delta", "signature": signature }),
        BlockDelta::InputJson { partial_json } => {
            json!({ "type": "input_json_delta", "partial_json": partial_json })
        }
        BlockDelta::Citation { citation } => json!({ "type": "citations_delta", "citation": citation }),
        BlockDelta::Unknown => return None,
    })
}
