//! One line of a recording, and the comparison of requests.

use serde::{Deserialize, Serialize};
use whimbrel_wire::{Block, RawJson, Role};

use super::normalize::normalize;
use crate::error::{ModelError, ModelErrorKind};
use crate::history::ApiMessage;
use crate::request::Request;

/// Length of message excerpts for the user.
const EXCERPT_CHARS: usize = 160;

/// Length of the message text that is stored to locate a difference.
const MAX_TEXT_BYTES: usize = 32_000;

/// One recorded attempt at a reply.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct RecordedStep {
    /// Number of the step, starting at 1.
    pub(super) step: usize,
    /// The requested model.
    pub(super) model: String,
    /// Outline of the request, one entry per message.
    #[serde(rename = "asked")]
    pub(super) messages: Vec<MessageOutline>,
    /// The events, in the form of the Messages API.
    pub(super) events: Vec<RawJson>,
    /// The error that ended the reply.
    #[serde(rename = "fault", default, skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<RecordedError>,
}

/// Outline of a message, sufficient to compare it with another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct MessageOutline {
    pub(super) role: Role,
    /// Hash of the normalized message: without timestamps and random ids.
    pub(super) digest: String,
    /// Beginning of the message.
    #[serde(rename = "begins")]
    pub(super) excerpt: String,
    /// The normalized message, truncated. Stored once per message in a recording.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) text: Option<String>,
    /// Random ids of the message, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) ids: Vec<String>,
}

impl MessageOutline {
    /// Returns true if the messages are the same apart from random ids.
    pub(super) fn is_same_message(&self, other: &Self) -> bool {
        (self.role, &self.digest) == (other.role, &other.digest)
    }
}

/// An error as stored in a recording.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct RecordedError {
    kind: String,
    #[serde(default)]
    status: Option<u16>,
    message: String,
    /// Whether the reply was dropped before its end.
    #[serde(rename = "left", default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) abandoned: bool,
}

/// Excerpts of two texts, starting shortly before they differ.
pub(super) fn excerpt_difference(recorded: &str, current: &str) -> (String, String) {
    let same =
        recorded.bytes().zip(current.bytes()).take_while(|(recorded, current)| recorded == current).count();
    let excerpt = |text: &str| {
        let from = text.floor_char_boundary(same.saturating_sub(EXCERPT_CHARS / 4));
        let shown: String = text[from..].chars().take(EXCERPT_CHARS).collect();
        let (before, after) = (from > 0, from + shown.len() < text.len());
        format!("{}{shown}{}", if before { "... " } else { "" }, if after { " ..." } else { "" })
    };
    (excerpt(recorded), excerpt(current))
}

/// Outlines a request. System reminders are left out because they contain the date. Thinking is left out because it is
/// signed and therefore replayed with the recorded ids.
pub(super) fn outline_request(request: &Request) -> Vec<MessageOutline> {
    request.history.messages().iter().map(outline_message).collect()
}

fn outline_message(message: &ApiMessage) -> MessageOutline {
    let is_compared = |block: &&Block| match block {
        Block::Text { text, .. } => !text.starts_with("<system-reminder>"),
        Block::Thinking { .. } | Block::RedactedThinking { .. } => false,
        _ => true,
    };
    let mut blocks: Vec<&Block> = message.content.iter().filter(is_compared).collect();
    // Parallel tool calls may finish in any order.
    blocks.sort_by_key(|block| match block {
        Block::ToolResult { tool_use_id, .. } => (0, tool_use_id.as_str()),
        _ => (1, ""),
    });
    let json = serde_json::to_value(&blocks).unwrap_or_default();
    let begins = json.to_string().chars().take(EXCERPT_CHARS).collect();
    let (json, ids) = normalize(json);
    let mut text = json.to_string();
    let digest = digest(&text);
    text.truncate(text.floor_char_boundary(MAX_TEXT_BYTES));
    MessageOutline { role: message.role, digest, excerpt: begins, text: Some(text), ids }
}

/// FNV-1a hash: stable across platforms and versions.
fn digest(text: &str) -> String {
    let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    format!("{:016x}", text.bytes().fold(0xcbf2_9ce4_8422_2325, mix))
}

impl RecordedError {
    pub(super) fn from_error(error: &ModelError) -> Self {
        let kind = format!("{:?}", error.kind);
        Self { kind, status: error.status, message: error.message.clone(), abandoned: false }
    }

    /// A reply that was dropped before its end.
    pub(super) fn abandoned() -> Self {
        let error = ModelError::new(ModelErrorKind::Cut, "The reply was abandoned before its end.");
        Self { abandoned: true, ..Self::from_error(&error) }
    }

    /// The error for the replay, with a retry delay of zero.
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn recording_keeps_its_field_names() {
        let outline = outline_message(&ApiMessage { role: Role::User, content: vec![Block::text("Go.")] });
        let outline: Value = serde_json::to_value(outline).unwrap();
        assert!(outline["begins"].as_str().is_some_and(|text| text.contains("Go.")), "{outline}");
        assert_eq!(serde_json::to_value(RecordedError::abandoned()).unwrap()["left"], json!(true));
    }
}
