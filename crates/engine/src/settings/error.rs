//! What can go wrong with settings, in words that name the file, the place and the remedy.

use std::path::Path;

/// Why settings cannot be used or changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// A file is there but cannot be read.
    #[error("The settings in {name} cannot be read: {cause}. {remedy}")]
    Unreadable {
        /// The file.
        name: String,
        /// What is in the way.
        cause: String,
        /// What to do about it.
        remedy: String,
    },
    /// The text is not JSON, or not the JSON of an object.
    #[error("The settings in {name} are not valid: line {line}, column {column}: {cause}. {remedy}")]
    Malformed {
        /// The file, or what else the text came from.
        name: String,
        /// The line, from 1.
        line: u32,
        /// The column, from 1.
        column: u32,
        /// What is wrong there.
        cause: String,
        /// What to do about it.
        remedy: String,
    },
    /// Keys that may guard something hold what they cannot hold.
    #[error("{} Correct this first: something that is meant to be forbidden could be allowed otherwise.", join_first(.0, "\n"))]
    InvalidKeys(Vec<InvalidKeyError>),
    /// A change could not be written.
    #[error("The settings in {name} cannot be changed: {cause}. {remedy}")]
    NotWritten {
        /// The file.
        name: String,
        /// What is in the way.
        cause: String,
        /// What to do about it.
        remedy: String,
    },
    /// A change that may not be made.
    #[error("{0}")]
    NotAllowed(String),
}

/// A known key with a value that it cannot have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name}{}: {key} {cause}.", line.map(|line| format!(", line {line}")).unwrap_or_default())]
pub struct InvalidKeyError {
    /// The file, or what else the settings came from.
    pub name: String,
    /// The line, from 1, if there is a text.
    pub line: Option<u32>,
    /// The key, with dots between its parts.
    pub key: String,
    /// What is wrong with it.
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

/// The first few of many for a message, and how many more there are: a file can have any number of flaws.
pub(super) fn join_first(all: &[impl ToString], between: &str) -> String {
    const SHOWN: usize = 10;
    let mut text = all.iter().take(SHOWN).map(ToString::to_string).collect::<Vec<_>>().join(between);
    if all.len() > SHOWN {
        text.push_str(&format!("{between}and {} more", all.len() - SHOWN));
    }
    text
}

/// A path for a sentence.
pub(super) fn display_path(path: &Path) -> String {
    path.display().to_string()
}

/// A text from a file for a sentence: what could play tricks on a terminal or a reader is written out, and what is very
/// long is cut.
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
    fn a_message_never_lists_everything() {
        assert_eq!(join_first(&["a", "b"], ", "), "a, b");
        let many: Vec<u32> = (0..100_000).collect();
        assert!(join_first(&many, ", ").ends_with("9, and 99990 more"));
    }

    #[test]
    fn what_a_file_says_cannot_play_tricks_in_a_message() {
        assert_eq!(escape_text("Bash(größe *)"), "Bash(größe *)");
        assert_eq!(escape_text("a\u{1b}[2J\u{202e}b"), "a\\u{1b}[2J\\u{202e}b");
        assert_eq!(escape_text(&"x".repeat(1000)).len(), 204);
    }
}
