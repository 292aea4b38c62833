//! The conversation as bytes. Each block is written as JSON once; a request shares what was written before.
//!
//! Messages of one role that follow each other are joined, so roles always alternate. The last message stays open
//! for further blocks until the other side speaks.

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use serde::Deserialize;
use whimbrel_wire::{Block, Role};

use crate::request::CACHE_CONTROL;

/// From this size on, finished messages are frozen and shared instead of copied into each request.
const FREEZE_THRESHOLD: usize = 64 * 1024;

/// A growing conversation.
#[derive(Debug, Default, Clone)]
pub struct History {
    /// Finished messages, each piece ending at a message boundary, comma included.
    frozen: Vec<FrozenPart>,
    /// What came since: whole messages, and the open one without its closing brackets.
    tail: Vec<u8>,
    /// Who spoke last.
    last_role: Option<Role>,
    /// Whether the model has ever spoken.
    has_reply: bool,
    /// Whether the model began with thinking when it last answered something else than results.
    loop_has_thinking: bool,
    /// Whether the last message is one of results, so that the model's message before it is still going on.
    in_tool_loop: bool,
    /// Where in `tail` the last request ended, so that its cache mark can be set again.
    last_request_end: Option<usize>,
}

/// Finished messages that nobody changes any more.
#[derive(Debug, Clone)]
struct FrozenPart {
    json: Bytes,
    translations: Arc<TranslationCache>,
}

/// What other dialects have made of a frozen piece. It is kept with the piece, so that it is made once.
#[derive(Debug, Default)]
struct TranslationCache {
    with_reasoning: OnceLock<Arc<TranslatedMessages>>,
    without_reasoning: OnceLock<Arc<TranslatedMessages>>,
}

/// How another dialect tells a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChatFormat {
    /// Chat Completions, for models that get their reasoning back.
    WithReasoning,
    /// Chat Completions, for those that do not.
    WithoutReasoning,
}

/// A piece of a conversation in another dialect.
#[derive(Debug, Default)]
pub(crate) struct TranslatedMessages {
    /// The messages as JSON, each with a comma before it.
    pub(crate) json: Bytes,
    /// The ids of the calls in it.
    pub(crate) calls: HashSet<String>,
}

/// A conversation as of one request. Cheap to clone.
#[derive(Debug, Clone)]
pub struct HistorySnapshot {
    parts: Vec<Bytes>,
    /// For each part but the last, which is not frozen.
    translations: Vec<Arc<TranslationCache>>,
}

/// One message, read back from a conversation.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct ApiMessage {
    /// Who spoke.
    pub role: Role,
    /// What was said.
    pub content: Vec<Block>,
}

impl History {
    /// An empty conversation.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a block: to the last message if the same side spoke, else as a new message.
    pub fn push(&mut self, role: Role, block: &Block) {
        if self.last_role == Some(role) {
            self.tail.push(b',');
        } else {
            self.open_message(role);
            match role {
                Role::Assistant if self.in_tool_loop => {}
                Role::Assistant => self.loop_has_thinking = is_thinking(block),
                Role::User => self.in_tool_loop = matches!(block, Block::ToolResult { .. }),
            }
        }
        // Writing to a vector cannot fail, and a block has only string keys.
        let _ = serde_json::to_writer(&mut self.tail, block);
    }

    fn open_message(&mut self, role: Role) {
        if self.last_role.is_some() {
            self.tail.extend_from_slice(b"]},");
            if self.tail.len() >= FREEZE_THRESHOLD {
                let json = Bytes::from(std::mem::take(&mut self.tail));
                self.frozen.push(FrozenPart { json, translations: Arc::default() });
                self.last_request_end = None;
            }
        }
        let opening: &[u8] = match role {
            Role::User => br#"{"role":"user","content":["#,
            Role::Assistant => br#"{"role":"assistant","content":["#,
        };
        self.tail.extend_from_slice(opening);
        self.last_role = Some(role);
        self.has_reply |= role == Role::Assistant;
    }

    /// Who spoke last.
    pub fn last_role(&self) -> Option<Role> {
        self.last_role
    }

    /// Whether the model has said anything yet.
    pub fn has_reply(&self) -> bool {
        self.has_reply
    }

    /// Whether the chain of calls that the last results belong to began with thinking; none if no results are the last
    /// that was said. Models need not think again between the calls of a chain.
    pub fn tool_loop_has_thinking(&self) -> Option<bool> {
        (self.last_role == Some(Role::User) && self.in_tool_loop).then_some(self.loop_has_thinking)
    }

    /// Drops all thinking.
    pub fn drop_thinking(&mut self) {
        self.retain(|block| !is_thinking(block));
    }

    /// Drops thinking that nobody has signed.
    pub fn drop_unsigned_thinking(&mut self) {
        self.retain(|block| !is_unsigned_thinking(block));
    }

    /// Whether nothing has been said yet.
    pub fn is_empty(&self) -> bool {
        self.last_role.is_none()
    }

    /// How many bytes the conversation takes as JSON.
    pub fn size(&self) -> usize {
        self.frozen.iter().map(|piece| piece.json.len()).sum::<usize>() + self.tail.len()
    }

    /// The conversation for one request, with cache marks at its end and at the end of the request before.
    pub fn snapshot(&mut self) -> HistorySnapshot {
        let mut tail = Vec::with_capacity(self.tail.len() + 2 * CACHE_CONTROL.len() + 2);
        let mut from = 0;
        let end = self.tail.len();
        for mark in self.last_request_end.into_iter().chain([end]).filter(|at| *at > 0) {
            if mark == end && self.last_role != Some(Role::User) || mark <= from {
                continue;
            }
            // The mark goes inside the block that ends here, before its closing brace.
            tail.extend_from_slice(&self.tail[from..mark - 1]);
            tail.extend_from_slice(CACHE_CONTROL.as_bytes());
            from = mark - 1;
        }
        tail.extend_from_slice(&self.tail[from..]);
        if self.last_role.is_some() {
            tail.extend_from_slice(b"]}");
        }
        self.last_request_end = (self.last_role == Some(Role::User)).then_some(end);
        let sealed = self.frozen.iter();
        HistorySnapshot {
            parts: sealed.clone().map(|piece| piece.json.clone()).chain([Bytes::from(tail)]).collect(),
            translations: sealed.map(|piece| Arc::clone(&piece.translations)).collect(),
        }
    }

    /// Drops every block that is not to be kept. What was written before is written again, so caches are lost.
    pub fn retain(&mut self, keep: impl Fn(&Block) -> bool) {
        let messages = self.messages();
        if messages.iter().all(|message| message.content.iter().all(&keep)) {
            return;
        }
        *self = Self::new();
        for message in &messages {
            for block in message.content.iter().filter(|block| keep(block)) {
                self.push(message.role, block);
            }
        }
    }

    /// Which of these texts, each the beginning of a block, was said last; none if none was. Searched as bytes, since a
    /// long conversation takes long to read.
    pub fn find_last_text(&self, beginnings: &[&str]) -> Option<usize> {
        let needle = |text: &&str| {
            let quoted = serde_json::to_string(text).unwrap_or_default();
            format!("\"text\":{}", quoted.strip_suffix('"').unwrap_or(&quoted))
        };
        let needles: Vec<String> = beginnings.iter().map(needle).collect();
        let last_in = |piece: &[u8]| {
            let found = needles.iter().enumerate().filter_map(|(which, needle)| {
                Some((memchr::memmem::rfind(piece, needle.as_bytes())?, which))
            });
            found.max().map(|(_, which)| which)
        };
        last_in(&self.tail).or_else(|| self.frozen.iter().rev().find_map(|piece| last_in(&piece.json)))
    }

    /// The conversation read back, message by message, without cache marks.
    pub fn messages(&self) -> Vec<ApiMessage> {
        let mut copy = self.clone();
        copy.last_role = copy.last_role.map(|_| Role::Assistant);
        copy.last_request_end = None;
        copy.snapshot().messages()
    }
}

/// Whether a block is thinking that nobody has signed.
pub fn is_unsigned_thinking(block: &Block) -> bool {
    matches!(block, Block::Thinking { signature, .. } if signature.is_empty())
}

fn is_thinking(block: &Block) -> bool {
    matches!(block, Block::Thinking { .. } | Block::RedactedThinking { .. })
}

impl HistorySnapshot {
    /// The messages as JSON, comma-separated, in pieces to be sent one after the other.
    pub fn parts(&self) -> &[Bytes] {
        &self.parts
    }

    /// The messages read back. Cache marks are dropped.
    pub fn messages(&self) -> Vec<ApiMessage> {
        self.parts.iter().flat_map(|part| parse_messages(part)).collect()
    }

    /// The conversation in another dialect, in pieces. Only what was not frozen when it was last told is read and told
    /// again.
    pub(crate) fn translated(&self, way: ChatFormat, tell: impl Fn(&[ApiMessage]) -> TranslatedMessages) -> Vec<Arc<TranslatedMessages>> {
        let told = |(place, part): (usize, &Bytes)| {
            let fresh = || Arc::new(tell(&parse_messages(part)));
            match self.translations.get(place) {
                Some(kept) => Arc::clone(kept.slot(way).get_or_init(fresh)),
                None => fresh(),
            }
        };
        self.parts.iter().enumerate().map(told).collect()
    }
}

impl TranslationCache {
    fn slot(&self, way: ChatFormat) -> &OnceLock<Arc<TranslatedMessages>> {
        match way {
            ChatFormat::WithReasoning => &self.with_reasoning,
            ChatFormat::WithoutReasoning => &self.without_reasoning,
        }
    }
}

/// The messages of one part; it ends at a message, perhaps with a comma.
fn parse_messages(part: &[u8]) -> Vec<ApiMessage> {
    let messages = part.strip_suffix(b",").unwrap_or(part);
    serde_json::from_slice(&[b"[", messages, b"]"].concat()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(snapshot: &HistorySnapshot) -> serde_json::Value {
        let text: Vec<u8> = snapshot.parts().iter().flat_map(|part| part.iter().copied()).collect();
        serde_json::from_str(&format!("[{}]", String::from_utf8(text).unwrap())).unwrap()
    }

    fn marks(value: &serde_json::Value) -> usize {
        value.to_string().matches("cache_control").count()
    }

    #[test]
    fn blocks_of_one_side_are_joined_and_roles_alternate() {
        let mut history = History::new();
        history.push(Role::User, &Block::text("one"));
        history.push(Role::User, &Block::text("two"));
        history.push(Role::Assistant, &Block::text("three"));
        history.push(Role::User, &Block::text("four"));
        let roles: Vec<_> = history.messages().iter().map(|m| (m.role, m.content.len())).collect();
        assert_eq!(roles, [(Role::User, 2), (Role::Assistant, 1), (Role::User, 1)]);
    }

    #[test]
    fn whether_a_loop_thinks_is_known_until_it_ends() {
        let result = || Block::ToolResult { tool_use_id: "c".into(), content: None, is_error: None };
        let call = || Block::ToolUse { id: "c".into(), name: "Read".into(), input: serde_json::json!({}) };
        let thought = Block::Thinking { thinking: "hm".into(), signature: "s".into() };
        let mut history = History::new();
        history.push(Role::User, &Block::text("go"));
        assert_eq!(history.tool_loop_has_thinking(), None);
        history.push(Role::Assistant, &thought);
        history.push(Role::Assistant, &call());
        assert_eq!(history.tool_loop_has_thinking(), None, "no results yet");
        history.push(Role::User, &result());
        history.push(Role::User, &Block::text("by the way"));
        assert_eq!(history.tool_loop_has_thinking(), Some(true));
        history.drop_thinking();
        assert_eq!(history.tool_loop_has_thinking(), Some(false));
        assert!(!json(&history.snapshot()).to_string().contains("hm"));
        history.push(Role::Assistant, &Block::text("done"));
        history.push(Role::User, &Block::text("next"));
        assert_eq!(history.tool_loop_has_thinking(), None);
        for block in [thought, call()] {
            history.push(Role::Assistant, &block);
        }
        history.push(Role::User, &result());
        history.push(Role::Assistant, &call());
        history.push(Role::User, &result());
        assert_eq!(history.tool_loop_has_thinking(), Some(true), "one thought is enough for a chain");
        let before = history.messages();
        history.drop_unsigned_thinking();
        assert_eq!(history.messages(), before);
        history.push(Role::Assistant, &Block::Thinking { thinking: "ah".into(), signature: String::new() });
        history.push(Role::Assistant, &Block::text("end"));
        history.drop_unsigned_thinking();
        let told = json(&history.snapshot()).to_string();
        assert!(told.contains("hm") && !told.contains("ah") && told.contains("end"), "{told}");
    }

    #[test]
    fn what_is_not_kept_is_gone_and_the_rest_stands_as_it_was() {
        let thought = |text: &str| Block::Thinking { thinking: text.into(), signature: "s".into() };
        let mut history = History::new();
        for turn in 0..20 {
            history.push(Role::User, &Block::text(format!("{turn} {}", "x".repeat(9_000))));
            history.push(Role::Assistant, &thought("hm"));
            history.push(Role::Assistant, &Block::text("answer"));
        }
        let before = history.messages();
        history.retain(|_| true);
        assert_eq!(history.messages(), before);
        history.retain(|block| !matches!(block, Block::Thinking { .. }));
        let after = history.messages();
        assert_eq!(after.len(), before.len());
        assert!(after.iter().all(|message| message.content.len() == 1));
        assert_eq!(
            (after[0].clone(), after[1].content[0].clone()),
            (before[0].clone(), Block::text("answer"))
        );
    }

    #[test]
    fn a_request_carries_at_most_two_marks_and_a_byte_equal_prefix_without_them() {
        let mut history = History::new();
        let mut before = String::new();
        for turn in 0..40 {
            history.push(Role::User, &Block::text(format!("{turn} {}", "x".repeat(9_000))));
            let value = json(&history.snapshot());
            assert!(marks(&value) <= 2, "turn {turn}: {}", marks(&value));
            assert!(value.as_array().unwrap().last().unwrap().to_string().contains("cache_control"));
            let bare = value.to_string().replace(CACHE_CONTROL, "");
            let bare = bare.trim_end_matches("]}]");
            assert!(bare.starts_with(&before), "turn {turn}");
            before = bare.to_owned();
            history.push(Role::Assistant, &Block::text("ok"));
        }
    }

    #[test]
    fn what_was_written_is_not_written_again() {
        let mut history = History::new();
        let mut known: Vec<*const u8> = Vec::new();
        for number in 0..2_000 {
            history.push(Role::User, &Block::text(format!("{number} {}", "x".repeat(300))));
            history.push(Role::Assistant, &Block::text("y"));
            let request = history.snapshot();
            let (tail, frozen) = request.parts().split_last().unwrap();
            assert!(tail.len() < FREEZE_THRESHOLD + 2_000, "{} bytes are copied", tail.len());
            let places: Vec<*const u8> = frozen.iter().map(|part| part.as_ptr()).collect();
            assert_eq!(places[..known.len()], known, "what is frozen stays where it is");
            known = places;
        }
        assert!(known.len() > 5, "little was frozen");
    }

    #[test]
    fn what_was_said_last_is_found_by_its_beginning() {
        let long = "x".repeat(FREEZE_THRESHOLD);
        let rows: [(&[&str], _); 5] = [
            (&[], None),
            (&["say \"on\"", "of course"], None),
            (&["\"on\"\nnow", "words"], Some(0)),
            (&["\"on\"", "off", "words about \"on\""], Some(1)),
            (&["\"on\"", &long, "off", &long, "more", "words"], Some(1)),
        ];
        for (said, expected) in rows {
            let mut history = History::new();
            for (number, text) in said.iter().enumerate() {
                let role = if number % 2 == 0 { Role::User } else { Role::Assistant };
                history.push(role, &Block::text(*text));
            }
            assert_eq!(history.find_last_text(&["\"on\"", "off"]), expected, "{}", said.len());
        }
    }

    #[test]
    fn an_empty_conversation_is_an_empty_list() {
        assert_eq!(json(&History::new().snapshot()), serde_json::json!([]));
        assert!(History::new().is_empty());
    }
}
