//! What stands inside a message: content blocks, usage, stop reasons. The shapes are those of the Messages API.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The person or host, and every tool result.
    User,
    /// The model.
    Assistant,
}

/// One piece of a message. A kind that we do not know is kept whole in [`Block::Other`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Block {
    /// Plain text.
    Text {
        /// The text.
        text: String,
        /// Sources, where the model cites.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        citations: Option<Value>,
    },
    /// The model's reasoning, signed so that it can be sent back.
    Thinking {
        /// The reasoning text; may be empty when the provider hides it.
        thinking: String,
        /// Proof that the text came from the model.
        #[serde(default)]
        signature: String,
    },
    /// Reasoning that only the provider can read.
    RedactedThinking {
        /// Opaque data to send back unchanged.
        data: String,
    },
    /// A call that the model wants made.
    ToolUse {
        /// Names the call; its result must carry the same id.
        id: String,
        /// The tool.
        name: String,
        /// The tool's input.
        input: Value,
    },
    /// The answer to a call.
    ToolResult {
        /// The call that is answered.
        tool_use_id: String,
        /// What the model reads.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        content: Option<ResultContent>,
        /// Whether the call failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        is_error: Option<bool>,
    },
    /// A picture.
    Image {
        /// Where its bytes are.
        source: Source,
    },
    /// A document, e.g. a PDF.
    Document {
        /// Where its bytes are.
        source: Source,
        /// Its title.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
    },
    /// Any other kind, kept as it came.
    #[serde(untagged)]
    Other(Map<String, Value>),
}

impl Block {
    /// A text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into(), citations: None }
    }
}

/// What a tool result holds: a plain string or blocks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ResultContent {
    /// Plain text.
    Text(String),
    /// Text and pictures.
    Blocks(Vec<Block>),
}

impl From<String> for ResultContent {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// Where the bytes of a picture or document are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Source {
    /// In line, in base64.
    Base64 {
        /// The MIME type.
        media_type: String,
        /// The bytes, in base64.
        data: String,
    },
    /// At an address.
    Url {
        /// The address.
        url: String,
    },
    /// In line, as text.
    Text {
        /// The MIME type, `text/plain`.
        media_type: String,
        /// The text.
        data: String,
    },
    /// Uploaded before.
    File {
        /// The provider's id of the file.
        file_id: String,
    },
}

/// The content of a message: a plain string or blocks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Content {
    /// Plain text.
    Text(String),
    /// Blocks.
    Blocks(Vec<Block>),
}

impl Content {
    /// The content as blocks, whichever form it has.
    pub fn into_blocks(self) -> Vec<Block> {
        match self {
            Self::Text(text) => vec![Block::text(text)],
            Self::Blocks(blocks) => blocks,
        }
    }

    /// All text of the content, pieces joined by a newline.
    pub fn joined_text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Blocks(blocks) => {
                let texts = blocks.iter().filter_map(|block| match block {
                    Block::Text { text, .. } => Some(text.as_str()),
                    _ => None,
                });
                texts.collect::<Vec<_>>().join("\n")
            }
        }
    }
}

/// Why the model stopped. A reason that we do not know is kept as text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The model had finished.
    EndTurn,
    /// The output limit was reached.
    MaxTokens,
    /// A stop sequence appeared.
    StopSequence,
    /// The model waits for tool results.
    ToolUse,
    /// The provider paused a long turn; ask again to go on.
    PauseTurn,
    /// The model declined.
    Refusal,
    /// The input and output together reached the context window.
    ModelContextWindowExceeded,
    /// Anything newer.
    #[serde(untagged)]
    Other(String),
}

/// Tokens spent on one reply, or summed over several. Missing figures count as zero.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// Tokens read at the full price.
    #[serde(default, deserialize_with = "count")]
    pub input_tokens: u64,
    /// Tokens written to the cache.
    #[serde(default, deserialize_with = "count")]
    pub cache_creation_input_tokens: u64,
    /// Tokens read from the cache.
    #[serde(default, deserialize_with = "count")]
    pub cache_read_input_tokens: u64,
    /// Tokens the model wrote.
    #[serde(default, deserialize_with = "count")]
    pub output_tokens: u64,
    /// Calls of the provider's own tools.
    #[serde(default, deserialize_with = "or_default")]
    pub server_tool_use: ServerToolUse,
    /// The service tier that answered.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub service_tier: String,
    /// The cache writes by life time.
    #[serde(default, deserialize_with = "or_default")]
    pub cache_creation: CacheCreation,
}

/// Calls of tools that run at the provider.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServerToolUse {
    /// Web searches.
    #[serde(default, deserialize_with = "count")]
    pub web_search_requests: u64,
    /// Page fetches.
    #[serde(default, deserialize_with = "count")]
    pub web_fetch_requests: u64,
}

/// Cache writes by life time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CacheCreation {
    /// Kept for an hour.
    #[serde(default, deserialize_with = "count")]
    pub ephemeral_1h_input_tokens: u64,
    /// Kept for five minutes.
    #[serde(default, deserialize_with = "count")]
    pub ephemeral_5m_input_tokens: u64,
}

/// Reads a token count leniently: null, negative, fractional or absurd values become zero or the nearest count.
fn count<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let number = Option::<serde_json::Number>::deserialize(deserializer)?;
    Ok(number.map_or(0, |n| n.as_u64().unwrap_or_else(|| n.as_f64().map_or(0, |f| f.max(0.0) as u64))))
}

/// Reads null as the default.
fn or_default<'de, D: serde::Deserializer<'de>, T: Default + Deserialize<'de>>(d: D) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(d)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn blocks_of_a_known_and_an_unknown_kind_survive_a_round_trip() {
        for block in [
            json!({"type": "text", "text": "hi"}),
            json!({"type": "tool_use", "id": "t1", "name": "Bash", "input": {"z": 1, "a": 2}}),
            json!({"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "x"}], "is_error": true}),
            json!({"type": "brand_new", "anything": [1, 2, {"x": null}]}),
        ] {
            let read: Block = serde_json::from_value(block.clone()).unwrap();
            assert_eq!(serde_json::to_value(&read).unwrap(), block);
        }
    }

    #[test]
    fn strange_usage_figures_are_never_an_error() {
        let usage: Usage =
            serde_json::from_value(json!({"input_tokens": -5, "output_tokens": 2.7, "cache_read_input_tokens": null}))
                .unwrap();
        assert_eq!((usage.input_tokens, usage.output_tokens, usage.cache_read_input_tokens), (0, 2, 0));
    }

    #[test]
    fn an_unknown_stop_reason_is_kept() {
        let reason: StopReason = serde_json::from_value(json!("moon_phase")).unwrap();
        assert_eq!(reason, StopReason::Other("moon_phase".into()));
        assert_eq!(serde_json::from_value::<StopReason>(json!("end_turn")).unwrap(), StopReason::EndTurn);
    }
}
