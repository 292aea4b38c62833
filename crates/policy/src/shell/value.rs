//! Words and what they stand for.

/// One word of a simple command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// As it is written, with its quotes.
    pub raw: String,
    /// What it stands for.
    pub value: WordValue,
}

/// What a word, an operand or the target of a redirect stands for.
///
/// `~`, `~/x` and `$HOME` are already resolved. A variable that the command itself gave a literal value stands for that
/// value; that, `$'..'` and braces are named in `unanalysable` all the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum WordValue {
    /// This text and no other.
    Literal(String),
    /// The files that match this pattern; characters that were quoted are escaped by a backslash.
    Glob(String),
    /// Not known before the command runs.
    Unknown {
        /// The literal text before the first unknown stretch.
        before: String,
        /// The text after the last unknown stretch, as a pattern like that of `Glob`.
        after: String,
        /// Whether the shell stops if the unknown stretch is empty (`${D:?}`).
        nonempty: bool,
    },
}

impl WordValue {
    /// The text, if it is certain.
    pub fn as_literal(&self) -> Option<&str> {
        match self {
            Self::Literal(text) => Some(text),
            Self::Glob(_) | Self::Unknown { .. } => None,
        }
    }

    /// Whether nothing at all is known.
    pub fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown { .. })
    }
}
