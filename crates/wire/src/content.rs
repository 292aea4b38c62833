//! Content blocks, usage and stop reasons, in the format of the Messages API.

use std::fmt;

use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::lenient::{count, from_fields, or_default};

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The person or host, and every tool result.
    User,
    /// The model.
    Assistant,
}

/// Lists the block types once: name on the wire, variant, fields. The public enum also keeps unknown blocks. The
/// private structs are for reading, so that a known type with an invalid field is an error and not an unknown block.
macro_rules! blocks {
    ($($(#[$note:meta])* $kind:literal => $variant:ident {
        $($(#[$about:meta])* $field:ident: $type:ty,)*
    },)*) => {
        /// One piece of a message. A kind that we do not know is kept whole in [`Block::Other`].
        #[derive(Debug, Clone, PartialEq, Serialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(tag = "type")]
        #[non_exhaustive]
        pub enum Block {
            $($(#[$note])* #[serde(rename = $kind)] $variant { $($(#[$about])* $field: $type,)* },)*
            /// Any other kind, kept as it came.
            #[serde(untagged)]
            Other(Map<String, Value>),
        }

        $(#[derive(Deserialize)]
        struct $variant { $($(#[$about])* $field: $type,)* })*

        impl Block {
            fn from_fields(fields: Map<String, Value>) -> Result<Self, String> {
                match fields.get("type").and_then(Value::as_str) {
                    $(Some($kind) if has_known_source(&fields) => {
                        let $variant { $($field,)* } = from_fields(fields)?;
                        Ok(Self::$variant { $($field,)* })
                    })*
                    Some(_) => Ok(Self::Other(fields)),
                    None => Err("type: missing or not a string".into()),
                }
            }
        }
    };
}

blocks! {
    /// Plain text.
    "text" => Text {
        /// The text.
        text: String,
        /// Sources, where the model cites.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        citations: Option<Value>,
    },
    /// The model's reasoning, signed so that it can be sent back.
    "thinking" => Thinking {
        /// The reasoning text; may be empty when the provider hides it.
        thinking: String,
        /// Proof that the text came from the model.
        #[serde(default)]
        signature: String,
    },
    /// Reasoning that only the provider can read.
    "redacted_thinking" => RedactedThinking {
        /// Opaque data to send back unchanged.
        data: String,
    },
    /// A call that the model wants made.
    "tool_use" => ToolUse {
        /// Names the call; its result must carry the same id.
        id: String,
        /// The tool.
        name: String,
        /// The tool's input.
        input: Value,
    },
    /// The answer to a call.
    "tool_result" => ToolResult {
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
    "image" => Image {
        /// Where its bytes are.
        source: Source,
    },
    /// A document, e.g. a PDF.
    "document" => Document {
        /// Where its bytes are.
        source: Source,
        /// Its title.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
    },
}

/// Returns false for an image or document with an unknown source type: the whole block then counts as unknown.
fn has_known_source(fields: &Map<String, Value>) -> bool {
    if !matches!(fields.get("type").and_then(Value::as_str), Some("image" | "document")) {
        return true;
    }
    let kind = fields.get("source").and_then(|source| source.get("type")).and_then(Value::as_str);
    kind.is_none_or(|kind| matches!(kind, "base64" | "url" | "text" | "file"))
}

impl<'de> Deserialize<'de> for Block {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_fields(Map::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

impl Block {
    /// Creates a text block without citations.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into(), citations: None }
    }
}

/// What a tool result holds: a plain string or blocks.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Content {
    /// Plain text.
    Text(String),
    /// Blocks.
    Blocks(Vec<Block>),
}

impl Content {
    /// Converts the content to blocks; a plain string becomes one text block.
    pub fn into_blocks(self) -> Vec<Block> {
        match self {
            Self::Text(text) => vec![Block::text(text)],
            Self::Blocks(blocks) => blocks,
        }
    }

    /// Joins the texts of all text blocks with newlines.
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

/// Deserializes a string or a list of blocks by its JSON type, so that an error names the invalid block.
struct TextOrBlocks;

impl<'de> Visitor<'de> for TextOrBlocks {
    type Value = Content;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or a list of content blocks")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Content, E> {
        Ok(Content::Text(text.into()))
    }

    fn visit_string<E: serde::de::Error>(self, text: String) -> Result<Content, E> {
        Ok(Content::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Content, A::Error> {
        let mut blocks = Vec::new();
        while let Some(block) = list.next_element()? {
            blocks.push(block);
        }
        Ok(Content::Blocks(blocks))
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextOrBlocks)
    }
}

impl<'de> Deserialize<'de> for ResultContent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match Content::deserialize(deserializer)? {
            Content::Text(text) => Self::Text(text),
            Content::Blocks(blocks) => Self::Blocks(blocks),
        })
    }
}

/// Why the model stopped. A reason that we do not know is kept as text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    /// Where in the world it was answered, where the provider says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inference_geo: Option<Box<str>>,
    /// The steps that the provider took for it, in its own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iterations: Option<Box<Value>>,
    /// How fast it was to be answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed: Option<Box<str>>,
}

impl Usage {
    /// Sum of input, cache and output tokens.
    pub fn total(&self) -> u64 {
        let read = self.input_tokens.saturating_add(self.cache_creation_input_tokens);
        read.saturating_add(self.cache_read_input_tokens).saturating_add(self.output_tokens)
    }

    /// Takes over the text fields of later figures where they are set. Counters are left alone.
    pub fn merge_text_fields(&mut self, later: &Self) {
        if !later.service_tier.is_empty() {
            self.service_tier.clone_from(&later.service_tier);
        }
        replace_if_some(&mut self.inference_geo, &later.inference_geo);
        replace_if_some(&mut self.iterations, &later.iterations);
        replace_if_some(&mut self.speed, &later.speed);
    }
}

fn replace_if_some<T: Clone>(word: &mut Option<T>, later: &Option<T>) {
    if later.is_some() {
        word.clone_from(later);
    }
}

/// Calls of tools that run at the provider.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ServerToolUse {
    /// Web searches.
    #[serde(default, deserialize_with = "count")]
    pub web_search_requests: u64,
    /// Page fetches.
    #[serde(default, deserialize_with = "count")]
    pub web_fetch_requests: u64,
}

/// Cache writes by life time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CacheCreation {
    /// Kept for an hour.
    #[serde(default, deserialize_with = "count")]
    pub ephemeral_1h_input_tokens: u64,
    /// Kept for five minutes.
    #[serde(default, deserialize_with = "count")]
    pub ephemeral_5m_input_tokens: u64,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn known_and_unknown_blocks_round_trip() {
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
    fn invalid_field_of_a_known_block_is_named() {
        for (block, field) in [
            (json!({"type": "text", "text": 5}), "text"),
            (json!({"type": "tool_use", "id": "t1", "name": "Bash"}), "input"),
            (json!({"type": "image", "source": {"type": "base64", "data": "x"}}), "media_type"),
            (json!({"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text"}]}), "content[0]"),
            (json!({"text": "x"}), "type"),
        ] {
            let error = serde_json::from_value::<Block>(block).unwrap_err().to_string();
            assert!(error.contains(field), "{error}");
        }
    }

    #[test]
    fn document_with_unknown_source_is_an_unknown_block() {
        let block =
            json!({"type": "document", "source": {"type": "content", "content": "x"}, "context": "y"});
        let Block::Other(fields) = serde_json::from_value(block.clone()).unwrap() else { panic!() };
        assert_eq!(Value::Object(fields), block);
    }

    #[test]
    fn invalid_usage_figures_are_never_an_error() {
        let usage: Usage = serde_json::from_value(
            json!({"input_tokens": -5, "output_tokens": 2.7, "cache_read_input_tokens": null}),
        )
        .unwrap();
        assert_eq!((usage.input_tokens, usage.output_tokens, usage.cache_read_input_tokens), (0, 2, 0));
    }

    #[test]
    fn unknown_stop_reason_is_kept() {
        let reason: StopReason = serde_json::from_value(json!("moon_phase")).unwrap();
        assert_eq!(reason, StopReason::Other("moon_phase".into()));
        assert_eq!(serde_json::from_value::<StopReason>(json!("end_turn")).unwrap(), StopReason::EndTurn);
    }
}
