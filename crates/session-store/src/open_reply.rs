//! Lines of a reply that is still streaming. A line is written when its block is complete, so that a kill of the engine
//! loses nothing that the host has seen. Stop reason and usage are known only when the reply ends, so the line reserves
//! space for them, and the end of the reply overwrites that space.

use std::ops::Range;

use serde::Serialize;
use whimbrel_wire::content::Usage;
use whimbrel_wire::{RawJson, StopReason};

/// First of the fields that the end of a reply sets. They are the last ones of a message.
const FIRST_END_FIELD: &str = "\"stop_reason\":";

/// Space for values that are longer at the end of the reply than at its beginning.
const RESERVED_BYTES: usize = 200;

/// Fields of an assistant message that are final when the reply ends, in the order of the message.
#[derive(Debug, Clone, Serialize)]
pub struct ReplyEnd {
    pub stop_reason: Option<StopReason>,
    pub stop_sequence: Option<String>,
    pub usage: Usage,
}

impl ReplyEnd {
    /// Renders the fields without the braces around them.
    fn render(&self) -> serde_json::Result<String> {
        let object = serde_json::to_string(self)?;
        Ok(object[1..object.len() - 1].to_owned())
    }

    /// Renders the fields in exactly `length` bytes. The provider's list of steps is left out if it does not fit;
    /// `None` if the rest does not fit either.
    pub(crate) fn render_padded(&self, length: usize) -> serde_json::Result<Option<String>> {
        let mut fields = self.render()?;
        if fields.len() > length {
            let usage = Usage { iterations: None, ..self.usage.clone() };
            fields = Self { usage, ..self.clone() }.render()?;
        }
        Ok((fields.len() <= length).then(|| format!("{fields:length$}")))
    }
}

/// A transcript line with space for the fields of [`ReplyEnd`].
#[derive(Debug, Clone)]
pub(crate) struct OpenLine {
    text: String,
    end_fields: Range<usize>,
}

/// Reserves space at the end of a message. `None` if the message has no fields to complete.
pub(crate) fn reserve_space(message: &RawJson) -> Option<RawJson> {
    let fields = message.as_str().strip_suffix('}')?;
    fields.rfind(FIRST_END_FIELD)?;
    RawJson::parse(format!("{fields}{:RESERVED_BYTES$}}}", "")).ok()
}

impl OpenLine {
    /// Takes a line that contains a message of [`reserve_space`] verbatim.
    pub(crate) fn new(text: String, message: &RawJson) -> Option<Self> {
        let start = text.rfind(FIRST_END_FIELD)?;
        let length = message.as_str().len().checked_sub(message.as_str().rfind(FIRST_END_FIELD)? + 1)?;
        (start + length < text.len()).then_some(Self { text, end_fields: start..start + length })
    }

    pub(crate) fn into_text(self) -> String {
        self.text
    }

    /// Offset of the reserved space in the line.
    pub(crate) fn end_fields_offset(&self) -> usize {
        self.end_fields.start
    }

    /// The reserved space as written.
    pub(crate) fn end_fields(&self) -> &str {
        &self.text[self.end_fields.clone()]
    }

    /// The line with the final fields, or as it was written if the reply did not end. Nothing is reserved any more.
    pub(crate) fn complete(self, end: Option<&ReplyEnd>) -> String {
        let Self { mut text, end_fields } = self;
        let rendered = end.and_then(|end| end.render().ok());
        let fields = rendered.unwrap_or_else(|| text[end_fields.clone()].trim_end().to_owned());
        text.replace_range(end_fields, &fields);
        text
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn open_line() -> OpenLine {
        let usage = Usage { input_tokens: 7, output_tokens: 1, ..Usage::default() };
        let message = json!({
            "content": [{"type": "tool_use", "input": {"stop_reason": "a \"stop_reason\": inside"}}],
            "stop_reason": null, "stop_sequence": null, "usage": usage,
        });
        let message = reserve_space(&RawJson::from_value(&message).unwrap()).unwrap();
        let text = format!("{{\"message\":{},\"uuid\":\"u\"}}", message.as_str());
        OpenLine::new(text, &message).unwrap()
    }

    fn end(steps: usize) -> ReplyEnd {
        let usage = Usage {
            input_tokens: 7,
            output_tokens: 2_616,
            iterations: (steps > 0).then(|| Box::new(json!(vec!["step"; steps]))),
            ..Usage::default()
        };
        ReplyEnd { stop_reason: Some(StopReason::ToolUse), stop_sequence: None, usage }
    }

    #[test]
    fn end_fields_replace_the_reserved_space_exactly() {
        for steps in [0, 1_000] {
            let line = open_line();
            let fields = end(steps).render_padded(line.end_fields().len()).unwrap().unwrap();
            assert_eq!(fields.len(), line.end_fields().len());
            let start = line.end_fields_offset();
            let mut text = line.into_text();
            text.replace_range(start..start + fields.len(), &fields);
            let parsed: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(parsed["message"]["stop_reason"], "tool_use");
            assert_eq!(parsed["message"]["usage"]["output_tokens"], 2_616);
            assert_eq!(parsed["message"]["content"][0]["input"]["stop_reason"], "a \"stop_reason\": inside");
            assert_eq!(parsed["uuid"], "u");
        }
    }

    #[test]
    fn fields_that_do_not_fit_are_rejected() {
        let mut long = end(0);
        long.stop_sequence = Some("x".repeat(1_000));
        assert_eq!(long.render_padded(open_line().end_fields().len()).unwrap(), None);
    }

    #[test]
    fn completed_line_has_no_padding() {
        for (end, tokens) in [(None, 1), (Some(end(0)), 2_616)] {
            let text = open_line().complete(end.as_ref());
            assert!(!text.contains("  "), "{text}");
            let parsed: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(parsed["message"]["usage"]["output_tokens"], tokens);
        }
    }
}
