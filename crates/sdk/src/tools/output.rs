//! Return values of tool functions.

use std::fmt::Display;

use serde::Serialize;
use whimbrel_wire::Block;

/// Output of a tool call, as the model reads it.
///
/// Functions rarely construct one: texts, [`Json`], blocks and `Result`s of them convert into it. The error of a
/// `Result` is what the model reads about a failed call.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolOutput {
    /// Content for the model.
    pub content: Vec<Block>,
    /// True if the call failed.
    pub failed: bool,
}

/// Any value, shown to the model as JSON.
#[derive(Debug, Clone, PartialEq)]
pub struct Json<T>(pub T);

impl ToolOutput {
    /// Output of a failed call, with the reason.
    pub fn failed(reason: impl Display) -> Self {
        Self { failed: true, ..Self::from(reason.to_string()) }
    }
}

impl From<String> for ToolOutput {
    fn from(text: String) -> Self {
        Self { content: vec![Block::text(text)], failed: false }
    }
}

impl From<&str> for ToolOutput {
    fn from(text: &str) -> Self {
        Self::from(text.to_owned())
    }
}

impl From<()> for ToolOutput {
    fn from((): ()) -> Self {
        Self::from("Done.")
    }
}

impl From<Block> for ToolOutput {
    fn from(block: Block) -> Self {
        Self::from(vec![block])
    }
}

impl From<Vec<Block>> for ToolOutput {
    fn from(content: Vec<Block>) -> Self {
        Self { content, failed: false }
    }
}

impl<T: Serialize> From<Json<T>> for ToolOutput {
    fn from(Json(value): Json<T>) -> Self {
        match serde_json::to_string(&value) {
            Ok(text) => Self::from(text),
            Err(error) => Self::failed(format!("The output cannot be serialized as JSON: {error}")),
        }
    }
}

impl<T: Into<ToolOutput>, E: Display> From<Result<T, E>> for ToolOutput {
    fn from(result: Result<T, E>) -> Self {
        result.map_or_else(Self::failed, Into::into)
    }
}
