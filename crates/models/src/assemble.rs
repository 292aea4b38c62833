//! Events to blocks, pure: the state of one reply while it streams.

use serde_json::{Map, Value};
use whimbrel_wire::{Block, StopReason, Usage};

use crate::event::{BlockDelta, ReplyEvent};
use crate::error::{ModelError, ModelErrorKind};
use crate::usage::merge_usage;

/// A reply in the making.
#[derive(Debug, Default)]
pub struct ReplyAssembler {
    /// The provider's id of the reply.
    pub id: String,
    /// The provider's id of the request, if it gave one.
    pub request_id: Option<String>,
    /// The model that answers.
    pub model: String,
    /// Tokens so far.
    pub usage: Usage,
    /// Why the model stopped, once it has.
    pub stop_reason: Option<StopReason>,
    /// Whether the reply is complete.
    pub complete: bool,
    open_block: Option<OpenBlock>,
    finished_count: usize,
    /// Whether the model calls a tool.
    has_tool_calls: bool,
    /// A call whose input is unusable or empty: why the reply stopped decides what is said about it.
    pending_call: Option<PendingCall>,
}

#[derive(Debug)]
struct OpenBlock {
    index: usize,
    block: Block,
    input: String,
}

/// A call that waits for the word on why the model stopped.
#[derive(Debug)]
struct PendingCall {
    finished: FinishedBlock,
    /// What the model wrote of the input.
    raw_input: String,
}

/// A block that is complete.
#[derive(Debug, Clone, PartialEq)]
pub struct FinishedBlock {
    /// The block. A tool's input is an object, empty if what the model wrote is unusable.
    pub block: Block,
    /// Why a tool's input is unusable, with what the model wrote.
    pub bad_input: Option<String>,
}

impl ReplyAssembler {
    /// Takes the next event; gives a block when one is complete. Events that make no sense are a fault.
    ///
    /// A call whose input is unusable is given with the event after its end, which tells whether the output limit cut it.
    pub fn push_event(&mut self, event: &ReplyEvent) -> Result<Option<FinishedBlock>, ModelError> {
        match event {
            ReplyEvent::Accepted { request_id } => self.request_id.clone_from(request_id),
            ReplyEvent::MessageStart { id, model, usage } => {
                self.id.clone_from(id);
                self.model.clone_from(model);
                self.usage.clone_from(&usage.usage);
            }
            ReplyEvent::BlockStart { index, block } => {
                if self.open_block.is_some() || *index < self.finished_count {
                    return Err(out_of_order_error("a block began inside another", *index));
                }
                self.has_tool_calls |= matches!(block, Block::ToolUse { .. });
                self.open_block = Some(OpenBlock { index: *index, block: block.clone(), input: String::new() });
                return Ok(self.pending_call.take().map(|held| held.finished));
            }
            ReplyEvent::BlockDelta { index, delta } => match &mut self.open_block {
                Some(open) if open.index == *index => open.append(delta),
                _ => return Err(out_of_order_error("a delta came for a block that is not open", *index)),
            },
            ReplyEvent::BlockStop { index } => match self.open_block.take() {
                Some(open) if open.index == *index => {
                    self.finished_count = index + 1;
                    return Ok(self.finish_block(open));
                }
                _ => return Err(out_of_order_error("a block ended that is not open", *index)),
            },
            ReplyEvent::MessageDelta { stop_reason, usage, .. } => {
                if stop_reason.is_some() {
                    self.stop_reason.clone_from(stop_reason);
                }
                merge_usage(&mut self.usage, &usage.usage);
                return Ok(if self.stop_reason.is_some() { self.take_pending_call() } else { None });
            }
            ReplyEvent::MessageStop => {
                self.complete = true;
                // A reply that was closed is no less whole for want of a reason.
                let usual = if self.has_tool_calls { StopReason::ToolUse } else { StopReason::EndTurn };
                self.stop_reason.get_or_insert(usual);
                return Ok(self.take_pending_call());
            }
            ReplyEvent::Ping | ReplyEvent::Unknown => {}
        }
        Ok(None)
    }

    /// Gives a block that is complete, unless more must be known about it.
    fn finish_block(&mut self, open: OpenBlock) -> Option<FinishedBlock> {
        let written = open.input.trim().to_owned();
        let finished = open.finish();
        let empty = match &finished.block {
            Block::ToolUse { input, .. } => written.is_empty() && input.as_object().is_none_or(Map::is_empty),
            _ => false,
        };
        if finished.bad_input.is_none() && !empty {
            return Some(finished);
        }
        self.pending_call = Some(PendingCall { finished, raw_input: written });
        None
    }

    /// Gives the call that waits for the reason to stop. Ask for it when no further event will come: a reply that breaks
    /// off does not say why it stopped, but its call is complete.
    pub fn take_pending_call(&mut self) -> Option<FinishedBlock> {
        let PendingCall { mut finished, raw_input: written } = self.pending_call.take()?;
        if self.stop_reason == Some(StopReason::MaxTokens) {
            finished.bad_input = Some(truncated_input_message(&written));
        }
        Some(finished)
    }

    /// How many blocks are complete.
    pub fn finished_count(&self) -> usize {
        self.finished_count
    }

    /// What has arrived of the block that is still open, if it is text.
    pub fn open_text(&self) -> Option<&str> {
        match &self.open_block.as_ref()?.block {
            Block::Text { text, .. } if !text.is_empty() => Some(text),
            _ => None,
        }
    }
}

impl OpenBlock {
    fn append(&mut self, delta: &BlockDelta) {
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

    fn finish(mut self) -> FinishedBlock {
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
                    *input = Value::Object(Map::new());
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
        FinishedBlock { block: self.block, bad_input }
    }
}

/// What the model reads about a call that the output limit cut: it must not write the same again.
fn truncated_input_message(written: &str) -> String {
    let end: String = written.chars().rev().take(100).collect::<Vec<_>>().into_iter().rev().collect();
    let end = if end.is_empty() { String::new() } else { format!(" It broke off after: {end}") };
    format!(
        "the input was cut by the output limit, so the call was not made. Send less at a time: write a long text in \
         several calls.{end}"
    )
}

fn out_of_order_error(what: &str, index: usize) -> ModelError {
    ModelError::new(ModelErrorKind::Protocol, format!("The model's stream is out of order: {what} (block {index})."))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What is said about calls with these inputs when the reply stops for this reason.
    fn bad_inputs(inputs: &[&str], stop: StopReason) -> Vec<Option<String>> {
        let mut events = Vec::new();
        for (index, input) in inputs.iter().enumerate() {
            let block = Block::ToolUse { id: format!("t{index}"), name: "Write".into(), input: json!({}) };
            let delta = BlockDelta::InputJson { partial_json: (*input).to_owned() };
            events.push(ReplyEvent::BlockStart { index, block });
            events.push(ReplyEvent::BlockDelta { index, delta });
            events.push(ReplyEvent::BlockStop { index });
        }
        events.push(ReplyEvent::MessageDelta {
            stop_reason: Some(stop),
            stop_sequence: None,
            usage: Usage::default().into(),
        });
        events.push(ReplyEvent::MessageStop);
        let mut assembly = ReplyAssembler::default();
        let finished = events.iter().filter_map(|event| assembly.push_event(event).unwrap());
        finished.map(|finished| finished.bad_input).collect()
    }

    #[test]
    fn a_reply_that_was_closed_without_a_reason_has_the_usual_one() {
        let call = Block::ToolUse { id: "t".into(), name: "Read".into(), input: json!({}) };
        for (block, expected) in [(Block::text("Hi."), StopReason::EndTurn), (call, StopReason::ToolUse)] {
            let mut assembly = ReplyAssembler::default();
            let events = [
                ReplyEvent::BlockStart { index: 0, block },
                ReplyEvent::BlockStop { index: 0 },
                ReplyEvent::MessageDelta {
                    stop_reason: None,
                    stop_sequence: None,
                    usage: Usage::default().into(),
                },
            ];
            events.iter().for_each(|event| drop(assembly.push_event(event).unwrap()));
            assert_eq!(assembly.stop_reason, None, "it may still break off");
            assembly.push_event(&ReplyEvent::MessageStop).unwrap();
            assert_eq!(assembly.stop_reason, Some(expected));
        }
    }

    #[test]
    fn input_that_the_output_limit_cut_is_told_as_such_and_bad_input_as_bad() {
        let cut = |said: &Option<String>| said.as_ref().is_some_and(|why| why.contains("output limit"));
        let bad = |said: &Option<String>| said.as_ref().is_some_and(|why| why.contains("not valid JSON"));
        let half = r#"{"text":"once upon a ti"#;
        let limit = bad_inputs(&[half], StopReason::MaxTokens);
        assert!(cut(&limit[0]) && limit[0].as_ref().unwrap().ends_with("a ti"), "{limit:?}");
        assert!(cut(&bad_inputs(&[""], StopReason::MaxTokens)[0]), "A25 cut before the first word");
        assert!(bad(&bad_inputs(&[half], StopReason::ToolUse)[0]), "A24 badly written");
        assert_eq!(bad_inputs(&["{}"], StopReason::MaxTokens), [None], "whole before the limit came");
        assert_eq!(bad_inputs(&["", r#"{"a":1}"#], StopReason::ToolUse), [None, None]);
        let both = bad_inputs(&[half, half], StopReason::MaxTokens);
        assert!(bad(&both[0]) && cut(&both[1]), "{both:?}");
    }

    #[test]
    fn a_call_that_waits_is_given_when_the_reply_breaks_off() {
        let block = Block::ToolUse { id: "t".into(), name: "ListAll".into(), input: json!({}) };
        let mut assembly = ReplyAssembler::default();
        assert_eq!(assembly.push_event(&ReplyEvent::BlockStart { index: 0, block: block.clone() }), Ok(None));
        assert_eq!(assembly.push_event(&ReplyEvent::BlockStop { index: 0 }), Ok(None));
        assert_eq!(assembly.take_pending_call(), Some(FinishedBlock { block, bad_input: None }));
        assert_eq!(assembly.take_pending_call(), None, "it is given once");
    }
}
