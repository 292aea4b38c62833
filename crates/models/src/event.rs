//! Events of a streamed reply, in the vocabulary of the Messages API.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use whimbrel_wire::{Block, RawJson, StopReason};

use crate::usage::ReportedUsage;

/// One event of a streamed reply.
#[derive(Debug, Clone, PartialEq)]
pub enum ReplyEvent {
    /// The provider accepted the request: the response head has arrived. Not part of the reply itself.
    Accepted {
        /// The provider's id of the request, if the response had one.
        request_id: Option<String>,
    },
    /// The reply begins.
    MessageStart {
        /// The provider's id of the reply.
        id: String,
        /// The model that replies.
        model: String,
        /// Input tokens, and the output tokens so far.
        usage: ReportedUsage,
    },
    /// A block begins.
    BlockStart {
        /// Position of the block in the reply.
        index: usize,
        /// The block without its streamed content.
        block: Block,
    },
    /// A fragment of a block.
    BlockDelta {
        /// Position of the block in the reply.
        index: usize,
        /// The fragment.
        delta: BlockDelta,
    },
    /// A block is complete.
    BlockStop {
        /// Position of the block in the reply.
        index: usize,
    },
    /// Stop reason and final usage.
    MessageDelta {
        /// Stop reason.
        stop_reason: Option<StopReason>,
        /// The stop sequence that ended the reply.
        stop_sequence: Option<String>,
        /// Totals; counts missing in the event are zero.
        usage: ReportedUsage,
    },
    /// The reply is complete.
    MessageStop,
    /// A keep-alive without content.
    Ping,
    /// An event type this version does not know; forwarded without being decoded.
    Unknown,
}

/// A fragment appended to a block.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum BlockDelta {
    /// More text.
    #[serde(rename = "text_delta")]
    Text {
        /// The fragment.
        text: String,
    },
    /// More reasoning.
    #[serde(rename = "thinking_delta")]
    Thinking {
        /// The fragment.
        thinking: String,
    },
    /// The signature of the reasoning.
    #[serde(rename = "signature_delta")]
    Signature {
        /// The signature.
        signature: String,
    },
    /// More of a tool's input, as a fragment of JSON text.
    #[serde(rename = "input_json_delta")]
    InputJson {
        /// The fragment.
        partial_json: String,
    },
    /// A citation.
    #[serde(rename = "citations_delta")]
    Citation {
        /// The citation.
        citation: Value,
    },
    /// A delta type this version does not know.
    #[serde(other)]
    Unknown,
}

/// JSON form of a block delta. Serialized without an intermediate [`Value`], because deltas are by far the most
/// frequent events.
#[derive(Serialize)]
struct BlockDeltaJson<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    index: usize,
    delta: &'a BlockDelta,
}

impl ReplyEvent {
    /// Returns true for events that carry no content and only show that the provider is alive.
    pub fn is_keepalive(&self) -> bool {
        matches!(self, Self::Accepted { .. } | Self::Ping)
    }

    /// Serializes the event in the form of the Messages API, for events that were not received as such.
    pub fn to_raw_json(&self) -> Option<RawJson> {
        let value = match self {
            Self::MessageStart { id, model, usage } => json!({
                "type": "message_start",
                "message": {
                    "id": id,
                    "type": "message",
                    "role": "assistant",
                    "model": model,
                    "content": [],
                    "stop_reason": null,
                    "stop_sequence": null,
                    "usage": usage.usage,
                },
            }),
            Self::BlockStart { index, block } => {
                json!({ "type": "content_block_start", "index": index, "content_block": block })
            }
            Self::Accepted { .. } | Self::BlockDelta { delta: BlockDelta::Unknown, .. } | Self::Unknown => {
                return None;
            }
            Self::BlockDelta { index, delta } => {
                return RawJson::from_value(&BlockDeltaJson {
                    kind: "content_block_delta",
                    index: *index,
                    delta,
                })
                .ok();
            }
            Self::BlockStop { index } => json!({ "type": "content_block_stop", "index": index }),
            Self::MessageDelta { stop_reason, stop_sequence, usage } => json!({
                "type": "message_delta",
                "delta": { "stop_reason": stop_reason, "stop_sequence": stop_sequence },
                "usage": usage.usage,
            }),
            Self::MessageStop => json!({ "type": "message_stop" }),
            Self::Ping => json!({ "type": "ping" }),
        };
        RawJson::from_value(&value).ok()
    }
}
