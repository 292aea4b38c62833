//! The conversation as JSON bytes. Each block is serialized once; requests share what was serialized before.
//!
//! Consecutive messages of one role are joined, so roles always alternate. The last message stays open for further
//! blocks until the other role follows.

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use serde::Deserialize;
use whimbrel_wire::content::ResultContent;
use whimbrel_wire::{Block, Role};

use crate::prompt_cache::{self, MarkedTail};

/// Size from which finished messages are frozen and shared instead of being copied into each request.
const FREEZE_THRESHOLD: usize = 64 * 1024;

/// A conversation under construction.
#[derive(Debug, Default, Clone)]
pub struct History {
    /// Finished messages; each part ends at a message boundary, comma included.
    frozen: Vec<FrozenPart>,
    /// The rest: whole messages, and the open one without its closing brackets.
    tail: Vec<u8>,
    /// Role of the open message.
    last_role: Option<Role>,
    /// Whether there is any assistant message.
    has_reply: bool,
    /// Whether the assistant message that started the current tool loop begins with thinking.
    loop_has_thinking: bool,
    /// Whether the last user message begins with tool results, so that the tool loop continues.
    in_tool_loop: bool,
    /// End of the last request in `tail`, where its cache breakpoint is set again.
    last_request_end: Option<usize>,
}

/// Finished messages that no longer change.
#[derive(Debug, Clone)]
struct FrozenPart {
    json: Bytes,
    translations: Arc<TranslationCache>,
}

/// Translations of a frozen part into other dialects, computed once and kept with the part.
#[derive(Debug, Default)]
struct TranslationCache {
    with_reasoning: OnceLock<Arc<TranslatedMessages>>,
    without_reasoning: OnceLock<Arc<TranslatedMessages>>,
}

/// Dialect variant into which a conversation is translated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChatFormat {
    /// Chat Completions for models that receive their reasoning again.
    WithReasoning,
    /// Chat Completions without earlier reasoning.
    WithoutReasoning,
}

/// A part of a conversation in another dialect.
#[derive(Debug, Default)]
pub(crate) struct TranslatedMessages {
    /// The messages as JSON, each preceded by a comma.
    pub(crate) json: Bytes,
    /// Ids of the tool calls in the part.
    pub(crate) calls: HashSet<String>,
}

/// The conversation of one request. Cheap to clone.
#[derive(Debug, Clone)]
pub struct HistorySnapshot {
    parts: Vec<Bytes>,
    /// Where the cache breakpoints of the last part begin.
    marks: Vec<usize>,
    /// One cache per part, except for the last part, which is not frozen.
    translations: Vec<Arc<TranslationCache>>,
}

/// One message, parsed back from the JSON.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct ApiMessage {
    pub role: Role,
    pub content: Vec<Block>,
}

impl History {
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a block to the open message if the role is the same, else starts a new message.
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
        let failed_result = without_error_flag(block);
        // Cannot fail: a vector accepts all bytes, and blocks have only string keys.
        let _ = serde_json::to_writer(&mut self.tail, failed_result.as_ref().unwrap_or(block));
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

    /// Role of the last message.
    pub fn last_role(&self) -> Option<Role> {
        self.last_role
    }

    /// Returns true if the conversation has an assistant message.
    pub fn has_reply(&self) -> bool {
        self.has_reply
    }

    /// Returns whether the current tool loop began with thinking; `None` if the last message is not a tool result.
    /// Models need not think again between the calls of one loop.
    pub fn tool_loop_has_thinking(&self) -> Option<bool> {
        (self.last_role == Some(Role::User) && self.in_tool_loop).then_some(self.loop_has_thinking)
    }

    /// Drops all thinking blocks.
    pub fn drop_thinking(&mut self) {
        self.retain(|block| !is_thinking(block));
    }

    /// Drops thinking blocks without a signature.
    pub fn drop_unsigned_thinking(&mut self) {
        self.retain(|block| !is_unsigned_thinking(block));
    }

    /// Returns true if there are no messages.
    pub fn is_empty(&self) -> bool {
        self.last_role.is_none()
    }

    /// Size of the conversation as JSON, in bytes.
    pub fn size(&self) -> usize {
        self.frozen.iter().map(|part| part.json.len()).sum::<usize>() + self.tail.len()
    }

    /// Returns the conversation for one request, with cache breakpoints at its end and at the end of the previous
    /// request.
    pub fn snapshot(&mut self) -> HistorySnapshot {
        let MarkedTail { json: mut tail, marks } =
            prompt_cache::mark_tail(&self.tail, self.last_request_end, self.last_role);
        if self.last_role.is_some() {
            tail.extend_from_slice(b"]}");
        }
        self.last_request_end = (self.last_role == Some(Role::User)).then_some(self.tail.len());
        let frozen = self.frozen.iter();
        HistorySnapshot {
            parts: frozen.clone().map(|part| part.json.clone()).chain([Bytes::from(tail)]).collect(),
            marks,
            translations: frozen.map(|part| Arc::clone(&part.translations)).collect(),
        }
    }

    /// Drops all blocks that do not satisfy `keep`. Everything is serialized again, which invalidates prompt caches.
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

    /// Parses the conversation back, without cache breakpoints.
    pub fn messages(&self) -> Vec<ApiMessage> {
        let mut copy = self.clone();
        copy.last_role = copy.last_role.map(|_| Role::Assistant);
        copy.last_request_end = None;
        copy.snapshot().messages()
    }
}

/// Returns true for thinking without a signature.
pub fn is_unsigned_thinking(block: &Block) -> bool {
    matches!(block, Block::Thinking { signature, .. } if signature.is_empty())
}

/// A failed result with images, without its error flag: the Messages API accepts only text in a result that has the flag.
/// A sentence takes its place. `None` for all other blocks.
fn without_error_flag(block: &Block) -> Option<Block> {
    let Block::ToolResult { tool_use_id, content: Some(ResultContent::Blocks(blocks)), is_error: Some(true) } =
        block
    else {
        return None;
    };
    if blocks.iter().all(|block| matches!(block, Block::Text { .. })) {
        return None;
    }
    let content = std::iter::once(Block::text("The call failed.")).chain(blocks.iter().cloned()).collect();
    Some(Block::ToolResult {
        tool_use_id: tool_use_id.clone(),
        content: Some(ResultContent::Blocks(content)),
        is_error: None,
    })
}

fn is_thinking(block: &Block) -> bool {
    matches!(block, Block::Thinking { .. } | Block::RedactedThinking { .. })
}

impl HistorySnapshot {
    /// The messages as comma-separated JSON, in parts to be sent in order.
    pub fn parts(&self) -> &[Bytes] {
        &self.parts
    }

    /// The same without cache breakpoints. Only the last part has any.
    pub(crate) fn unmarked_parts(&self) -> Vec<Bytes> {
        let mut parts = self.parts.clone();
        if let Some(last) = parts.last_mut() {
            *last = prompt_cache::remove_marks(last, &self.marks).into();
        }
        parts
    }

    /// Parses the messages back. Cache breakpoints are dropped.
    pub fn messages(&self) -> Vec<ApiMessage> {
        self.parts.iter().flat_map(|part| parse_messages(part)).collect()
    }

    /// Returns the conversation in another dialect, part by part. Frozen parts are translated once and cached.
    pub(crate) fn translated(
        &self,
        format: ChatFormat,
        translate: impl Fn(&[ApiMessage]) -> TranslatedMessages,
    ) -> Vec<Arc<TranslatedMessages>> {
        let translated = |(index, part): (usize, &Bytes)| {
            let translate_now = || Arc::new(translate(&parse_messages(part)));
            match self.translations.get(index) {
                Some(cache) => Arc::clone(cache.slot(format).get_or_init(translate_now)),
                None => translate_now(),
            }
        };
        self.parts.iter().enumerate().map(translated).collect()
    }
}

impl TranslationCache {
    fn slot(&self, format: ChatFormat) -> &OnceLock<Arc<TranslatedMessages>> {
        match format {
            ChatFormat::WithReasoning => &self.with_reasoning,
            ChatFormat::WithoutReasoning => &self.without_reasoning,
        }
    }
}

/// Parses the messages of one part, which ends at a message, possibly with a comma.
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
    fn blocks_of_one_role_are_joined() {
        let mut history = History::new();
        history.push(Role::User, &Block::text("one"));
        history.push(Role::User, &Block::text("two"));
        history.push(Role::Assistant, &Block::text("three"));
        history.push(Role::User, &Block::text("four"));
        let roles: Vec<_> = history.messages().iter().map(|m| (m.role, m.content.len())).collect();
        assert_eq!(roles, [(Role::User, 2), (Role::Assistant, 1), (Role::User, 1)]);
    }

    #[test]
    fn failed_result_with_image_loses_its_error_flag() {
        let image = serde_json::json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QQ=="}});
        let text = serde_json::json!({"type": "text", "text": "why"});
        let note = serde_json::json!({"type": "text", "text": "The call failed."});
        let rows = [
            ("text", serde_json::json!([text]), serde_json::json!([text]), true),
            ("image", serde_json::json!([text, image]), serde_json::json!([note, text, image]), false),
        ];
        for (name, content, expected, has_flag) in rows {
            let result = serde_json::json!({"type": "tool_result", "tool_use_id": "c", "content": content, "is_error": true});
            let mut history = History::new();
            history.push(Role::User, &serde_json::from_value(result).unwrap());
            let sent = json(&history.snapshot())[0]["content"][0].clone();
            assert_eq!((&sent["content"], sent["is_error"] == true), (&expected, has_flag), "{name}");
        }
    }

    #[test]
    fn tool_loop_knows_whether_it_began_with_thinking() {
        let result = || Block::ToolResult { tool_use_id: "c".into(), content: None, is_error: None };
        let call = || Block::ToolUse { id: "c".into(), name: "Read".into(), input: serde_json::json!({}) };
        let thinking = Block::Thinking { thinking: "hm".into(), signature: "s".into() };
        let mut history = History::new();
        history.push(Role::User, &Block::text("go"));
        assert_eq!(history.tool_loop_has_thinking(), None);
        history.push(Role::Assistant, &thinking);
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
        for block in [thinking, call()] {
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
        let translated = json(&history.snapshot()).to_string();
        assert!(
            translated.contains("hm") && !translated.contains("ah") && translated.contains("end"),
            "{translated}"
        );
    }

    #[test]
    fn retain_drops_blocks_and_keeps_the_rest_unchanged() {
        let thinking = |text: &str| Block::Thinking { thinking: text.into(), signature: "s".into() };
        let mut history = History::new();
        for turn in 0..20 {
            history.push(Role::User, &Block::text(format!("{turn} {}", "x".repeat(9_000))));
            history.push(Role::Assistant, &thinking("hm"));
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
    fn request_has_two_cache_breakpoints_and_a_stable_prefix() {
        let mut history = History::new();
        let mut before = String::new();
        for turn in 0..40 {
            history.push(Role::User, &Block::text(format!("{turn} {}", "x".repeat(9_000))));
            let value = json(&history.snapshot());
            assert!(marks(&value) <= 2, "turn {turn}: {}", marks(&value));
            assert!(value.as_array().unwrap().last().unwrap().to_string().contains("cache_control"));
            let bare = value.to_string().replace(prompt_cache::CACHE_CONTROL, "");
            let bare = bare.trim_end_matches("]}]");
            assert!(bare.starts_with(&before), "turn {turn}");
            before = bare.to_owned();
            history.push(Role::Assistant, &Block::text("ok"));
        }
    }

    #[test]
    fn frozen_parts_are_shared_not_copied() {
        let mut history = History::new();
        let mut known: Vec<*const u8> = Vec::new();
        for number in 0..2_000 {
            history.push(Role::User, &Block::text(format!("{number} {}", "x".repeat(300))));
            history.push(Role::Assistant, &Block::text("y"));
            let request = history.snapshot();
            let (tail, frozen) = request.parts().split_last().unwrap();
            assert!(tail.len() < FREEZE_THRESHOLD + 2_000, "{} bytes are copied", tail.len());
            let addresses: Vec<*const u8> = frozen.iter().map(|part| part.as_ptr()).collect();
            assert_eq!(addresses[..known.len()], known, "what is frozen stays where it is");
            known = addresses;
        }
        assert!(known.len() > 5, "little was frozen");
    }

    #[test]
    fn empty_conversation_is_an_empty_list() {
        assert_eq!(json(&History::new().snapshot()), serde_json::json!([]));
        assert!(History::new().is_empty());
    }
}
