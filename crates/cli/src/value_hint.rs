//! What a shell can suggest for the value of a flag.

/// Suggestions for a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ValueHint {
    /// No suggestion: a text, a number, an id.
    Any,
    /// One of these words.
    Words(&'static [&'static str]),
    /// Some of these words, separated by commas.
    WordList(&'static [&'static str]),
    /// Names of built-in tools, separated by commas.
    ToolList,
    /// A file.
    File,
    /// A directory.
    Directory,
}

impl ValueHint {
    /// Derives the hint from the name of a value on the help page, such as `FILE` or `DIRS`.
    pub(crate) fn from_value_name(name: &str) -> Self {
        match name.split('|').next() {
            Some("FILE") => Self::File,
            Some("DIR" | "DIRS") => Self::Directory,
            _ => Self::Any,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_directories_are_recognized_by_name() {
        for (name, hint) in [
            ("FILE", ValueHint::File),
            ("FILE|JSON", ValueHint::File),
            ("DIR", ValueHint::Directory),
            ("DIRS", ValueHint::Directory),
            ("JSON", ValueHint::Any),
            ("N", ValueHint::Any),
        ] {
            assert_eq!(ValueHint::from_value_name(name), hint, "{name}");
        }
    }
}
