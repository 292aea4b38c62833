//! Arguments of a subcommand (`whimbrel mcp`, `whimbrel sessions`) before they are matched to its parameters. Pure.

/// Positional arguments and flags that are not consumed yet.
#[derive(Default)]
pub(crate) struct ArgList {
    pub(crate) positional: Vec<String>,
    pub(crate) flags: Vec<(String, Option<String>)>,
}

/// Output format of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListFormat {
    Text,
    Json,
}

impl ArgList {
    /// Adds a flag.
    pub(crate) fn push_flag(&mut self, name: impl Into<String>, value: Option<String>) {
        self.flags.push((name.into(), value));
    }

    /// Consumes a flag without a value; true if it was given.
    pub(crate) fn take_switch(&mut self, name: &str) -> bool {
        let before = self.flags.len();
        self.flags.retain(|(given, value)| given != name || value.is_some());
        self.flags.len() < before
    }

    /// Consumes all values of a flag.
    pub(crate) fn take_values(&mut self, name: &str) -> Vec<String> {
        self.flags.extract_if(.., |(given, _)| given == name).filter_map(|(_, value)| value).collect()
    }

    /// Consumes the last value of a flag; earlier ones stay.
    pub(crate) fn take_last_value(&mut self, name: &str) -> Option<String> {
        let index = self.flags.iter().rposition(|(given, value)| given == name && value.is_some())?;
        self.flags.remove(index).1
    }

    /// Consumes `--json`.
    pub(crate) fn take_format(&mut self) -> ListFormat {
        if self.take_switch("--json") { ListFormat::Json } else { ListFormat::Text }
    }

    /// Consumes the first positional argument.
    pub(crate) fn take_first(&mut self) -> Option<String> {
        (!self.positional.is_empty()).then(|| self.positional.remove(0))
    }

    /// Consumes a required positional argument; `what` begins the error text.
    pub(crate) fn take_word(&mut self, what: &str) -> Result<String, String> {
        self.take_first().ok_or_else(|| format!("{what} is missing."))
    }

    /// Consumes all positional arguments as one required text.
    pub(crate) fn take_text(&mut self, what: &str) -> Result<String, String> {
        let text = std::mem::take(&mut self.positional).join(" ");
        if text.trim().is_empty() { Err(format!("{what} is missing.")) } else { Ok(text) }
    }

    /// Fails if an argument is left.
    pub(crate) fn ensure_consumed(self) -> Result<(), String> {
        let flag = self.flags.into_iter().map(|(name, _)| name).next();
        match self.positional.into_iter().next().or(flag) {
            Some(word) => Err(format!("{word:?} is not expected here.")),
            None => Ok(()),
        }
    }
}
