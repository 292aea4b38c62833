//! One line of a recording, and how requests are compared.

use serde::{Deserialize, Serialize};
use whimbrel_wire::{Block, RawJson, Role};

use super::ids;
use crate::error::{ModelError, ModelErrorKind};
use crate::history::ApiMessage;
use crate::request::Request;

/// How much of a message is kept for people to see.
const EXCERPT_CHARS: usize = 160;

/// How much of a message is kept to find out where another one differs.
const MAX_TEXT_BYTES: usize = 32_000;

/// One attempt at a reply.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct RecordedStep {
    /// Which one, from 1.
    pub(super) step: usize,
    /// The model that was asked.
    pub(super) model: String,
    /// What it was asked.
    pub(super) asked: Vec<MessageOutline>,
    /// What came, in the form of the Messages API.
    pub(super) events: Vec<RawJson>,
    /// How it failed, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) fault: Option<RecordedError>,
}

/// A message in short: enough to tell it from another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct MessageOutline {
    pub(super) role: Role,
    /// A number made of all its bytes but moments and ids that were drawn.
    pub(super) digest: String,
    /// Its beginning.
    pub(super) begins: String,
    /// What that number is made of, or the beginning of that. A recording has it once for each message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) text: Option<String>,
    /// The ids in it that were drawn, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) ids: Vec<String>,
}

impl MessageOutline {
    /// Whether another one says the same, but for ids that were drawn.
    pub(super) fn is_same_message(&self, other: &Self) -> bool {
        (self.role, &self.digest) == (other.role, &other.digest)
    }
}

/// A fault as it is kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct RecordedError {
    kind: String,
    #[serde(default)]
    status: Option<u16>,
    message: String,
    /// Whether nobody wanted to hear more of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) left: bool,
}

/// Two outlines of one length of a message, from a little before they differ, in words for people.
pub(super) fn excerpt_difference(then: &str, now: &str) -> (String, String) {
    let same = then.bytes().zip(now.bytes()).take_while(|(then, now)| then == now).count();
    let excerpt = |text: &str| {
        let from = text.floor_char_boundary(same.saturating_sub(EXCERPT_CHARS / 4));
        let shown: String = text[from..].chars().take(EXCERPT_CHARS).collect();
        let (before, after) = (from > 0, from + shown.len() < text.len());
        format!("{}{shown}{}", if before { "... " } else { "" }, if after { " ..." } else { "" })
    };
    (excerpt(then), excerpt(now))
}

/// A request in short. Reminders are left out: they tell the day, which is another one when a recording is played. So is
/// thinking: it is signed, so it is played as it was, with the ids of then.
pub(super) fn outline_request(request: &Request) -> Vec<MessageOutline> {
    request.history.messages().iter().map(outline_message).collect()
}

fn outline_message(message: &ApiMessage) -> MessageOutline {
    let told = |block: &&Block| match block {
        Block::Text { text, .. } => !text.starts_with("<system-reminder>"),
        Block::Thinking { .. } | Block::RedactedThinking { .. } => false,
        _ => true,
    };
    let mut blocks: Vec<&Block> = message.content.iter().filter(told).collect();
    // Of calls that were made side by side, any may have ended first.
    blocks.sort_by_key(|block| match block {
        Block::ToolResult { tool_use_id, .. } => (0, tool_use_id.as_str()),
        _ => (1, ""),
    });
    let json = serde_json::to_value(&blocks).unwrap_or_default();
    let begins = json.to_string().chars().take(EXCERPT_CHARS).collect();
    let (json, ids) = ids::normalize(json);
    let mut text = json.to_string();
    let digest = digest(&text);
    text.truncate(text.floor_char_boundary(MAX_TEXT_BYTES));
    MessageOutline { role: message.role, digest, begins, text: Some(text), ids }
}

/// FNV-1a: the same everywhere and always, which is all that is asked of it.
fn digest(text: &str) -> String {
    let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    format!("{:016x}", text.bytes().fold(0xcbf2_9ce4_8422_2325, mix))
}

impl RecordedError {
    pub(super) fn from_error(fault: &ModelError) -> Self {
        let kind = format!("{:?}", fault.kind);
        Self { kind, status: fault.status, message: fault.message.clone(), left: false }
    }

    /// A reply that was not heard to its end.
    pub(super) fn abandoned() -> Self {
        let fault = ModelError::new(ModelErrorKind::Cut, "The reply was not heard to its end.");
        Self { left: true, ..Self::from_error(&fault) }
    }

    /// The fault as it is played: what was waited for then is not waited for again.
    pub(super) fn to_error(&self) -> ModelError {
        let snake: String = self.kind.chars().enumerate().fold(String::new(), |mut snake, (at, letter)| {
            if at > 0 && letter.is_ascii_uppercase() {
                snake.push('_');
            }
            snake.push(letter.to_ascii_lowercase());
            snake
        });
        let kind = serde_json::from_value(snake.into()).unwrap_or(ModelErrorKind::Server);
        ModelError {
            status: self.status,
            retry_after: Some(std::time::Duration::ZERO),
            ..ModelError::new(kind, self.message.clone())
        }
    }
}
