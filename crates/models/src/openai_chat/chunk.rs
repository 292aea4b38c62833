//! One chunk of a streamed answer, read leniently: providers agree on the outline, not on the details.
//!
//! What is read is strict; what to make of it is decided in [`super::stream`].

use serde_json::Value;
use whimbrel_wire::Usage;

use super::refusal;
use crate::fault::{Fault, FaultKind};
use crate::figures::{Count, Figures};

/// What a chunk says. A whole answer that was not streamed reads as one chunk.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Chunk {
    pub(super) id: String,
    pub(super) model: String,
    /// Whether it holds a choice at all; some chunks bring only figures.
    pub(super) speaks: bool,
    pub(super) pieces: Vec<Piece>,
    /// Why the model stopped, in the provider's word.
    pub(super) finish: Option<String>,
    pub(super) usage: Option<Figures>,
}

/// Something that a chunk adds to the reply.
#[derive(Debug, PartialEq)]
pub(super) enum Piece {
    Thinking(String),
    Text(String),
    /// Text by which the model declines.
    Refusal(String),
    Call(Fragment),
}

/// A piece of a call. Empty strings are what the chunk did not say.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Fragment {
    /// Which call of the reply, by the provider's count.
    pub(super) index: Option<u64>,
    pub(super) id: String,
    pub(super) name: String,
    pub(super) arguments: String,
    /// Whether another fragment stands before it in the same chunk.
    pub(super) follows: bool,
}

/// Reads the data of one event. An error inside the stream is a fault.
pub(super) fn read(data: &str) -> Result<Chunk, Fault> {
    let value: Value = serde_json::from_str(data).map_err(|error| {
        let start: String = data.chars().take(200).collect();
        Fault::new(
            FaultKind::Protocol,
            format!("The model's stream holds something that is not JSON ({error}): {start}"),
        )
    })?;
    if refusal::is_error(&value) {
        return Err(refusal::inside_stream(&value));
    }
    let choice = &value["choices"][0];
    Ok(Chunk {
        id: text(&value["id"]),
        model: text(&value["model"]),
        speaks: choice.is_object(),
        pieces: pieces(if choice["delta"].is_object() { &choice["delta"] } else { &choice["message"] }),
        finish: choice["finish_reason"].as_str().filter(|reason| !reason.is_empty()).map(str::to_owned),
        usage: [&value["usage"], &choice["usage"], &value["x_groq"]["usage"]].into_iter().find_map(usage),
    })
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// What a delta, or a whole message, adds, in the order in which a model comes to it.
fn pieces(said: &Value) -> Vec<Piece> {
    let mut pieces = Vec::new();
    // Some servers say the same twice, under the old name and the new.
    let reasoning = [&said["reasoning_content"], &said["reasoning"]].map(text);
    pieces.extend(reasoning.into_iter().find(|text| !text.is_empty()).map(Piece::Thinking));
    content(&said["content"], &mut pieces);
    pieces.push(Piece::Refusal(text(&said["refusal"])));
    calls(said, &mut pieces);
    pieces.retain(|piece| !piece.is_empty());
    pieces
}

/// Content is a string, or (Mistral) a list of parts that may hold reasoning.
fn content(content: &Value, pieces: &mut Vec<Piece>) {
    pieces.push(Piece::Text(text(content)));
    for part in content.as_array().into_iter().flatten() {
        match &part["thinking"] {
            Value::Array(thoughts) => {
                pieces.extend(thoughts.iter().map(|part| Piece::Thinking(text(&part["text"]))));
            }
            Value::String(thought) => pieces.push(Piece::Thinking(thought.clone())),
            _ => pieces.push(Piece::Text(text(&part["text"]))),
        }
    }
}

fn calls(said: &Value, pieces: &mut Vec<Piece>) {
    // The dialect's first form: a single call, without an id.
    if said["function_call"].is_object() {
        pieces.push(Piece::Call(Fragment { index: Some(0), ..fragment(&said["function_call"]) }));
    }
    for (position, call) in said["tool_calls"].as_array().into_iter().flatten().enumerate() {
        pieces.push(Piece::Call(Fragment {
            index: call["index"].as_u64(),
            id: text(&call["id"]),
            follows: position > 0,
            ..fragment(&call["function"])
        }));
    }
}

fn fragment(function: &Value) -> Fragment {
    let arguments = match &function["arguments"] {
        Value::Null => String::new(),
        Value::String(piece) => piece.clone(),
        whole => whole.to_string(),
    };
    Fragment { name: text(&function["name"]), arguments, ..Fragment::default() }
}

impl Piece {
    fn is_empty(&self) -> bool {
        match self {
            Self::Thinking(text) | Self::Text(text) | Self::Refusal(text) => text.is_empty(),
            Self::Call(_) => false,
        }
    }
}

/// The figures, with what came from the cache, or went there, taken out of the input.
fn usage(value: &Value) -> Option<Figures> {
    let figures = value.as_object()?;
    let (mut read, mut written) = (Count::new(), Count::new());
    let prompt = read.needed(figures, "prompt_tokens");
    let output_tokens = written.needed(figures, "completion_tokens");
    let details = figures.get("prompt_tokens_details").and_then(Value::as_object);
    // OpenAI and most others; Kimi; DeepSeek.
    let cached = [
        read.of(details, "cached_tokens"),
        read.of(Some(figures), "cached_tokens"),
        read.of(Some(figures), "prompt_cache_hit_tokens"),
    ];
    let cache_read_input_tokens = cached.into_iter().find(|tokens| *tokens > 0).unwrap_or(0);
    let cache_creation_input_tokens = read.of(details, "cache_write_tokens");
    let usage = Usage {
        input_tokens: prompt
            .saturating_sub(cache_read_input_tokens)
            .saturating_sub(cache_creation_input_tokens),
        cache_read_input_tokens,
        cache_creation_input_tokens,
        output_tokens,
        ..Usage::default()
    };
    Some(Figures { usage, input: read.word, output: written.word })
}
