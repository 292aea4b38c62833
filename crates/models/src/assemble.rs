//! Assembles the blocks of a reply from its events, pure.

use serde_json::{Map, Value};
use whimbrel_wire::{Block, StopReason, Usage};

use crate::error::{ModelError, ModelErrorKind};
use crate::event::{BlockDelta, ReplyEvent};
use crate::usage::merge_usage;

/// A reply under assembly.
#[derive(Debug, Default)]
pub struct ReplyAssembler {
    /// The provider's id of the reply.
    pub id: String,
    /// The provider's id of the request, if the response had one.
    pub request_id: Option<String>,
    /// The model that replies.
    pub model: String,
    /// Usage so far.
    pub usage: Usage,
    /// Stop reason, once received.
    pub stop_reason: Option<StopReason>,
    /// Whether the reply is complete.
    pub complete: bool,
    open_block: Option<OpenBlock>,
    finished_count: usize,
    /// Whether the reply contains a tool call.
    has_tool_calls: bool,
    /// A call with invalid or empty input, held until the stop reason tells why.
    pending_call: Option<PendingCall>,
}

#[derive(Debug)]
struct OpenBlock {
    index: usize,
    block: Block,
    input: String,
}

/// A tool call held back until the stop reason is known.
#[derive(Debug)]
struct PendingCall {
    finished: FinishedBlock,
    /// The input text as the model wrote it.
    raw_input: String,
}

/// A complete block.
#[derive(Debug, Clone, PartialEq)]
pub struct FinishedBlock {
    /// The block. The input of a tool call is an object, empty if the model's text is invalid.
    pub block: Block,
    /// Description of an invalid tool input, including the model's text.
    pub bad_input: Option<String>,
}

impl ReplyAssembler {
    /// Processes the next event; returns a block when one is complete. Events out of order are an error.
    ///
    /// A call with invalid input is returned with the following event, which shows whether the output limit truncated
    /// it.
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
                self.open_block =
                    Some(OpenBlock { index: *index, block: block.clone(), input: String::new() });
                return Ok(self.pending_call.take().map(|call| call.finished));
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
                // A closed reply without a stop reason gets the usual one.
                let default = if self.has_tool_calls { StopReason::ToolUse } else { StopReason::EndTurn };
                self.stop_reason.get_or_insert(default);
                return Ok(self.take_pending_call());
            }
            ReplyEvent::Ping | ReplyEvent::Unknown => {}
        }
        Ok(None)
    }

    /// Returns a complete block, or holds it back until the stop reason is known.
    fn finish_block(&mut self, open: OpenBlock) -> Option<FinishedBlock> {
        let text = open.input.trim().to_owned();
        let finished = open.finish();
        let empty = match &finished.block {
            Block::ToolUse { input, .. } => text.is_empty() && input.as_object().is_none_or(Map::is_empty),
            _ => false,
        };
        if finished.bad_input.is_none() && !empty {
            return Some(finished);
        }
        self.pending_call = Some(PendingCall { finished, raw_input: text });
        None
    }

    /// Returns the held call. Call it when no further event will come: a reply that breaks off has no stop reason, but
    /// its call is complete.
    pub fn take_pending_call(&mut self) -> Option<FinishedBlock> {
        let PendingCall { mut finished, raw_input: text } = self.pending_call.take()?;
        if self.stop_reason == Some(StopReason::MaxTokens) {
            finished.bad_input = Some(truncated_input_message(&text));
        }
        Some(finished)
    }

    /// Number of complete blocks.
    pub fn finished_count(&self) -> usize {
        self.finished_count
    }

    /// Returns true if a block is complete or its text has begun.
    pub fn has_content(&self) -> bool {
        self.finished_count > 0 || self.open_text().is_some()
    }

    /// Text of the open block, if it is a text block with content.
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
            (Block::Text { text, .. }, BlockDelta::Text { text: fragment }) => text.push_str(fragment),
            (Block::Text { citations, .. }, BlockDelta::Citation { citation }) => {
                if let Value::Array(list) = citations.get_or_insert_with(|| Value::Array(Vec::new())) {
                    list.push(citation.clone());
                }
            }
            (Block::Thinking { thinking, .. }, BlockDelta::Thinking { thinking: fragment }) => {
                thinking.push_str(fragment);
            }
            (Block::Thinking { signature, .. }, BlockDelta::Signature { signature: fragment }) => {
                signature.push_str(fragment);
            }
            (_, BlockDelta::InputJson { partial_json }) => self.input.push_str(partial_json),
            _ => {}
        }
    }

    fn finish(mut self) -> FinishedBlock {
        let mut bad_input = None;
        match &mut self.block {
            Block::ToolUse { input, .. } => {
                bad_input = parse_tool_input(input, &self.input);
            }
            // Calls of provider-run tools stream their input too.
            Block::Other(fields) if !self.input.is_empty() => {
                if let Ok(object) = serde_json::from_str(&self.input) {
                    fields.insert("input".into(), object);
                }
            }
            _ => {}
        }
        FinishedBlock { block: self.block, bad_input }
    }
}

fn out_of_order_error(what: &str, index: usize) -> ModelError {
    ModelError::new(
        ModelErrorKind::Protocol,
        format!("The model's stream is out of order: {what} (block {index})."),
    )
}

/// Parses streamed JSON into the input of a call. Returns a message for the model if it is invalid; the input is then
/// empty. Without streamed JSON, the input stays as it was at the start of the block.
fn parse_tool_input(input: &mut Value, streamed: &str) -> Option<String> {
    let text = streamed.trim();
    let mut error_message = None;
    match serde_json::from_str::<Value>(if text.is_empty() { "{}" } else { text }) {
        Ok(object @ Value::Object(_)) if !text.is_empty() || input.is_null() => *input = object,
        Ok(Value::Object(_)) => {}
        Ok(_) => error_message = Some(format!("the input must be a JSON object, but is: {text}")),
        Err(error) => error_message = Some(format!("the input is not valid JSON ({error}): {text}")),
    }
    if error_message.is_some() || !input.is_object() {
        *input = Value::Object(Map::new());
    }
    error_message
}

/// Message for the model about a call that the output limit truncated: it must not write the same again.
fn truncated_input_message(text: &str) -> String {
    let end: String = text.chars().rev().take(100).collect::<Vec<_>>().into_iter().rev().collect();
    let end = if end.is_empty() { String::new() } else { format!(" The input ended with: {end}") };
    format!(
        "the output limit truncated the input, so the call was not made. Write less per call: split a long text into \
         several calls.{end}"
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns the input errors of calls with these inputs when the reply stops for this reason.
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
        let mut assembler = ReplyAssembler::default();
        let finished = events.iter().filter_map(|event| assembler.push_event(event).unwrap());
        finished.map(|finished| finished.bad_input).collect()
    }

    #[test]
    fn closed_reply_without_stop_reason_gets_the_usual_one() {
        let call = Block::ToolUse { id: "t".into(), name: "Read".into(), input: json!({}) };
        for (block, expected) in [(Block::text("Hi."), StopReason::EndTurn), (call, StopReason::ToolUse)] {
            let mut assembler = ReplyAssembler::default();
            let events = [
                ReplyEvent::BlockStart { index: 0, block },
                ReplyEvent::BlockStop { index: 0 },
                ReplyEvent::MessageDelta {
                    stop_reason: None,
                    stop_sequence: None,
                    usage: Usage::default().into(),
                },
            ];
            events.iter().for_each(|event| drop(assembler.push_event(event).unwrap()));
            assert_eq!(assembler.stop_reason, None, "it may still break off");
            assembler.push_event(&ReplyEvent::MessageStop).unwrap();
            assert_eq!(assembler.stop_reason, Some(expected));
        }
    }

    #[test]
    fn truncated_input_and_invalid_input_are_distinguished() {
        let cut =
            |bad_input: &Option<String>| bad_input.as_ref().is_some_and(|why| why.contains("output limit"));
        let bad =
            |bad_input: &Option<String>| bad_input.as_ref().is_some_and(|why| why.contains("not valid JSON"));
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
    fn held_call_is_returned_when_the_reply_breaks_off() {
        let block = Block::ToolUse { id: "t".into(), name: "ListAll".into(), input: json!({}) };
        let mut assembler = ReplyAssembler::default();
        assert_eq!(
            assembler.push_event(&ReplyEvent::BlockStart { index: 0, block: block.clone() }),
            Ok(None)
        );
        assert_eq!(assembler.push_event(&ReplyEvent::BlockStop { index: 0 }), Ok(None));
        assert_eq!(assembler.take_pending_call(), Some(FinishedBlock { block, bad_input: None }));
        assert_eq!(assembler.take_pending_call(), None, "it is given once");
    }
}
