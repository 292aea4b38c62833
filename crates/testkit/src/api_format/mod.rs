//! How a reply looks on the wire of an API, pure.
//!
//! Rooms: [`messages`] (the Messages API), [`chat`] (Chat Completions). Both get a [`Spoken`] reply, in which everything
//! that the script left open has been filled in.

pub(crate) mod chat;
pub(crate) mod messages;

use serde_json::{Value, json};
use whimbrel_wire::{StopReason, Usage};

use crate::script::{Reply, ReplyBlock};

/// A reply with everything filled in that a script may leave open.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ResolvedReply {
    /// The number of the reply in its script.
    pub(crate) reply_number: usize,
    /// The model that answers.
    pub(crate) model: String,
    pub(crate) blocks: Vec<ResolvedBlock>,
    pub(crate) stop_reason: StopReason,
    pub(crate) usage: Usage,
    /// How many characters an event carries.
    pub(crate) chunk_size: usize,
}

/// One block of a reply.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ResolvedBlock {
    Text(String),
    Thinking { thinking: String, signature: String },
    Tool { id: String, name: String, input: Value, sent: String },
    Verbatim(Value),
}

/// One event of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SseEvent {
    /// Its name, where the dialect has names.
    pub(crate) name: Option<String>,
    pub(crate) data: String,
}

impl ResolvedReply {
    /// Fills in what the reply leaves open. Ids are made from its number, so they are the same in every run.
    pub(crate) fn new(reply_number: usize, reply: &Reply, model: &str) -> Self {
        let mut calls = 0;
        let blocks: Vec<ResolvedBlock> = reply.say.iter().map(|words| resolve_block(words, reply_number, &mut calls)).collect();
        let stop = if calls > 0 { StopReason::ToolUse } else { StopReason::EndTurn };
        Self {
            reply_number,
            model: model.to_owned(),
            blocks,
            stop_reason: reply.stop.clone().unwrap_or(stop),
            usage: reply.usage.clone().unwrap_or_else(default_usage),
            chunk_size: reply.chunk,
        }
    }
}

impl SseEvent {
    /// The event as it is written.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let name = self.name.as_ref().map(|name| format!("event: {name}\n")).unwrap_or_default();
        let data: String = self.data.split('\n').map(|line| format!("data: {line}\n")).collect();
        format!("{name}{data}\n").into_bytes()
    }
}

fn resolve_block(words: &ReplyBlock, number: usize, calls: &mut usize) -> ResolvedBlock {
    match words {
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
                sent: raw_input.clone().unwrap_or_else(|| input.to_string()),
            }
        }
        ReplyBlock::Block { block } => ResolvedBlock::Verbatim(block.clone()),
    }
}

/// The same for every reply, so that costs in a test do not hang on how long a prompt is.
fn default_usage() -> Usage {
    Usage { input_tokens: 100, output_tokens: 10, ..Usage::default() }
}

/// A text in pieces of so many characters.
pub(crate) fn split_chunks(text: &str, size: usize) -> impl Iterator<Item = String> {
    let characters: Vec<char> = text.chars().collect();
    let pieces: Vec<String> = characters.chunks(size.max(1)).map(|piece| piece.iter().collect()).collect();
    pieces.into_iter()
}

/// An error object that both dialects understand.
pub(crate) fn error_body(kind: &str, message: &str) -> Value {
    json!({"type": "error", "error": {"type": kind, "code": kind, "message": message}})
}
