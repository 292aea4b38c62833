//! Converts a complete reply into the events of a stream, pure: for responses that are not streamed, and for scripts.

use serde::Deserialize;
use serde_json::{Map, Value};
use whimbrel_wire::{Block, StopReason, Usage};

use crate::event::{BlockDelta, ReplyEvent};
use crate::usage::ReportedUsage;

/// A reply of the Messages API without streaming.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct WholeReply {
    /// The provider's id of the reply.
    #[serde(default)]
    pub id: String,
    /// The model that replied.
    #[serde(default)]
    pub model: String,
    /// The blocks.
    pub content: Vec<Block>,
    /// Stop reason.
    #[serde(default)]
    pub stop_reason: Option<StopReason>,
    /// The stop sequence that ended the reply.
    #[serde(default)]
    pub stop_sequence: Option<String>,
    /// Token usage.
    #[serde(default)]
    pub usage: ReportedUsage,
}

impl WholeReply {
    /// Returns the events of the reply, with text fragments of at most `size` characters.
    pub fn events(&self, size: usize) -> Vec<ReplyEvent> {
        let usage = &self.usage.usage;
        let start_usage = Usage { output_tokens: usage.output_tokens.min(1), ..usage.clone() };
        let end_usage = Usage { output_tokens: usage.output_tokens, ..Usage::default() };
        let mut events = vec![ReplyEvent::MessageStart {
            id: self.id.clone(),
            model: self.model.clone(),
            usage: ReportedUsage { usage: start_usage, ..self.usage },
        }];
        for (index, block) in self.content.iter().enumerate() {
            let (empty, deltas) = split_block(block, size);
            events.push(ReplyEvent::BlockStart { index, block: empty });
            events.extend(deltas.into_iter().map(|delta| ReplyEvent::BlockDelta { index, delta }));
            events.push(ReplyEvent::BlockStop { index });
        }
        events.push(ReplyEvent::MessageDelta {
            stop_reason: self.stop_reason.clone(),
            stop_sequence: self.stop_sequence.clone(),
            usage: ReportedUsage { usage: end_usage, ..self.usage },
        });
        events.push(ReplyEvent::MessageStop);
        events
    }
}

/// Splits a block into its empty form and the deltas that complete it.
fn split_block(block: &Block, size: usize) -> (Block, Vec<BlockDelta>) {
    match block {
        Block::Text { text, citations } => {
            let citation_deltas = citations.iter().flat_map(Value::as_array).flatten();
            let citation_deltas =
                citation_deltas.map(|citation| BlockDelta::Citation { citation: citation.clone() });
            let texts = split_text(text, size).map(|text| BlockDelta::Text { text });
            (Block::text(""), texts.chain(citation_deltas).collect())
        }
        Block::Thinking { thinking, signature } => {
            let thoughts = split_text(thinking, size).map(|thinking| BlockDelta::Thinking { thinking });
            let signature_delta = BlockDelta::Signature { signature: signature.clone() };
            let empty = Block::Thinking { thinking: String::new(), signature: String::new() };
            (empty, thoughts.chain([signature_delta]).collect())
        }
        Block::ToolUse { id, name, input } => {
            // An input that is a string instead of an object is the model's literal text, valid JSON or not.
            let text = input.as_str().map_or_else(|| input.to_string(), str::to_owned);
            let inputs = split_text(&text, size).map(|partial_json| BlockDelta::InputJson { partial_json });
            let empty =
                Block::ToolUse { id: id.clone(), name: name.clone(), input: Value::Object(Map::new()) };
            (empty, inputs.collect())
        }
        other => (other.clone(), Vec::new()),
    }
}

fn split_text(text: &str, size: usize) -> impl Iterator<Item = String> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = rest.char_indices().nth(size.max(1)).map_or(rest.len(), |(at, _)| at);
        let (piece, after) = rest.split_at(end);
        rest = after;
        Some(piece.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::assemble::ReplyAssembler;

    #[test]
    fn split_reply_assembles_to_the_original() {
        let content = json!([
            {"type": "thinking", "thinking": "hm, größer", "signature": "sig"},
            {"type": "text", "text": "one two three", "citations": [{"at": 1}]},
            {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "true"}},
            {"type": "brand_new", "field": 1},
        ]);
        let value = json!({
            "id": "m", "type": "message", "role": "assistant", "model": "x", "content": content,
            "stop_reason": "tool_use", "usage": {"input_tokens": 7, "output_tokens": 5},
        });
        let whole: WholeReply = serde_json::from_value(value).unwrap();
        for size in [1, 4, usize::MAX] {
            let mut assembler = ReplyAssembler::default();
            let events = whole.events(size);
            let finished = events.iter().filter_map(|event| assembler.push_event(event).unwrap());
            let blocks: Vec<Block> = finished.map(|finished| finished.block).collect();
            assert_eq!(blocks, whole.content, "in pieces of {size}");
            assert!(assembler.complete);
            assert_eq!(
                (assembler.usage, assembler.stop_reason),
                (whole.usage.usage.clone(), whole.stop_reason.clone())
            );
        }
    }
}
