//! Parses one chunk of a streamed response leniently: providers agree on the outline, not on the details.
//!
//! The parsed form is strict; its interpretation is in [`super::stream`].

use serde_json::Value;
use whimbrel_wire::Usage;

use super::error;
use crate::error::{ModelError, ModelErrorKind};
use crate::usage::{CountReader, ReportedUsage};

/// Content of a chunk. A response that is not streamed is parsed as one chunk.
#[derive(Debug, Default, PartialEq)]
pub(super) struct ChatChunk {
    pub(super) id: String,
    pub(super) model: String,
    /// Whether the chunk has a choice; some chunks have only usage.
    pub(super) has_choice: bool,
    pub(super) pieces: Vec<ChunkPiece>,
    /// Finish reason in the provider's words.
    pub(super) finish_reason: Option<String>,
    pub(super) usage: Option<ReportedUsage>,
}

/// Something that a chunk adds to the reply.
#[derive(Debug, PartialEq)]
pub(super) enum ChunkPiece {
    Thinking(String),
    Text(String),
    /// Text by which the model refuses.
    Refusal(String),
    Call(CallFragment),
}

/// A fragment of a tool call. Fields missing in the chunk are empty.
#[derive(Debug, Default, PartialEq)]
pub(super) struct CallFragment {
    /// Index of the call, as numbered by the provider.
    pub(super) index: Option<u64>,
    pub(super) id: String,
    pub(super) name: String,
    pub(super) arguments: String,
    /// Whether another fragment precedes it in the same chunk.
    pub(super) follows_another: bool,
}

/// Parses the data of one event. An error object in the stream becomes an error.
pub(super) fn parse(data: &str) -> Result<ChatChunk, ModelError> {
    let value: Value = serde_json::from_str(data).map_err(|error| {
        let start: String = data.chars().take(200).collect();
        ModelError::new(
            ModelErrorKind::Protocol,
            format!("The model's stream contains invalid JSON ({error}): {start}"),
        )
    })?;
    if error::is_error(&value) {
        return Err(error::from_stream_value(&value));
    }
    let choice = &value["choices"][0];
    Ok(ChatChunk {
        id: string_value(&value["id"]),
        model: string_value(&value["model"]),
        has_choice: choice.is_object(),
        pieces: parse_pieces(if choice["delta"].is_object() { &choice["delta"] } else { &choice["message"] }),
        finish_reason: choice["finish_reason"]
            .as_str()
            .filter(|reason| !reason.is_empty())
            .map(str::to_owned),
        usage: [&value["usage"], &choice["usage"], &value["x_groq"]["usage"]]
            .into_iter()
            .find_map(parse_usage),
    })
}

fn string_value(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Collects the pieces of a delta or a whole message: thinking, text, refusal, calls.
fn parse_pieces(message: &Value) -> Vec<ChunkPiece> {
    let mut pieces = Vec::new();
    // Some servers send the same reasoning under the old and the new name.
    let reasoning = [&message["reasoning_content"], &message["reasoning"]].map(string_value);
    pieces.extend(reasoning.into_iter().find(|text| !text.is_empty()).map(ChunkPiece::Thinking));
    parse_content(&message["content"], &mut pieces);
    pieces.push(ChunkPiece::Refusal(string_value(&message["refusal"])));
    parse_calls(message, &mut pieces);
    pieces.retain(|piece| !piece.is_empty());
    pieces
}

/// Content is a string or, for Mistral, a list of parts that may contain reasoning.
fn parse_content(content: &Value, pieces: &mut Vec<ChunkPiece>) {
    pieces.push(ChunkPiece::Text(string_value(content)));
    for part in content.as_array().into_iter().flatten() {
        match &part["thinking"] {
            Value::Array(thoughts) => {
                pieces.extend(thoughts.iter().map(|part| ChunkPiece::Thinking(string_value(&part["text"]))));
            }
            Value::String(text) => pieces.push(ChunkPiece::Thinking(text.clone())),
            _ => pieces.push(ChunkPiece::Text(string_value(&part["text"]))),
        }
    }
}

fn parse_calls(message: &Value, pieces: &mut Vec<ChunkPiece>) {
    // Legacy form: a single call without an id.
    if message["function_call"].is_object() {
        pieces.push(ChunkPiece::Call(CallFragment {
            index: Some(0),
            ..parse_fragment(&message["function_call"])
        }));
    }
    for (position, call) in message["tool_calls"].as_array().into_iter().flatten().enumerate() {
        pieces.push(ChunkPiece::Call(CallFragment {
            index: call["index"].as_u64(),
            id: string_value(&call["id"]),
            follows_another: position > 0,
            ..parse_fragment(&call["function"])
        }));
    }
}

fn parse_fragment(function: &Value) -> CallFragment {
    let arguments = match &function["arguments"] {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        object => object.to_string(),
    };
    CallFragment { name: string_value(&function["name"]), arguments, ..CallFragment::default() }
}

impl ChunkPiece {
    fn is_empty(&self) -> bool {
        match self {
            Self::Thinking(text) | Self::Text(text) | Self::Refusal(text) => text.is_empty(),
            Self::Call(_) => false,
        }
    }
}

/// Parses the usage. Tokens read from or written to the cache are subtracted from the input.
fn parse_usage(value: &Value) -> Option<ReportedUsage> {
    let fields = value.as_object()?;
    let (mut input, mut output) = (CountReader::new(), CountReader::new());
    let prompt = input.required(fields, "prompt_tokens");
    let output_tokens = output.required(fields, "completion_tokens");
    let details = fields.get("prompt_tokens_details").and_then(Value::as_object);
    // In this order: OpenAI and most others; Kimi; DeepSeek.
    let cached = [
        input.optional(details, "cached_tokens"),
        input.optional(Some(fields), "cached_tokens"),
        input.optional(Some(fields), "prompt_cache_hit_tokens"),
    ];
    let cache_read_input_tokens = cached.into_iter().find(|tokens| *tokens > 0).unwrap_or(0);
    let cache_creation_input_tokens = input.optional(details, "cache_write_tokens");
    let usage = Usage {
        input_tokens: prompt
            .saturating_sub(cache_read_input_tokens)
            .saturating_sub(cache_creation_input_tokens),
        cache_read_input_tokens,
        cache_creation_input_tokens,
        output_tokens,
        ..Usage::default()
    };
    Some(ReportedUsage { usage, input_status: input.status, output_status: output.status })
}
