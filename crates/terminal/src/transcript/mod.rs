//! What was said and done, as it is kept for the transcript view and written to the scrollback. It is the source of what
//! is shown, not the shown lines.

use std::time::Duration;

use serde_json::Value;

/// Longest text of a call that is kept.
const MAX_KEPT_TEXT: usize = 64 * 1024;

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
    /// Cuts the text to what is kept.
    pub(crate) fn limited(mut self) -> Self {
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
}

impl Transcript {
    pub(crate) fn push(&mut self, item: Item) {
        self.items.push(item);
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
