//! Chunks to events, pure and incremental. Chunks name their parts loosely and may mix the calls of one reply;
//! events hold one block at a time. So the first unfinished block is passed on as it grows, and what comes for later
//! ones waits.

use std::collections::HashSet;

use serde::de::IgnoredAny;
use serde_json::json;
use whimbrel_wire::{Block, StopReason};

use super::chunk::{self, ChatChunk, CallFragment, ChunkPiece};
use super::request::CallIds;
use crate::event::{BlockDelta, ReplyEvent};
use crate::error::{ModelError, ModelErrorKind};
use crate::usage::ReportedUsage;

/// The mark that closes a stream.
const DONE_MARKER: &str = "[DONE]";

/// A reply on its way from one dialect to the other.
#[derive(Debug)]
pub(super) struct ReplyTranslator {
    /// What ids of our own making are made of.
    seed: String,
    /// The model that was asked, for providers that do not say which one answers.
    model: String,
    /// The calls earlier in the conversation.
    earlier_calls: CallIds,
    /// Ids that calls of this reply have already.
    used_ids: HashSet<String>,
    /// The blocks in the order in which they began; those before `live` are closed.
    blocks: Vec<PendingBlock>,
    first_open: usize,
    /// How many blocks have been begun as events.
    started_blocks: usize,
    phase: Phase,
    finish_reason: Option<String>,
    has_refusal: bool,
    usage: ReportedUsage,
    /// The reason to stop and the figures as they were last told.
    last_sent_end: Option<(StopReason, ReportedUsage)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    NotStarted,
    Started,
    Complete,
}

/// A block in the making.
#[derive(Debug)]
struct PendingBlock {
    kind: BlockKind,
    /// What has come and was not yet passed on.
    buffered: String,
    /// Its place in the reply, once it has one.
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
    /// The provider's number for it.
    provider_index: Option<u64>,
    /// The provider's id for it, perhaps empty.
    id: String,
    name: String,
    /// All that has come of the arguments.
    arguments: String,
}

impl ReplyTranslator {
    /// A reply that has not begun. `seed` should differ for each reply: ids that the provider does not give, or gives
    /// twice, are made of it.
    pub(super) fn new(seed: impl Into<String>, model: impl Into<String>, earlier: impl Into<CallIds>) -> Self {
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

    /// Takes the data of the next event of the stream.
    pub(super) fn push_data(&mut self, data: &str) -> Result<Vec<ReplyEvent>, ModelError> {
        match (self.phase, data.trim()) {
            (Phase::Complete, _) | (_, "") | (Phase::NotStarted, DONE_MARKER) => Ok(Vec::new()),
            (Phase::Started, DONE_MARKER) => Ok(self.complete()),
            (Phase::NotStarted | Phase::Started, data) => self.push_chunk(chunk::parse(data)?),
        }
    }

    /// The stream is over. A reply that has its reason to stop is complete, even without the closing mark.
    pub(super) fn finish(&mut self) -> Vec<ReplyEvent> {
        match (self.phase, &self.finish_reason) {
            (Phase::Started, Some(_)) => self.complete(),
            _ => Vec::new(),
        }
    }

    /// Takes a whole answer from a server that does not stream.
    pub(super) fn translate_whole(&mut self, body: &str) -> Result<Vec<ReplyEvent>, ModelError> {
        let mut events = self.push_chunk(chunk::parse(body)?)?;
        if self.phase == Phase::NotStarted {
            return Err(ModelError::new(ModelErrorKind::NotAStream, "The model's answer holds no reply."));
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
        // Some servers give a reason to stop with every piece; it counts once no piece comes along.
        let adds_nothing = chunk.pieces.is_empty();
        for piece in chunk.pieces {
            self.push_piece(piece);
        }
        if let Some(reason) = chunk.finish_reason {
            if let Some(fault) = finish_error(&reason) {
                return Err(fault);
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

    /// Closes what is open and tells why the model stopped; again when the figures come later, as they often do.
    fn emit_end(&mut self, events: &mut Vec<ReplyEvent>) {
        self.emit_ready(BlockInput::Ended, events);
        let called = self.blocks.iter().any(|part| part.index.is_some() && matches!(part.kind, BlockKind::Call(_)));
        let end = (stop_reason(self.finish_reason.as_deref(), called, self.has_refusal), self.usage.clone());
        if self.last_sent_end.as_ref() != Some(&end) {
            let (stop_reason, usage) = end.clone();
            events.push(ReplyEvent::MessageDelta { stop_reason: Some(stop_reason), stop_sequence: None, usage });
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
                Some(part @ PendingBlock { kind: BlockKind::Thinking, .. }) => part.buffered.push_str(&text),
                _ => self.blocks.push(PendingBlock { kind: BlockKind::Thinking, buffered: text, index: None }),
            },
            ChunkPiece::Refusal(text) => {
                self.has_refusal = true;
                self.push_piece(ChunkPiece::Text(text));
            }
            ChunkPiece::Text(text) => match self.blocks[self.first_open..].last_mut() {
                Some(part @ PendingBlock { kind: BlockKind::Text, .. }) => part.buffered.push_str(&text),
                _ => self.blocks.push(PendingBlock { kind: BlockKind::Text, buffered: text, index: None }),
            },
            ChunkPiece::Call(fragment) => self.push_fragment(fragment),
        }
    }

    fn push_fragment(&mut self, fragment: CallFragment) {
        let place = self.find_call(&fragment);
        match place.and_then(|place| self.blocks.get_mut(place)) {
            Some(PendingBlock { kind: BlockKind::Call(call), .. }) if call.is_repeated_by(&fragment) => {}
            Some(PendingBlock { kind: BlockKind::Call(call), buffered: waiting, index }) => {
                // Servers that say the name again with each fragment say all of it.
                if index.is_none() && call.name != fragment.name {
                    call.name.push_str(&fragment.name);
                }
                if call.id.is_empty() {
                    call.id = fragment.id;
                }
                call.arguments.push_str(&fragment.arguments);
                waiting.push_str(&fragment.arguments);
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

    /// The call that a fragment belongs to; none means that it begins another.
    /// 1. With a number: the latest call of that number.
    /// 2. With an id: the latest call of that id.
    ///    In both cases not if the fragment clearly begins another: servers exist that give every call the number 0.
    /// 3. With a name: another call, if it follows one in the same chunk or the last call has its arguments already.
    /// 4. With neither: the last call.
    fn find_call(&self, fragment: &CallFragment) -> Option<usize> {
        let calls = || {
            self.blocks.iter().enumerate().rev().filter_map(|(place, part)| match &part.kind {
                BlockKind::Call(call) => Some((place, call)),
                BlockKind::Thinking | BlockKind::Text => None,
            })
        };
        let found = if fragment.index.is_some() {
            calls()
                .find(|(_, call)| call.provider_index == fragment.index)
                .filter(|(_, call)| !call.is_new_call(fragment))
        } else if !fragment.id.is_empty() {
            calls()
                .find(|(_, call)| call.id == fragment.id)
                .filter(|(_, call)| !call.is_new_call(fragment))
        } else {
            let named = !fragment.name.is_empty();
            calls().next().filter(|(_, last)| !(named && (fragment.follows_another || !last.arguments.is_empty())))
        };
        found.map(|(place, _)| place)
    }

    /// Passes on what can be: the first open block as far as it has come, and later ones once those before are closed.
    fn emit_ready(&mut self, rest: BlockInput, events: &mut Vec<ReplyEvent>) {
        while self.first_open < self.blocks.len() {
            let is_last = self.first_open + 1 == self.blocks.len();
            let overtaken = if is_last { rest } else { BlockInput::Ended };
            self.emit_first_open(overtaken, events);
            let part = &self.blocks[self.first_open];
            let closed = match &part.kind {
                BlockKind::Thinking | BlockKind::Text => overtaken == BlockInput::Ended,
                BlockKind::Call(call) => rest == BlockInput::Ended || !is_last && is_complete_json(&call.arguments),
            };
            if !closed {
                return;
            }
            events.extend(part.index.map(|index| ReplyEvent::BlockStop { index }));
            self.first_open += 1;
        }
    }

    /// Begins the first open block if it is ready, and passes on what waits for it.
    fn emit_first_open(&mut self, rest: BlockInput, events: &mut Vec<ReplyEvent>) {
        let part = &mut self.blocks[self.first_open];
        let ready = part.index.is_some()
            || match &part.kind {
                // White space alone is no block; other providers would refuse it later.
                BlockKind::Thinking | BlockKind::Text => !part.buffered.trim().is_empty(),
                // A name may come in pieces; the arguments come after it.
                BlockKind::Call(call) => {
                    !call.arguments.is_empty() || rest == BlockInput::Ended && !call.name.is_empty()
                }
            };
        if !ready {
            return;
        }
        let index = *part.index.get_or_insert_with(|| {
            let index = self.started_blocks;
            self.started_blocks += 1;
            let block = part.kind.empty_block(|id| {
                // The provider's id if it is new, else a short one of our own: some providers take 40 characters.
                let known = id.is_empty() || self.earlier_calls.contains(id) || self.used_ids.contains(id);
                let id = if known { format!("call_{}_{index}", self.seed) } else { id.to_owned() };
                self.used_ids.insert(id.clone());
                id
            });
            events.push(ReplyEvent::BlockStart { index, block });
            index
        });
        let piece = std::mem::take(&mut part.buffered);
        if !piece.is_empty() {
            events.push(ReplyEvent::BlockDelta { index, delta: part.kind.delta(piece) });
        }
    }
}

/// Whether more of a block may come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BlockInput {
    Open,
    Ended,
}

impl BlockKind {
    /// The block, still empty.
    fn empty_block(&self, id: impl FnOnce(&str) -> String) -> Block {
        match self {
            Self::Thinking => Block::Thinking { thinking: String::new(), signature: String::new() },
            Self::Text => Block::text(""),
            Self::Call(call) => {
                // A call without a name cannot be made, but must be answered: no tool is called this.
                let name = if call.name.is_empty() { "unnamed" } else { &call.name };
                Block::ToolUse { id: id(&call.id), name: name.to_owned(), input: json!({}) }
            }
        }
    }

    fn delta(&self, piece: String) -> BlockDelta {
        match self {
            Self::Thinking => BlockDelta::Thinking { thinking: piece },
            Self::Text => BlockDelta::Text { text: piece },
            Self::Call(_) => BlockDelta::InputJson { partial_json: piece },
        }
    }
}

impl StreamedCall {
    /// Whether a fragment begins another call although it bears the number or id of this one: it has a name and another
    /// id, or a name and arguments when the arguments of this one are whole.
    fn is_new_call(&self, fragment: &CallFragment) -> bool {
        let named = !fragment.name.is_empty() && !self.name.is_empty();
        let other_id = !fragment.id.is_empty() && !self.id.is_empty() && fragment.id != self.id;
        let begins_again =
            !fragment.arguments.is_empty() && is_complete_json(&self.arguments) && !self.is_repeated_by(fragment);
        named && (other_id || begins_again)
    }

    /// Whether a fragment only says the whole call again, as some servers do at the end.
    fn is_repeated_by(&self, fragment: &CallFragment) -> bool {
        let same =
            fragment.id == self.id && fragment.name == self.name && fragment.arguments == self.arguments;
        same && !self.id.is_empty() && is_complete_json(&self.arguments)
    }
}

/// Whether the arguments are a complete object, so that nothing more can come.
fn is_complete_json(arguments: &str) -> bool {
    arguments.trim_end().ends_with('}') && serde_json::from_str::<IgnoredAny>(arguments).is_ok()
}

/// The reason to stop, in the words of the Messages API. What was done counts more than what was said about it:
/// many servers say `stop` after a call.
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

/// Reasons to stop that mean a failed reply.
fn finish_error(finish: &str) -> Option<ModelError> {
    match finish {
        "insufficient_system_resource" => {
            Some(ModelError::new(ModelErrorKind::Overloaded, "The provider broke off the reply: it is overloaded."))
        }
        "error" => {
            Some(ModelError::new(ModelErrorKind::Server, "The provider broke off the reply because of an error."))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
