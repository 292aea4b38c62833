//! Events to blocks, pure: the state of one reply while it streams.

use serde_json::Value;
use whimbrel_wire::{Block, StopReason, Usage};

use crate::event::{BlockDelta, Event};
use crate::fault::{Fault, FaultKind};

/// A reply in the making.
#[derive(Debug, Default)]
pub struct Assembly {
    /// The provider's id of the reply.
    pub id: String,
    /// The model that answers.
    pub model: String,
    /// Tokens so far.
    pub usage: Usage,
    /// Why the model stopped, once it has.
    pub stop_reason: Option<StopReason>,
    /// Whether the reply is complete.
    pub complete: bool,
    open: Option<Open>,
    finished: usize,
}

#[derive(Debug)]
struct Open {
    index: usize,
    block: Block,
    input: String,
}

/// A block that is complete.
#[derive(Debug, Clone, PartialEq)]
pub struct Finished {
    /// The block. A tool's input is an object, empty if what the model wrote is unusable.
    pub block: Block,
    /// Why a tool's input is unusable, with what the model wrote.
    pub bad_input: Option<String>,
}

impl Assembly {
    /// Takes the next event; gives a block when one is complete. Events that make no sense are a fault.
    pub fn take(&mut self, event: &Event) -> Result<Option<Finished>, Fault> {
        match event {
            Event::MessageStart { id, model, usage } => {
                self.id.clone_from(id);
                self.model.clone_from(model);
                self.usage = usage.clone();
            }
            Event::BlockStart { index, block } => {
                if self.open.is_some() || *index < self.finished {
                    return Err(out_of_order("a block began inside another", *index));
                }
                self.open = Some(Open { index: *index, block: block.clone(), input: String::new() });
            }
            Event::BlockDelta { index, delta } => match &mut self.open {
                Some(open) if open.index == *index => open.grow(delta),
                _ => return Err(out_of_order("a delta came for a block that is not open", *index)),
            },
            Event::BlockStop { index } => match self.open.take() {
                Some(open) if open.index == *index => {
                    self.finished = index + 1;
                    return Ok(Some(open.finish()));
                }
                _ => return Err(out_of_order("a block ended that is not open", *index)),
            },
            Event::MessageDelta { stop_reason, usage, .. } => {
                if stop_reason.is_some() {
                    self.stop_reason.clone_from(stop_reason);
                }
                absorb(&mut self.usage, usage);
            }
            Event::MessageStop => self.complete = true,
            Event::Ping | Event::Unknown => {}
        }
        Ok(None)
    }

    /// How many blocks are complete.
    pub fn finished(&self) -> usize {
        self.finished
    }

    /// What has arrived of the block that is still open, if it is text.
    pub fn open_text(&self) -> Option<&str> {
        match &self.open.as_ref()?.block {
            Block::Text { text, .. } if !text.is_empty() => Some(text),
            _ => None,
        }
    }
}

impl Open {
    fn grow(&mut self, delta: &BlockDelta) {
        match (&mut self.block, delta) {
            (Block::Text { text, .. }, BlockDelta::Text { text: more }) => text.push_str(more),
            (Block::Text { citations, .. }, BlockDelta::Citation { citation }) => {
                if let Value::Array(list) = citations.get_or_insert_with(|| Value::Array(Vec::new())) {
                    list.push(citation.clone());
                }
            }
            (Block::Thinking { thinking, .. }, BlockDelta::Thinking { thinking: more }) => {
                thinking.push_str(more);
            }
            (Block::Thinking { signature, .. }, BlockDelta::Signature { signature: more }) => {
                signature.push_str(more);
            }
            (_, BlockDelta::InputJson { partial_json }) => self.input.push_str(partial_json),
            _ => {}
        }
    }

    fn finish(mut self) -> Finished {
        let mut bad_input = None;
        match &mut self.block {
            Block::ToolUse { input, .. } => {
                let text = self.input.trim();
                match serde_json::from_str::<Value>(if text.is_empty() { "{}" } else { text }) {
                    Ok(read @ Value::Object(_)) if !text.is_empty() || input.is_null() => *input = read,
                    Ok(Value::Object(_)) => {}
                    Ok(_) => bad_input = Some(format!("the input must be a JSON object, but is: {text}")),
                    Err(error) => bad_input = Some(format!("the input is not valid JSON ({error}): {text}")),
                }
                if bad_input.is_some() || !input.is_object() {
                    *input = Value::Object(serde_json::Map::new());
                }
            }
            // Calls of the provider's own tools also stream their input.
            Block::Other(fields) if !self.input.is_empty() => {
                if let Ok(read) = serde_json::from_str(&self.input) {
                    fields.insert("input".into(), read);
                }
            }
            _ => {}
        }
        Finished { block: self.block, bad_input }
    }
}

/// The last event's figures replace earlier ones where it has any.
fn absorb(usage: &mut Usage, last: &Usage) {
    let replace = |old: &mut u64, new: u64| {
        if new > 0 {
            *old = new;
        }
    };
    replace(&mut usage.input_tokens, last.input_tokens);
    replace(&mut usage.output_tokens, last.output_tokens);
    replace(&mut usage.cache_creation_input_tokens, last.cache_creation_input_tokens);
    replace(&mut usage.cache_read_input_tokens, last.cache_read_input_tokens);
    replace(&mut usage.server_tool_use.web_search_requests, last.server_tool_use.web_search_requests);
    replace(&mut usage.server_tool_use.web_fetch_requests, last.server_tool_use.web_fetch_requests);
}

fn out_of_order(what: &str, index: usize) -> Fault {
    Fault::new(FaultKind::Protocol, format!("The model's stream is out of order: {what} (block {index})."))
}
