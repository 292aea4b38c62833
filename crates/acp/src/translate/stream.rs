//! The parts of a streamed reply that an editor sees, read from the provider's raw events.

use std::borrow::Cow;

use serde::Deserialize;
use whimbrel::wire::content::Usage;
use whimbrel::wire::message::StreamEvent;

/// A part of a reply.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ReplyEvent<'a> {
    MessageStart {
        #[serde(borrow)]
        message: StartedMessage<'a>,
    },
    ContentBlockStart {
        #[serde(borrow)]
        content_block: StartedBlock<'a>,
    },
    ContentBlockDelta {
        #[serde(borrow)]
        delta: Delta<'a>,
    },
    MessageDelta {
        usage: Option<Usage>,
    },
    MessageStop,
    #[serde(other)]
    Other,
}

#[derive(Debug, Deserialize)]
pub(super) struct StartedMessage<'a> {
    #[serde(borrow, default)]
    pub(super) id: Cow<'a, str>,
    #[serde(default)]
    pub(super) usage: Usage,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum StartedBlock<'a> {
    ToolUse {
        #[serde(borrow)]
        id: Cow<'a, str>,
        #[serde(borrow)]
        name: Cow<'a, str>,
    },
    #[serde(other)]
    Other,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type")]
pub(super) enum Delta<'a> {
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
    #[serde(other)]
    Other,
}

/// Reads an event; `None` if it is not of the Messages API.
pub(super) fn parse(event: &StreamEvent) -> Option<ReplyEvent<'_>> {
    event.event.decode().ok()
}

/// Tokens in the context after a call with this usage.
pub(super) fn context_tokens(usage: &Usage) -> u64 {
    usage.input_tokens
        + usage.cache_creation_input_tokens
        + usage.cache_read_input_tokens
        + usage.output_tokens
}
