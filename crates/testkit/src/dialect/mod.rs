//! How a reply looks on the wire of an API, pure.
//!
//! Rooms: [`messages`] (the Messages API), [`chat`] (Chat Completions). Both get a [`Spoken`] reply, in which everything
//! that the script left open has been filled in.

pub(crate) mod chat;
pub(crate) mod messages;

use serde_json::{Value, json};
use whimbrel_wire::{StopReason, Usage};

use crate::script::{Reply, Words};

/// A reply with everything filled in that a script may leave open.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Spoken {
    /// The number of the reply in its script.
    pub(crate) number: usize,
    /// The model that answers.
    pub(crate) model: String,
    pub(crate) blocks: Vec<Block>,
    pub(crate) stop: StopReason,
    pub(crate) usage: Usage,
    /// How many characters an event carries.
    pub(crate) chunk: usize,
}

/// One block of a reply.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Block {
    Text(String),
    Thinking { thinking: String, signature: String },
    Tool { id: String, name: String, input: Value, sent: String },
    Verbatim(Value),
}

/// One event of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Event {
    /// Its name, where the dialect has names.
    pub(crate) name: Option<String>,
    pub(crate) data: String,
}

impl Spoken {
    /// Fills in what the reply leaves open. Ids are made from its number, so they are the same in every run.
    pub(crate) fn new(number: usize, reply: &Reply, model: &str) -> Self {
        let mut calls = 0;
        let blocks: Vec<Block> = reply.say.iter().map(|words| block(words, number, &mut calls)).collect();
        let stop = if calls > 0 { StopReason::ToolUse } else { StopReason::EndTurn };
        Self {
            number,
            model: model.to_owned(),
            blocks,
            stop: reply.stop.clone().unwrap_or(stop),
            usage: reply.usage.clone().unwrap_or_else(usual_usage),
            chunk: reply.chunk,
        }
    }
}

impl Event {
    /// The event as it is written.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let name = self.name.as_ref().map(|name| format!("event: {name}\n")).unwrap_or_default();
        let data: String = self.data.split('\n').map(|line| format!("data: {line}\n")).collect();
        format!("{name}{data}\n").into_bytes()
    }
}

fn block(words: &Words, number: usize, calls: &mut usize) -> Block {
    match words {
        Words::Text { text } => Block::Text(text.clone()),
        Words::Thinking { thinking, signature } => {
            Block::Thinking { thinking: thinking.clone(), signature: signature.clone() }
        }
        Words::Tool { tool, input, id, raw_input } => {
            *calls += 1;
            Block::Tool {
                id: id.clone().unwrap_or_else(|| format!("toolu_{number}_{calls}")),
                name: tool.clone(),
                input: input.clone(),
                sent: raw_input.clone().unwrap_or_else(|| input.to_string()),
            }
        }
        Words::Block { block } => Block::Verbatim(block.clone()),
    }
}

/// The same for every reply, so that costs in a test do not hang on how long a prompt is.
fn usual_usage() -> Usage {
    Usage { input_tokens: 100, output_tokens: 10, ..Usage::default() }
}

/// A text in pieces of so many characters.
pub(crate) fn pieces(text: &str, size: usize) -> impl Iterator<Item = String> {
    let characters: Vec<char> = text.chars().collect();
    let pieces: Vec<String> = characters.chunks(size.max(1)).map(|piece| piece.iter().collect()).collect();
    pieces.into_iter()
}

/// An error object that both dialects understand.
pub(crate) fn error(kind: &str, message: &str) -> Value {
    json!({"type": "error", "error": {"type": kind, "code": kind, "message": message}})
}
