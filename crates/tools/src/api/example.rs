//! Examples of tool calls: documentation and test at once.

use serde_json::Value;

/// One tool call in a temporary workspace.
#[derive(Debug, Clone)]
pub struct Example {
    /// What the example shows, as a sentence.
    pub title: &'static str,
    /// Files in the workspace: relative path and content.
    pub files: &'static [(&'static str, &'static str)],
    /// Calls made first: tool name and input.
    pub calls_before: Vec<(&'static str, Value)>,
    /// The input. Relative paths are relative to the workspace.
    pub input: Value,
    /// Substrings that the text for the model must contain.
    pub output: &'static [&'static str],
    pub is_error: bool,
    /// Expected files after the call.
    pub files_after: &'static [(&'static str, &'static str)],
}

impl Example {
    /// A successful call in an empty workspace.
    pub fn new(title: &'static str, input: Value) -> Self {
        Self {
            title,
            files: &[],
            calls_before: Vec::new(),
            input,
            output: &[],
            is_error: false,
            files_after: &[],
        }
    }

    #[must_use]
    pub fn with_files(mut self, files: &'static [(&'static str, &'static str)]) -> Self {
        self.files = files;
        self
    }

    #[must_use]
    pub fn after_call(mut self, tool: &'static str, input: Value) -> Self {
        self.calls_before.push((tool, input));
        self
    }

    #[must_use]
    pub fn expect_output(mut self, words: &'static [&'static str]) -> Self {
        self.output = words;
        self
    }

    #[must_use]
    pub fn expect_error(mut self, words: &'static [&'static str]) -> Self {
        self.is_error = true;
        self.expect_output(words)
    }

    #[must_use]
    pub fn expect_files(mut self, files: &'static [(&'static str, &'static str)]) -> Self {
        self.files_after = files;
        self
    }
}
