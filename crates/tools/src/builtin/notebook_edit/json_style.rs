//! JSON layout of a notebook: byte ranges of values, and formatting of new cells in the file's style.

use std::ops::Range;

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// Byte range of a value that was parsed from `text` without copying.
pub(super) fn byte_range(text: &str, value: &RawValue) -> Range<usize> {
    let start = value.get().as_ptr().addr() - text.as_ptr().addr();
    start..start + value.get().len()
}

pub(super) fn splice(text: &str, range: Range<usize>, new: &str) -> String {
    [&text[..range.start], new, &text[range.end..]].concat()
}

/// JSON layout around a cell.
pub(super) struct JsonStyle {
    /// Whitespace before a line of the cell; `None` if the JSON is on one line.
    indent: Option<String>,
    /// One level of indentation.
    unit: String,
}

impl JsonStyle {
    pub(super) fn for_document(text: &str) -> Self {
        Self { indent: text.contains('\n').then(String::new), unit: indent_unit(text) }
    }

    /// The layout around the cell at `range`.
    pub(super) fn for_cell(text: &str, range: &Range<usize>) -> Self {
        let line = text[..range.start].rfind('\n').map(|newline| &text[newline + 1..range.start]);
        let indent = line.filter(|line| line.trim().is_empty()).map(str::to_owned);
        Self { indent, unit: indent_unit(text) }
    }

    /// Whitespace between two cells, after the comma.
    pub(super) fn separator(&self) -> String {
        self.indent.as_ref().map_or_else(|| " ".into(), |indent| format!("\n{indent}"))
    }

    pub(super) fn format(&self, value: &Map<String, Value>) -> Result<String, String> {
        let Some(indent) = &self.indent else {
            return serde_json::to_string(value).map_err(|error| error.to_string());
        };
        let formatter = serde_json::ser::PrettyFormatter::with_indent(self.unit.as_bytes());
        let mut bytes = Vec::new();
        let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, formatter);
        value.serialize(&mut serializer).map_err(|error| error.to_string())?;
        let formatted = String::from_utf8(bytes).map_err(|error| error.to_string())?;
        Ok(formatted.replace('\n', &format!("\n{indent}")))
    }
}

/// One level of indentation: that of the notebook's second line.
fn indent_unit(text: &str) -> String {
    let line = text.lines().nth(1).unwrap_or(" ");
    let unit = &line[..line.len() - line.trim_start().len()];
    if unit.is_empty() { " ".into() } else { unit.into() }
}
