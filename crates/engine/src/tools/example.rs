//! Examples of tool calls: they show what a tool does, and one test runs them all.

use serde_json::Value;

/// One call of a tool in a small workspace.
#[derive(Debug, Clone)]
pub struct Example {
    /// What it shows, as a sentence.
    pub shows: &'static str,
    /// Files in the workspace: relative path and content.
    pub files: &'static [(&'static str, &'static str)],
    /// Calls that must come first: tool name and input.
    pub before: Vec<(&'static str, Value)>,
    /// The input. Relative paths are below the workspace.
    pub input: Value,
    /// What the model reads must contain each of these.
    pub says: &'static [&'static str],
    /// Whether the call fails.
    pub fails: bool,
    /// Files as they must be afterwards.
    pub leaves: &'static [(&'static str, &'static str)],
}

impl Example {
    /// A call that works, in an empty workspace.
    pub fn new(shows: &'static str, input: Value) -> Self {
        Self { shows, files: &[], before: Vec::new(), input, says: &[], fails: false, leaves: &[] }
    }

    /// With these files in the workspace.
    #[must_use]
    pub fn files(mut self, files: &'static [(&'static str, &'static str)]) -> Self {
        self.files = files;
        self
    }

    /// With this call made before.
    #[must_use]
    pub fn after(mut self, tool: &'static str, input: Value) -> Self {
        self.before.push((tool, input));
        self
    }

    /// The model reads these words.
    #[must_use]
    pub fn says(mut self, words: &'static [&'static str]) -> Self {
        self.says = words;
        self
    }

    /// The call fails, and the model reads these words.
    #[must_use]
    pub fn fails(mut self, words: &'static [&'static str]) -> Self {
        self.fails = true;
        self.says(words)
    }

    /// The workspace then holds these files.
    #[must_use]
    pub fn leaves(mut self, files: &'static [(&'static str, &'static str)]) -> Self {
        self.leaves = files;
        self
    }
}
