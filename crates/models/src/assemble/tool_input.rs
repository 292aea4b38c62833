//! Input of a tool call as streamed by the model: parsed once it is complete, or described to the model as invalid or
//! truncated.

use serde_json::{Map, Value};

/// Parses streamed JSON into the input of a call. Returns a message for the model if it is invalid; the input is then
/// empty. Without streamed JSON, the input stays as it was at the start of the block.
pub(super) fn parse_into(input: &mut Value, streamed: &str) -> Option<String> {
    let text = streamed.trim();
    let mut error_message = None;
    match serde_json::from_str::<Value>(if text.is_empty() { "{}" } else { text }) {
        Ok(object @ Value::Object(_)) if !text.is_empty() || input.is_null() => *input = object,
        Ok(Value::Object(_)) => {}
        Ok(_) => error_message = Some(format!("the input must be a JSON object, but is: {text}")),
        Err(error) => error_message = Some(format!("the input is not valid JSON ({error}): {text}")),
    }
    if error_message.is_some() || !input.is_object() {
        *input = Value::Object(Map::new());
    }
    error_message
}

/// Message for the model about a call that the output limit truncated: it must not write the same again.
pub(super) fn truncated_message(text: &str) -> String {
    let end: String = text.chars().rev().take(100).collect::<Vec<_>>().into_iter().rev().collect();
    let end = if end.is_empty() { String::new() } else { format!(" The input ended with: {end}") };
    format!(
        "the output limit truncated the input, so the call was not made. Write less per call: split a long text into \
         several calls.{end}"
    )
}
