//! What a reply consists of while it streams: the events of the Messages API, read once.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use whimbrel_wire::{Block, RawJson, StopReason};

use crate::usage::ReportedUsage;

/// One event of a streamed reply.
#[derive(Debug, Clone, PartialEq)]
pub enum ReplyEvent {
    /// The provider has taken the request in. Nothing is said with it; it is not part of the reply.
    Accepted {
        /// The provider's id of the request, if it gave one.
        request_id: Option<String>,
    },
    /// The reply begins.
    MessageStart {
        /// The provider's id of the reply.
        id: String,
        /// The model that answers.
        model: String,
        /// Tokens read; output so far.
        usage: ReportedUsage,
    },
    /// A block begins.
    BlockStart {
        /// Its place in the reply.
        index: usize,
        /// The block, still empty.
        block: Block,
    },
    /// A block grows.
    BlockDelta {
        /// Its place in the reply.
        index: usize,
        /// What is added.
        delta: BlockDelta,
    },
    /// A block is complete.
    BlockStop {
        /// Its place in the reply.
        index: usize,
    },
    /// The reply's last figures.
    MessageDelta {
        /// Why the model stopped.
        stop_reason: Option<StopReason>,
        /// The stop sequence that appeared.
        stop_sequence: Option<String>,
        /// Totals; figures that the event lacks are zero.
        usage: ReportedUsage,
    },
    /// The reply is complete.
    MessageStop,
    /// A sign of life.
    Ping,
    /// Something newer than we are; passed on, not read.
    Unknown,
}

/// What is added to a block.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum BlockDelta {
    /// More text.
    #[serde(rename = "text_delta")]
    Text {
        /// The piece.
        text: String,
    },
    /// More reasoning.
    #[serde(rename = "thinking_delta")]
    Thinking {
        /// The piece.
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
    /// Something newer.
    #[serde(other)]
    Unknown,
}

/// A delta as it is written. It is by far the most frequent event, so no tree is made of it first.
#[derive(Serialize)]
struct BlockDeltaJson<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    index: usize,
    delta: &'a BlockDelta,
}

impl ReplyEvent {
    /// Whether it only shows that the provider is there.
    pub fn is_keepalive(&self) -> bool {
        matches!(self, Self::Accepted { .. } | Self::Ping)
    }

    /// The event as JSON in the form of the Messages API, for events that did not come as such.
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
                return RawJson::from_value(&BlockDeltaJson { kind: "content_block_delta", index: *index, delta }).ok();
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
