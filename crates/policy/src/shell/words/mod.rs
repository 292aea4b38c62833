//! Words of a command: expansion of a raw word to its value, and the texts that rules are compared with.

pub(crate) mod arithmetic;
pub(crate) mod braces;
pub(crate) mod expand;
pub(crate) mod match_texts;

/// One word of a simple command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// The word as written, with its quotes.
    pub raw: String,
    pub value: WordValue,
}

/// Value of a word, an operand or a redirect target.
///
/// `~`, `~/x` and `$HOME` are already resolved. A variable that the command itself sets to a literal is replaced by
/// that value; this, `$'..'` and braces are listed in `unanalyzable` nevertheless.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum WordValue {
    /// Exactly this text.
    Literal(String),
    /// The files that match this pattern; quoted characters are escaped by a backslash.
    Glob(String),
    /// Known only when the command runs.
    Unknown {
        /// Literal text before the first unknown part.
        before: String,
        /// Text after the last unknown part, as a pattern like that of `Glob`.
        after: String,
        /// True if the shell stops when the unknown part is empty (`${D:?}`).
        nonempty: bool,
    },
}

impl WordValue {
    /// A value of which nothing is known.
    pub(crate) const FULLY_UNKNOWN: Self =
        Self::Unknown { before: String::new(), after: String::new(), nonempty: false };

    /// The text, if it is certain.
    pub fn as_literal(&self) -> Option<&str> {
        match self {
            Self::Literal(text) => Some(text),
            Self::Glob(_) | Self::Unknown { .. } => None,
        }
    }

    /// The text, or its part before the first unknown part.
    pub(crate) fn known_start(&self) -> &str {
        match self {
            Self::Literal(text) | Self::Glob(text) => text,
            Self::Unknown { before, .. } => before,
        }
    }

    /// Returns true if at least a part is unknown.
    pub fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown { .. })
    }
}
