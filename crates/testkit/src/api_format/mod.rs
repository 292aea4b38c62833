//! Encodes scripted replies in the format of each API, without IO.
//!
//! [`messages`] is the Messages API, [`chat`] is Chat Completions. Both encode a [`ResolvedReply`], in which every
//! default that the script left open is filled in.

pub(crate) mod chat;
pub(crate) mod messages;

use serde_json::{Value, json};
use whimbrel_wire::{StopReason, Usage};

use crate::script::{Reply, ReplyBlock};

/// A reply with all defaults filled in.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ResolvedReply {
    /// The number of the reply in its script.
    pub(crate) reply_number: usize,
    pub(crate) model: String,
    pub(crate) blocks: Vec<ResolvedBlock>,
    pub(crate) stop_reason: StopReason,
    pub(crate) usage: Usage,
    /// Characters per event.
    pub(crate) chunk_size: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ResolvedBlock {
    Text(String),
    Thinking { thinking: String, signature: String },
    Tool { id: String, name: String, input: Value, input_json: String },
    Verbatim(Value),
}

/// One server-sent event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SseEvent {
    /// The event name; Chat Completions has none.
    pub(crate) name: Option<String>,
    pub(crate) data: String,
}

impl ResolvedReply {
    /// Fills in the defaults. Ids are derived from the number, so they are the same in every run.
    pub(crate) fn new(reply_number: usize, reply: &Reply, model: &str) -> Self {
        let mut calls = 0;
        let blocks: Vec<ResolvedBlock> =
            reply.say.iter().map(|block| resolve_block(block, reply_number, &mut calls)).collect();
        let default_stop = if calls > 0 { StopReason::ToolUse } else { StopReason::EndTurn };
        Self {
            reply_number,
            model: model.to_owned(),
            blocks,
            stop_reason: reply.stop.clone().unwrap_or(default_stop),
            usage: reply.usage.clone().unwrap_or_else(default_usage),
            chunk_size: reply.chunk,
        }
    }
}

impl SseEvent {
    /// Encodes the event for the stream.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let name = self.name.as_ref().map(|name| format!("event: {name}\n")).unwrap_or_default();
        let data: String = self.data.split('\n').map(|line| format!("data: {line}\n")).collect();
        format!("{name}{data}\n").into_bytes()
    }
}

fn resolve_block(block: &ReplyBlock, number: usize, calls: &mut usize) -> ResolvedBlock {
    match block {
        ReplyBlock::Text { text } => ResolvedBlock::Text(text.clone()),
        ReplyBlock::Thinking { thinking, signature } => {
            ResolvedBlock::Thinking { thinking: thinking.clone(), signature: signature.clone() }
        }
        ReplyBlock::Tool { tool, input, id, raw_input } => {
            *calls += 1;
            ResolvedBlock::Tool {
                id: id.clone().unwrap_or_else(|| format!("toolu_{number}_{calls}")),
                name: tool.clone(),
                input: input.clone(),
                input_json: raw_input.clone().unwrap_or_else(|| input.to_string()),
            }
        }
        ReplyBlock::Block { block } => ResolvedBlock::Verbatim(block.clone()),
    }
}

/// Usage of every reply unless set; fixed, so that costs in tests do not depend on the length of prompts.
fn default_usage() -> Usage {
    Usage { input_tokens: 100, output_tokens: 10, ..Usage::default() }
}

/// Splits a text into chunks of `size` characters.
pub(crate) fn split_chunks(text: &str, size: usize) -> impl Iterator<Item = String> {
    let characters: Vec<char> = text.chars().collect();
    let pieces: Vec<String> = characters.chunks(size.max(1)).map(|piece| piece.iter().collect()).collect();
    pieces.into_iter()
}

/// Builds an error object that both API formats understand.
pub(crate) fn error_body(kind: &str, message: &str) -> Value {
    json!({"type": "error", "error": {"type": kind, "code": kind, "message": message}})
}
