//! [`WireError`], and the parser of a body that reports it.

use serde::de::DeserializeOwned;

use crate::json_path::path_of_error;
use crate::truncate::MAX_LINE_IN;

/// Number of characters of a bad line that an error quotes.
const MAX_EXCERPT_CHARS: usize = 200;

/// Error of decoding a line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// The line is not JSON at all.
    #[error("not a JSON line: {reason}. The line begins: {line}")]
    NotJson {
        /// Message of the JSON parser.
        reason: String,
        /// The beginning of the line.
        line: String,
    },
    /// The line is JSON, but not an object with a `type`.
    #[error("a line must be a JSON object with a \"type\": {line}")]
    NoType {
        /// The beginning of the line.
        line: String,
    },
    /// A known type with an invalid field.
    #[error("a \"{kind}\" line has an invalid field `{field}`: {reason}. The line begins: {line}")]
    InvalidField {
        /// The `type`, followed by the subtype if there is one.
        kind: String,
        /// JSON path of the field.
        field: String,
        /// Message of the deserializer.
        reason: String,
        /// The beginning of the line.
        line: String,
    },
    /// A type that only the engine sends, received by the engine.
    #[error("a host must not send \"{kind}\" lines")]
    NotForEngine {
        /// The `type`.
        kind: String,
    },
    /// The line is longer than [`MAX_LINE_IN`].
    #[error("a line of more than {} MiB was skipped", MAX_LINE_IN / 1024 / 1024)]
    TooLong,
}

impl WireError {
    pub(crate) fn not_json(line: &str, error: &serde_json::Error) -> Self {
        Self::NotJson { reason: error.to_string(), line: excerpt(line) }
    }
}

/// Parses the body of a known type from valid JSON. The path of an invalid field is computed only on failure.
pub(crate) fn parse_body<T: DeserializeOwned>(kind: &str, json: &str) -> Result<T, WireError> {
    serde_json::from_str(json).map_err(|error| WireError::InvalidField {
        kind: kind.into(),
        field: path_of_error(json, &error),
        reason: error.to_string(),
        line: excerpt(json),
    })
}

/// Returns the first characters of a line, for an error text.
pub(crate) fn excerpt(line: &str) -> String {
    match line.char_indices().nth(MAX_EXCERPT_CHARS) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line.into(),
    }
}
