//! Errors of settings, with file, position and remedy.

use std::path::Path;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// A file exists but cannot be read.
    #[error("The settings in {name} cannot be read: {cause}. {remedy}")]
    Unreadable { name: String, cause: String, remedy: String },
    /// The text is not JSON, or not a JSON object.
    #[error("The settings in {name} are not valid: line {line}, column {column}: {cause}. {remedy}")]
    Malformed {
        /// File or other origin of the text.
        name: String,
        /// Starting at 1.
        line: u32,
        /// Starting at 1.
        column: u32,
        cause: String,
        remedy: String,
    },
    /// Keys that may restrict something have invalid values.
    #[error(
        "{} Correct this first: otherwise something that the settings forbid could be allowed.",
        join_first(.0, "\n")
    )]
    InvalidKeys(Vec<InvalidKeyError>),
    /// A change could not be written.
    #[error("The settings in {name} cannot be changed: {cause}. {remedy}")]
    NotWritten { name: String, cause: String, remedy: String },
    /// A change that is not permitted.
    #[error("{0}")]
    NotAllowed(String),
}

/// A known key with an invalid value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name}{}: {key} {cause}.", line.map(|line| format!(", line {line}")).unwrap_or_default())]
pub struct InvalidKeyError {
    /// File or other origin of the settings.
    pub name: String,
    /// Starting at 1; `None` for settings that were not read from a text.
    pub line: Option<u32>,
    /// Path of the key, separated by dots.
    pub key: String,
    pub cause: String,
}

impl SettingsError {
    pub(super) fn unreadable(path: &Path, cause: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Unreadable { name: display_path(path), cause: cause.into(), remedy: remedy.into() }
    }

    pub(super) fn not_written(path: &Path, cause: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::NotWritten { name: display_path(path), cause: cause.into(), remedy: remedy.into() }
    }
}

/// Joins the first items and the number of the others, because a file can have any number of errors.
pub(super) fn join_first(all: &[impl ToString], between: &str) -> String {
    const MAX_SHOWN: usize = 10;
    let mut text = all.iter().take(MAX_SHOWN).map(ToString::to_string).collect::<Vec<_>>().join(between);
    if all.len() > MAX_SHOWN {
        text.push_str(&format!("{between}and {} more", all.len() - MAX_SHOWN));
    }
    text
}

pub(super) fn display_path(path: &Path) -> String {
    path.display().to_string()
}

/// Escapes invisible and control characters of text from a file, which could manipulate a terminal, and truncates long
/// text.
pub(super) fn escape_text(text: &str) -> String {
    const MAX_LEN: usize = 200;
    let harmless = |c: char| c.is_ascii_graphic() || c == ' ' || c.is_alphanumeric();
    let mut plain = String::new();
    for c in text.chars() {
        if plain.len() > MAX_LEN {
            plain.push_str("...");
            break;
        }
        if harmless(c) { plain.push(c) } else { plain.extend(c.escape_unicode()) }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_are_shortened() {
        assert_eq!(join_first(&["a", "b"], ", "), "a, b");
        let many: Vec<u32> = (0..100_000).collect();
        assert!(join_first(&many, ", ").ends_with("9, and 99990 more"));
    }

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(escape_text("Bash(größe *)"), "Bash(größe *)");
        assert_eq!(escape_text("a\u{1b}[2J\u{202e}b"), "a\\u{1b}[2J\\u{202e}b");
        assert_eq!(escape_text(&"x".repeat(1000)).len(), 204);
    }
}
