//! Chunks to events, pure and incremental. Chunks name their parts loosely and may mix the calls of one reply;
//! events hold one block at a time. So the first unfinished block is passed on as it grows, and what comes for later
//! ones waits.

use std::collections::HashSet;

use serde::de::IgnoredAny;
use serde_json::json;
use whimbrel_wire::{Block, StopReason};

use super::chunk::{self, Chunk, Fragment, Piece};
use super::request::Calls;
use crate::event::{BlockDelta, Event};
use crate::fault::{Fault, FaultKind};
use crate::figures::Figures;

/// The mark that closes a stream.
const DONE: &str = "[DONE]";

/// A reply on its way from one dialect to the other.
#[derive(Debug)]
pub(super) struct Translation {
    /// What ids of our own making are made of.
    seed: String,
    /// The model that was asked, for providers that do not say which one answers.
    model: String,
    /// The calls earlier in the conversation.
    earlier: Calls,
    /// Ids that calls of this reply have already.
    taken: HashSet<String>,
    /// The blocks in the order in which they began; those before `live` are closed.
    parts: Vec<Part>,
    live: usize,
    /// How many blocks have been begun as events.
    begun: usize,
    stage: Stage,
    finish: Option<String>,
    refused: bool,
    usage: Figures,
    /// The reason to stop and the figures as they were last told.
    told: Option<(StopReason, Figures)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Silent,
    Speaking,
    Complete,
}

/// A block in the making.
#[derive(Debug)]
struct Part {
    kind: Kind,
    /// What has come and was not yet passed on.
    waiting: String,
    /// Its place in the reply, once it has one.
    index: Option<usize>,
}

#[derive(Debug)]
enum Kind {
    Thinking,
    Text,
    Call(Call),
}

#[derive(Debug)]
struct Call {
    /// The provider's number for it.
    number: Option<u64>,
    /// The provider's id for it, perhaps empty.
    id: String,
    name: String,
    /// All that has come of the arguments.
    arguments: String,
}

impl Translation {
    /// A reply that has not begun. `seed` should differ for each reply: ids that the provider does not give, or gives
    /// twice, are made of it.
    pub(super) fn new(seed: impl Into<String>, model: impl Into<String>, earlier: impl Into<Calls>) -> Self {
        Self {
            seed: seed.into(),
            model: model.into(),
            earlier: earlier.into(),
            taken: HashSet::new(),
            parts: Vec::new(),
            live: 0,
            begun: 0,
            stage: Stage::Silent,
            finish: None,
            refused: false,
            usage: Figures::default(),
            told: None,
        }
    }

    /// Takes the data of the next event of the stream.
    pub(super) fn take(&mut self, data: &str) -> Result<Vec<Event>, Fault> {
        match (self.stage, data.trim()) {
            (Stage::Complete, _) | (_, "") | (Stage::Silent, DONE) => Ok(Vec::new()),
            (Stage::Speaking, DONE) => Ok(self.complete()),
            (Stage::Silent | Stage::Speaking, data) => self.absorb(chunk::read(data)?),
        }
    }

    /// The stream is over. A reply that has its reason to stop is complete, even without the closing mark.
    pub(super) fn end(&mut self) -> Vec<Event> {
        match (self.stage, &self.finish) {
            (Stage::Speaking, Some(_)) => self.complete(),
            _ => Vec::new(),
        }
    }

    /// Takes a whole answer from a server that does not stream.
    pub(super) fn take_whole(&mut self, body: &str) -> Result<Vec<Event>, Fault> {
        let mut events = self.absorb(chunk::read(body)?)?;
        if self.stage == Stage::Silent {
            return Err(Fault::new(FaultKind::NotAStream, "The model's answer holds no reply."));
        }
        events.extend(self.complete());
        Ok(events)
    }

    fn absorb(&mut self, chunk: Chunk) -> Result<Vec<Event>, Fault> {
        let mut events = Vec::new();
        if let Some(usage) = chunk.usage {
            self.usage = usage;
        }
        if chunk.speaks && self.stage == Stage::Silent {
            events.push(self.start(chunk.id, chunk.model));
        }
        // Some servers give a reason to stop with every piece; it counts once no piece comes along.
        let adds_nothing = chunk.pieces.is_empty();
        for piece in chunk.pieces {
            self.add(piece);
        }
        if let Some(reason) = chunk.finish {
            if let Some(fault) = failed(&reason) {
                return Err(fault);
            }
            self.finish = Some(reason);
        }
        match self.finish {
            Some(_) if adds_nothing => self.settle(&mut events),
            _ => self.pass_on(Rest::MayCome, &mut events),
        }
        Ok(events)
    }

    fn start(&mut self, id: String, model: String) -> Event {
        self.stage = Stage::Speaking;
        let id = if id.is_empty() { format!("chatcmpl-{}", self.seed) } else { id };
        let model = if model.is_empty() { self.model.clone() } else { model };
        Event::MessageStart { id, model, usage: self.usage.clone() }
    }

    /// Closes what is open and tells why the model stopped; again when the figures come later, as they often do.
    fn settle(&mut self, events: &mut Vec<Event>) {
        self.pass_on(Rest::IsHere, events);
        let called = self.parts.iter().any(|part| part.index.is_some() && matches!(part.kind, Kind::Call(_)));
        let end = (stop_reason(self.finish.as_deref(), called, self.refused), self.usage.clone());
        if self.told.as_ref() != Some(&end) {
            let (stop_reason, usage) = end.clone();
            events.push(Event::MessageDelta { stop_reason: Some(stop_reason), stop_sequence: None, usage });
            self.told = Some(end);
        }
    }

    fn complete(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        self.settle(&mut events);
        events.push(Event::MessageStop);
        self.stage = Stage::Complete;
        events
    }

    fn add(&mut self, piece: Piece) {
        match piece {
            Piece::Thinking(text) => match self.parts[self.live..].last_mut() {
                Some(part @ Part { kind: Kind::Thinking, .. }) => part.waiting.push_str(&text),
                _ => self.parts.push(Part { kind: Kind::Thinking, waiting: text, index: None }),
            },
            Piece::Refusal(text) => {
                self.refused = true;
                self.add(Piece::Text(text));
            }
            Piece::Text(text) => match self.parts[self.live..].last_mut() {
                Some(part @ Part { kind: Kind::Text, .. }) => part.waiting.push_str(&text),
                _ => self.parts.push(Part { kind: Kind::Text, waiting: text, index: None }),
            },
            Piece::Call(fragment) => self.add_fragment(fragment),
        }
    }

    fn add_fragment(&mut self, fragment: Fragment) {
        let place = self.place_of(&fragment);
        match place.and_then(|place| self.parts.get_mut(place)) {
            Some(Part { kind: Kind::Call(call), .. }) if call.is_said_again(&fragment) => {}
            Some(Part { kind: Kind::Call(call), waiting, index }) => {
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
            _ => self.parts.push(Part {
                waiting: fragment.arguments.clone(),
                index: None,
                kind: Kind::Call(Call {
                    number: fragment.index,
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
    fn place_of(&self, fragment: &Fragment) -> Option<usize> {
        let calls = || {
            self.parts.iter().enumerate().rev().filter_map(|(place, part)| match &part.kind {
                Kind::Call(call) => Some((place, call)),
                Kind::Thinking | Kind::Text => None,
            })
        };
        let found = if fragment.index.is_some() {
            calls()
                .find(|(_, call)| call.number == fragment.index)
                .filter(|(_, call)| !call.is_followed_by(fragment))
        } else if !fragment.id.is_empty() {
            calls()
                .find(|(_, call)| call.id == fragment.id)
                .filter(|(_, call)| !call.is_followed_by(fragment))
        } else {
            let named = !fragment.name.is_empty();
            calls().next().filter(|(_, last)| !(named && (fragment.follows || !last.arguments.is_empty())))
        };
        found.map(|(place, _)| place)
    }

    /// Passes on what can be: the first open block as far as it has come, and later ones once those before are closed.
    fn pass_on(&mut self, rest: Rest, events: &mut Vec<Event>) {
        while self.live < self.parts.len() {
            let is_last = self.live + 1 == self.parts.len();
            let overtaken = if is_last { rest } else { Rest::IsHere };
            self.grow(overtaken, events);
            let part = &self.parts[self.live];
            let closed = match &part.kind {
                Kind::Thinking | Kind::Text => overtaken == Rest::IsHere,
                Kind::Call(call) => rest == Rest::IsHere || !is_last && is_whole(&call.arguments),
            };
            if !closed {
                return;
            }
            events.extend(part.index.map(|index| Event::BlockStop { index }));
            self.live += 1;
        }
    }

    /// Begins the first open block if it is ready, and passes on what waits for it.
    fn grow(&mut self, rest: Rest, events: &mut Vec<Event>) {
        let part = &mut self.parts[self.live];
        let ready = part.index.is_some()
            || match &part.kind {
                // White space alone is no block; other providers would refuse it later.
                Kind::Thinking | Kind::Text => !part.waiting.trim().is_empty(),
                // A name may come in pieces; the arguments come after it.
                Kind::Call(call) => {
                    !call.arguments.is_empty() || rest == Rest::IsHere && !call.name.is_empty()
                }
            };
        if !ready {
            return;
        }
        let index = *part.index.get_or_insert_with(|| {
            let index = self.begun;
            self.begun += 1;
            let block = part.kind.block(|id| {
                // The provider's id if it is new, else a short one of our own: some providers take 40 characters.
                let known = id.is_empty() || self.earlier.have(id) || self.taken.contains(id);
                let id = if known { format!("call_{}_{index}", self.seed) } else { id.to_owned() };
                self.taken.insert(id.clone());
                id
            });
            events.push(Event::BlockStart { index, block });
            index
        });
        let piece = std::mem::take(&mut part.waiting);
        if !piece.is_empty() {
            events.push(Event::BlockDelta { index, delta: part.kind.delta(piece) });
        }
    }
}

/// Whether more of a block may come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rest {
    MayCome,
    IsHere,
}

impl Kind {
    /// The block, still empty.
    fn block(&self, id: impl FnOnce(&str) -> String) -> Block {
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

impl Call {
    /// Whether a fragment begins another call although it bears the number or id of this one: it has a name and another
    /// id, or a name and arguments when the arguments of this one are whole.
    fn is_followed_by(&self, fragment: &Fragment) -> bool {
        let named = !fragment.name.is_empty() && !self.name.is_empty();
        let other_id = !fragment.id.is_empty() && !self.id.is_empty() && fragment.id != self.id;
        let begins_again =
            !fragment.arguments.is_empty() && is_whole(&self.arguments) && !self.is_said_again(fragment);
        named && (other_id || begins_again)
    }

    /// Whether a fragment only says the whole call again, as some servers do at the end.
    fn is_said_again(&self, fragment: &Fragment) -> bool {
        let same =
            fragment.id == self.id && fragment.name == self.name && fragment.arguments == self.arguments;
        same && !self.id.is_empty() && is_whole(&self.arguments)
    }
}

/// Whether the arguments are a complete object, so that nothing more can come.
fn is_whole(arguments: &str) -> bool {
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
fn failed(finish: &str) -> Option<Fault> {
    match finish {
        "insufficient_system_resource" => {
            Some(Fault::new(FaultKind::Overloaded, "The provider broke off the reply: it is overloaded."))
        }
        "error" => {
            Some(Fault::new(FaultKind::Server, "The provider broke off the reply because of an error."))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
