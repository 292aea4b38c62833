//! Translates chunks to reply events, pure and incremental. Chunks identify their parts loosely and may interleave
//! calls; events describe one block at a time. So the first open block is emitted as it grows, and data for later
//! blocks is buffered.

use std::collections::HashSet;

use serde::de::IgnoredAny;
use serde_json::json;
use whimbrel_wire::{Block, StopReason};

use super::chunk::{self, CallFragment, ChatChunk, ChunkPiece};
use super::request::CallIds;
use crate::error::{ModelError, ModelErrorKind};
use crate::event::{BlockDelta, ReplyEvent};
use crate::usage::ReportedUsage;

/// Data that closes a stream.
const DONE_MARKER: &str = "[DONE]";

/// State of a reply under translation.
#[derive(Debug)]
pub(super) struct ReplyTranslator {
    /// Seed of generated ids.
    seed: String,
    /// The requested model, for providers that do not name the replying one.
    model: String,
    /// Ids of calls earlier in the conversation.
    earlier_calls: CallIds,
    /// Call ids used in this reply.
    used_ids: HashSet<String>,
    /// Blocks in the order in which they began; those before `first_open` are closed.
    blocks: Vec<PendingBlock>,
    first_open: usize,
    /// Number of blocks started as events.
    started_blocks: usize,
    phase: Phase,
    finish_reason: Option<String>,
    has_refusal: bool,
    usage: ReportedUsage,
    /// Stop reason and usage of the last `message_delta` event.
    last_sent_end: Option<(StopReason, ReportedUsage)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    NotStarted,
    Started,
    Complete,
}

/// A block under construction.
#[derive(Debug)]
struct PendingBlock {
    kind: BlockKind,
    /// Data received but not yet emitted.
    buffered: String,
    /// Position in the reply, once the block has started.
    index: Option<usize>,
}

#[derive(Debug)]
enum BlockKind {
    Thinking,
    Text,
    Call(StreamedCall),
}

#[derive(Debug)]
struct StreamedCall {
    /// Index given by the provider.
    provider_index: Option<u64>,
    /// Id given by the provider; may be empty.
    id: String,
    name: String,
    /// Arguments received so far.
    arguments: String,
}

impl ReplyTranslator {
    /// Creates a translator. `seed` should be unique per reply: it is used for ids that the provider omits or repeats.
    pub(super) fn new(
        seed: impl Into<String>,
        model: impl Into<String>,
        earlier: impl Into<CallIds>,
    ) -> Self {
        Self {
            seed: seed.into(),
            model: model.into(),
            earlier_calls: earlier.into(),
            used_ids: HashSet::new(),
            blocks: Vec::new(),
            first_open: 0,
            started_blocks: 0,
            phase: Phase::NotStarted,
            finish_reason: None,
            has_refusal: false,
            usage: ReportedUsage::default(),
            last_sent_end: None,
        }
    }

    /// Processes the data of the next event.
    pub(super) fn push_data(&mut self, data: &str) -> Result<Vec<ReplyEvent>, ModelError> {
        match (self.phase, data.trim()) {
            (Phase::Complete, _) | (_, "") | (Phase::NotStarted, DONE_MARKER) => Ok(Vec::new()),
            (Phase::Started, DONE_MARKER) => Ok(self.complete()),
            (Phase::NotStarted | Phase::Started, data) => self.push_chunk(chunk::parse(data)?),
        }
    }

    /// Processes the end of the stream. A reply with a finish reason is complete even without the closing marker.
    pub(super) fn finish(&mut self) -> Vec<ReplyEvent> {
        match (self.phase, &self.finish_reason) {
            (Phase::Started, Some(_)) => self.complete(),
            _ => Vec::new(),
        }
    }

    /// Processes a response that is not streamed.
    pub(super) fn translate_whole(&mut self, body: &str) -> Result<Vec<ReplyEvent>, ModelError> {
        let mut events = self.push_chunk(chunk::parse(body)?)?;
        if self.phase == Phase::NotStarted {
            return Err(ModelError::new(
                ModelErrorKind::NotAStream,
                "The model's response contains no reply.",
            ));
        }
        events.extend(self.complete());
        Ok(events)
    }

    fn push_chunk(&mut self, chunk: ChatChunk) -> Result<Vec<ReplyEvent>, ModelError> {
        let mut events = Vec::new();
        if let Some(usage) = chunk.usage {
            self.usage = usage;
        }
        if chunk.has_choice && self.phase == Phase::NotStarted {
            events.push(self.message_start(chunk.id, chunk.model));
        }
        // Some servers send a finish reason with every piece; it counts only when no piece comes with it.
        let adds_nothing = chunk.pieces.is_empty();
        for piece in chunk.pieces {
            self.push_piece(piece);
        }
        if let Some(reason) = chunk.finish_reason {
            if let Some(error) = finish_error(&reason) {
                return Err(error);
            }
            self.finish_reason = Some(reason);
        }
        match self.finish_reason {
            Some(_) if adds_nothing => self.emit_end(&mut events),
            _ => self.emit_ready(BlockInput::Open, &mut events),
        }
        Ok(events)
    }

    fn message_start(&mut self, id: String, model: String) -> ReplyEvent {
        self.phase = Phase::Started;
        let id = if id.is_empty() { format!("chatcmpl-{}", self.seed) } else { id };
        let model = if model.is_empty() { self.model.clone() } else { model };
        ReplyEvent::MessageStart { id, model, usage: self.usage.clone() }
    }

    /// Closes open blocks and emits the stop reason; again when the usage arrives later, as it often does.
    fn emit_end(&mut self, events: &mut Vec<ReplyEvent>) {
        self.emit_ready(BlockInput::Ended, events);
        let called =
            self.blocks.iter().any(|block| block.index.is_some() && matches!(block.kind, BlockKind::Call(_)));
        let end = (stop_reason(self.finish_reason.as_deref(), called, self.has_refusal), self.usage.clone());
        if self.last_sent_end.as_ref() != Some(&end) {
            let (stop_reason, usage) = end.clone();
            events.push(ReplyEvent::MessageDelta {
                stop_reason: Some(stop_reason),
                stop_sequence: None,
                usage,
            });
            self.last_sent_end = Some(end);
        }
    }

    fn complete(&mut self) -> Vec<ReplyEvent> {
        let mut events = Vec::new();
        self.emit_end(&mut events);
        events.push(ReplyEvent::MessageStop);
        self.phase = Phase::Complete;
        events
    }

    fn push_piece(&mut self, piece: ChunkPiece) {
        match piece {
            ChunkPiece::Thinking(text) => match self.blocks[self.first_open..].last_mut() {
                Some(block @ PendingBlock { kind: BlockKind::Thinking, .. }) => {
                    block.buffered.push_str(&text);
                }
                _ => {
                    self.blocks.push(PendingBlock { kind: BlockKind::Thinking, buffered: text, index: None });
                }
            },
            ChunkPiece::Refusal(text) => {
                self.has_refusal = true;
                self.push_piece(ChunkPiece::Text(text));
            }
            ChunkPiece::Text(text) => match self.blocks[self.first_open..].last_mut() {
                Some(block @ PendingBlock { kind: BlockKind::Text, .. }) => block.buffered.push_str(&text),
                _ => self.blocks.push(PendingBlock { kind: BlockKind::Text, buffered: text, index: None }),
            },
            ChunkPiece::Call(fragment) => self.push_fragment(fragment),
        }
    }

    fn push_fragment(&mut self, fragment: CallFragment) {
        let position = self.find_call(&fragment);
        match position.and_then(|position| self.blocks.get_mut(position)) {
            Some(PendingBlock { kind: BlockKind::Call(call), .. }) if call.is_repeated_by(&fragment) => {}
            Some(PendingBlock { kind: BlockKind::Call(call), buffered, index }) => {
                // Servers that repeat the name with each fragment repeat it in full.
                if index.is_none() && call.name != fragment.name {
                    call.name.push_str(&fragment.name);
                }
                if call.id.is_empty() {
                    call.id = fragment.id;
                }
                call.arguments.push_str(&fragment.arguments);
                buffered.push_str(&fragment.arguments);
            }
            _ => self.blocks.push(PendingBlock {
                buffered: fragment.arguments.clone(),
                index: None,
                kind: BlockKind::Call(StreamedCall {
                    provider_index: fragment.index,
                    id: fragment.id,
                    name: fragment.name,
                    arguments: fragment.arguments,
                }),
            }),
        }
    }

    /// Finds the call that a fragment belongs to; `None` means that it begins a new call.
    /// 1. With an index: the latest call with that index.
    /// 2. With an id: the latest call with that id.
    ///    Neither applies if the fragment clearly begins a new call: some servers give every call the index 0.
    /// 3. With a name: a new call, if it follows another in the same chunk or the last call already has arguments.
    /// 4. Otherwise: the last call.
    fn find_call(&self, fragment: &CallFragment) -> Option<usize> {
        let calls = || {
            self.blocks.iter().enumerate().rev().filter_map(|(position, block)| match &block.kind {
                BlockKind::Call(call) => Some((position, call)),
                BlockKind::Thinking | BlockKind::Text => None,
            })
        };
        let found = if fragment.index.is_some() {
            calls()
                .find(|(_, call)| call.provider_index == fragment.index)
                .filter(|(_, call)| !call.is_new_call(fragment))
        } else if !fragment.id.is_empty() {
            calls().find(|(_, call)| call.id == fragment.id).filter(|(_, call)| !call.is_new_call(fragment))
        } else {
            let named = !fragment.name.is_empty();
            calls()
                .next()
                .filter(|(_, last)| !(named && (fragment.follows_another || !last.arguments.is_empty())))
        };
        found.map(|(position, _)| position)
    }

    /// Emits what is ready: the first open block as far as received, and later ones once those before are closed.
    fn emit_ready(&mut self, rest: BlockInput, events: &mut Vec<ReplyEvent>) {
        while self.first_open < self.blocks.len() {
            let is_last = self.first_open + 1 == self.blocks.len();
            let input = if is_last { rest } else { BlockInput::Ended };
            self.emit_first_open(input, events);
            let block = &self.blocks[self.first_open];
            let closed = match &block.kind {
                BlockKind::Thinking | BlockKind::Text => input == BlockInput::Ended,
                BlockKind::Call(call) => {
                    rest == BlockInput::Ended || !is_last && is_complete_json(&call.arguments)
                }
            };
            if !closed {
                return;
            }
            events.extend(block.index.map(|index| ReplyEvent::BlockStop { index }));
            self.first_open += 1;
        }
    }

    /// Starts the first open block if it is ready, and emits its buffered data.
    fn emit_first_open(&mut self, rest: BlockInput, events: &mut Vec<ReplyEvent>) {
        let block = &mut self.blocks[self.first_open];
        let ready = block.index.is_some()
            || match &block.kind {
                // White space alone is not a block; other providers would reject it later.
                BlockKind::Thinking | BlockKind::Text => !block.buffered.trim().is_empty(),
                // A name may come in fragments; the arguments follow it.
                BlockKind::Call(call) => {
                    !call.arguments.is_empty() || rest == BlockInput::Ended && !call.name.is_empty()
                }
            };
        if !ready {
            return;
        }
        let index = *block.index.get_or_insert_with(|| {
            let index = self.started_blocks;
            self.started_blocks += 1;
            let block = block.kind.empty_block(|id| {
                // The provider's id if it is new, else a generated one; some providers accept at most 40 characters.
                let known = id.is_empty() || self.earlier_calls.contains(id) || self.used_ids.contains(id);
                let id = if known { format!("call_{}_{index}", self.seed) } else { id.to_owned() };
                self.used_ids.insert(id.clone());
                id
            });
            events.push(ReplyEvent::BlockStart { index, block });
            index
        });
        let text = std::mem::take(&mut block.buffered);
        if !text.is_empty() {
            events.push(ReplyEvent::BlockDelta { index, delta: block.kind.delta(text) });
        }
    }
}

/// Whether more data of a block may arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BlockInput {
    Open,
    Ended,
}

impl BlockKind {
    /// The block without its streamed content.
    fn empty_block(&self, id: impl FnOnce(&str) -> String) -> Block {
        match self {
            Self::Thinking => Block::Thinking { thinking: String::new(), signature: String::new() },
            Self::Text => Block::text(""),
            Self::Call(call) => {
                // A call without a name must still get a result; no tool has this name.
                let name = if call.name.is_empty() { "unnamed" } else { &call.name };
                Block::ToolUse { id: id(&call.id), name: name.to_owned(), input: json!({}) }
            }
        }
    }

    fn delta(&self, text: String) -> BlockDelta {
        match self {
            Self::Thinking => BlockDelta::Thinking { thinking: text },
            Self::Text => BlockDelta::Text { text },
            Self::Call(_) => BlockDelta::InputJson { partial_json: text },
        }
    }
}

impl StreamedCall {
    /// Returns true if a fragment begins a new call although it has the index or id of this one: it has a name and
    /// another id, or a name and arguments while the arguments of this call are complete.
    fn is_new_call(&self, fragment: &CallFragment) -> bool {
        let named = !fragment.name.is_empty() && !self.name.is_empty();
        let other_id = !fragment.id.is_empty() && !self.id.is_empty() && fragment.id != self.id;
        let begins_again = !fragment.arguments.is_empty()
            && is_complete_json(&self.arguments)
            && !self.is_repeated_by(fragment);
        named && (other_id || begins_again)
    }

    /// Returns true if a fragment repeats the whole call, as some servers do at the end.
    fn is_repeated_by(&self, fragment: &CallFragment) -> bool {
        let same =
            fragment.id == self.id && fragment.name == self.name && fragment.arguments == self.arguments;
        same && !self.id.is_empty() && is_complete_json(&self.arguments)
    }
}

/// Returns true if the arguments are a complete JSON object.
fn is_complete_json(arguments: &str) -> bool {
    arguments.trim_end().ends_with('}') && serde_json::from_str::<IgnoredAny>(arguments).is_ok()
}

/// Maps the finish reason to the Messages API. The content takes precedence: many servers send `stop` after a call.
fn stop_reason(finish: Option<&str>, called: bool, refused: bool) -> StopReason {
    match finish {
        Some("length" | "max_tokens") => StopReason::MaxTokens,
        Some("content_filter") => StopReason::Refusal,
        None | Some("stop" | "tool_calls" | "function_call" | "eos" | "eos_token" | "end_turn") => {
            match (called, refused) {
                (true, _) => StopReason::ToolUse,
                (false, true) => StopReason::Refusal,
                (false, false) => StopReason::EndTurn,
            }
        }
        Some(other) => StopReason::Other(other.to_owned()),
    }
}

/// Finish reasons that mean a failed reply.
fn finish_error(finish: &str) -> Option<ModelError> {
    match finish {
        "insufficient_system_resource" => Some(ModelError::new(
            ModelErrorKind::Overloaded,
            "The provider aborted the reply because it is overloaded.",
        )),
        "error" => Some(ModelError::new(
            ModelErrorKind::Server,
            "The provider aborted the reply because of an error.",
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
