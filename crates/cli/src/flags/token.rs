//! Tokenizer of the command line: an argument is a flag or text.

/// Kind of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// `--`: text from here on.
    End,
    /// `--name`, `--name=value` or `-n`.
    Flag {
        /// The name with its dashes.
        spelled: &'a str,
        /// The value after `=`.
        value: Option<&'a str>,
    },
    /// Anything else.
    Text(&'a str),
}

/// Classifies an argument. It is text if its name has a blank or does not begin with a letter.
pub(super) fn tokenize(argument: &str) -> Token<'_> {
    if argument == "--" {
        return Token::End;
    }
    let (spelled, value) = match argument.split_once('=') {
        Some((spelled, value)) if argument.starts_with("--") => (spelled, Some(value)),
        _ => (argument, None),
    };
    let name = spelled.strip_prefix("--").or_else(|| spelled.strip_prefix('-'));
    match name {
        Some(name) if name.starts_with(char::is_alphabetic) && !name.contains(char::is_whitespace) => {
            Token::Flag { spelled, value }
        }
        _ => Token::Text(argument),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_flags_or_text() {
        let flag = |spelled, value| Token::Flag { spelled, value };
        let rows = [
            ("--", Token::End),
            ("--model", flag("--model", None)),
            ("--model=x", flag("--model", Some("x"))),
            ("--tools=", flag("--tools", Some(""))),
            ("--settings={\"a\":\"b=c\"}", flag("--settings", Some("{\"a\":\"b=c\"}"))),
            ("--system-prompt=two words", flag("--system-prompt", Some("two words"))),
            ("-p", flag("-p", None)),
            ("-", Token::Text("-")),
            ("", Token::Text("")),
            ("-5", Token::Text("-5")),
            ("- a list", Token::Text("- a list")),
            ("--not a flag", Token::Text("--not a flag")),
            ("-x=1 is an equation", Token::Text("-x=1 is an equation")),
            ("hello", Token::Text("hello")),
        ];
        for (argument, expected) in rows {
            assert_eq!(tokenize(argument), expected, "{argument:?}");
        }
    }
}
