//! What was said and done, as it is kept for the transcript view and written to the scrollback. It is the source of what
//! is shown, not the shown lines.

use std::time::Duration;

use serde_json::Value;

/// Longest text of a call that is kept.
const MAX_KEPT_TEXT: usize = 64 * 1024;
/// Bytes of a transcript that are kept; the session file has the rest.
const MAX_KEPT_BYTES: usize = 8 * 1024 * 1024;
/// What an entry takes beside its texts.
const ENTRY_BYTES: usize = 200;
/// Fields of a tool's own result from which its entry is made. Others repeat the text.
const KEPT_FIELDS: [&str; 8] =
    ["type", "numLines", "numFiles", "bytes", "totalToolUseCount", "totalTokens", "structuredPatch", "file"];

/// An entry of the transcript.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Item {
    /// A prompt of the user.
    User { text: String, entry: PromptEntry },
    /// Text of the model, in Markdown.
    Answer(String),
    /// Reasoning of the model.
    Thinking(String),
    /// A tool call with its result.
    Call(Box<FinishedCall>),
    /// A plan that the model presents.
    Plan(String),
    /// A command line that the user ran.
    Shell { command: String, output: String, exit: ShellExit },
    /// A message of the program or the engine.
    Note(NoteLevel, String),
    /// Text of a command of the program, in Markdown.
    Page(String),
    /// A line that separates what was before.
    Mark(String),
}

impl Item {
    /// About how many bytes the entry takes.
    fn kept_bytes(&self) -> usize {
        let texts = match self {
            Self::User { text, .. }
            | Self::Answer(text)
            | Self::Thinking(text)
            | Self::Plan(text)
            | Self::Note(_, text)
            | Self::Page(text)
            | Self::Mark(text) => text.len(),
            Self::Shell { command, output, .. } => command.len() + output.len(),
            Self::Call(call) => {
                call.text.len() + value_bytes(&call.input) + call.structured.as_ref().map_or(0, value_bytes)
            }
        };
        ENTRY_BYTES + texts
    }
}

/// About how many bytes a value takes.
fn value_bytes(value: &Value) -> usize {
    let inside = match value {
        Value::String(text) => text.len(),
        Value::Array(values) => values.iter().map(value_bytes).sum(),
        Value::Object(fields) => fields.iter().map(|(name, value)| name.len() + value_bytes(value)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    inside + size_of::<Value>()
}

/// How a prompt came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PromptEntry {
    /// It started a turn.
    Turn,
    /// It was added to the running turn.
    Steered,
}

/// How much a note matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoteLevel {
    Info,
    Warning,
    Error,
}

/// How a command line ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShellExit {
    Code(i32),
    Signal(i32),
    /// It was stopped by the user.
    Stopped,
}

/// A tool call that has its result.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FinishedCall {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) input: Value,
    pub(crate) text: String,
    pub(crate) is_error: bool,
    /// The tool's own result.
    pub(crate) structured: Option<Value>,
    pub(crate) elapsed: Duration,
}

impl FinishedCall {
    /// Cuts the text and the tool's own result to what is kept.
    pub(crate) fn limited(mut self) -> Self {
        if let Some(Value::Object(fields)) = &mut self.structured {
            fields.retain(|name, _| KEPT_FIELDS.contains(&name.as_str()));
            if let Some(Value::Object(file)) = fields.get_mut("file") {
                file.retain(|name, _| name == "numLines");
            }
        }
        if self.text.len() > MAX_KEPT_TEXT {
            let end = self.text.floor_char_boundary(MAX_KEPT_TEXT);
            let left_out = self.text.len() - end;
            self.text.truncate(end);
            self.text.push_str(&format!("\n({left_out} more bytes are not kept)"));
        }
        self
    }
}

/// The entries, and those of each subagent.
#[derive(Debug, Clone, Default)]
pub(crate) struct Transcript {
    items: Vec<Item>,
    bytes: usize,
    /// Number of all entries that were ever added.
    version: u64,
}

impl Transcript {
    /// Adds an entry. Where the transcript becomes too large, its oldest quarter goes.
    pub(crate) fn push(&mut self, item: Item) {
        self.bytes += item.kept_bytes();
        self.version += 1;
        self.items.push(item);
        if self.bytes <= MAX_KEPT_BYTES {
            return;
        }
        let mut dropped = 0;
        while self.bytes > MAX_KEPT_BYTES / 4 * 3 && dropped + 1 < self.items.len() {
            self.bytes -= self.items[dropped].kept_bytes();
            dropped += 1;
        }
        if dropped > 0 {
            let mark = Item::Mark("earlier entries are not kept here; the session itself has them".into());
            self.bytes += mark.kept_bytes();
            self.items.splice(..dropped, [mark]);
        }
    }

    /// Changes with each entry.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    pub(crate) fn items(&self) -> &[Item] {
        &self.items
    }

    /// The last text of the model.
    pub(crate) fn last_answer(&self) -> Option<&str> {
        self.items.iter().rev().find_map(|item| match item {
            Item::Answer(text) => Some(text.as_str()),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn transcript_keeps_its_newest_entries_within_the_limit() {
        let mut transcript = Transcript::default();
        for number in 0..300 {
            transcript.push(Item::Answer(format!("{number} {}", "x".repeat(64 * 1024))));
        }
        let kept: usize = transcript.items().iter().map(Item::kept_bytes).sum();
        assert!(kept <= MAX_KEPT_BYTES && kept == transcript.bytes, "{kept} {}", transcript.bytes);
        assert!(matches!(transcript.items()[0], Item::Mark(_)));
        assert!(transcript.last_answer().unwrap().starts_with("299 "));
        assert_eq!(transcript.version(), 300);
    }

    #[test]
    fn results_that_repeat_the_text_are_not_kept() {
        let call = FinishedCall {
            id: String::new(),
            name: "Read".into(),
            input: Value::Null,
            text: "x".repeat(100_000),
            is_error: false,
            structured: Some(
                json!({"type": "text", "file": {"numLines": 3, "content": "x"}, "originalFile": "x"}),
            ),
            elapsed: Duration::ZERO,
        };
        let call = call.limited();
        assert_eq!(call.structured, Some(json!({"type": "text", "file": {"numLines": 3}})));
        assert!(call.text.ends_with("(34464 more bytes are not kept)"));
    }
}
