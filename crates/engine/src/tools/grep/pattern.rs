//! The pattern: a regular expression in Rust's syntax, and what to tell the model when it is none.

use grep_matcher::LineTerminator;
use grep_regex::{Error, ErrorKind, RegexMatcher, RegexMatcherBuilder};
use grep_searcher::SearcherBuilder;

use super::Input;
use crate::tools::Trouble;

/// A pattern that can be searched for.
#[derive(Debug, Clone)]
pub(super) struct Pattern {
    pub(super) matcher: RegexMatcher,
    reach: Reach,
}

/// What a match may span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// A part of one line.
    Line,
    /// The same; the pattern asks for line ends, which may be those of Windows.
    LineWithEnd,
    /// Several lines.
    Lines,
}

impl Pattern {
    /// Reads the pattern of a call.
    pub(super) fn of(input: &Input) -> Result<Self, Trouble> {
        let mut builder = RegexMatcherBuilder::new();
        builder.multi_line(true).case_insensitive(input.ignore_case);
        let reach = if input.multiline {
            Reach::Lines
        } else if input.pattern.contains('$') {
            Reach::LineWithEnd
        } else {
            Reach::Line
        };
        match reach {
            Reach::Line => builder.line_terminator(Some(b'\n')),
            Reach::LineWithEnd => builder.crlf(true),
            Reach::Lines => builder.dot_matches_new_line(true),
        };
        match builder.build(&input.pattern) {
            Ok(matcher) => Ok(Self { matcher, reach }),
            // It speaks of line ends, so it is meant to span lines; a dot still stays in its line.
            Err(error) if reach != Reach::Lines && matches!(error.kind(), ErrorKind::NotAllowed(_)) => {
                builder
                    .crlf(false)
                    .build(&input.pattern)
                    .map(|matcher| Self { matcher, reach: Reach::Lines })
                    .map_err(|error| refusal(&input.pattern, &error))
            }
            Err(error) => Err(refusal(&input.pattern, &error)),
        }
    }

    /// Sets a searcher up for it.
    pub(super) fn prepare(&self, searcher: &mut SearcherBuilder) {
        match self.reach {
            Reach::Line => searcher,
            Reach::LineWithEnd => searcher.line_terminator(LineTerminator::crlf()),
            Reach::Lines => searcher.multi_line(true),
        };
    }
}

/// Says in plain words what is wrong, and how the pattern is written as plain text.
fn refusal(pattern: &str, error: &Error) -> Trouble {
    let text = error.to_string();
    let reason = text.lines().rev().find_map(|line| line.strip_prefix("error: ")).unwrap_or(&text);
    let hint = if reason.contains("look-around") || reason.contains("backreferences") {
        "Search for something simpler and choose from the matches.".to_owned()
    } else {
        format!(
            "Literal braces, brackets and parentheses need a backslash; as plain text it would be `{}`.",
            escaped(pattern)
        )
    };
    Trouble::Refused(format!("`{pattern}` is not a valid regex: {}. {hint}", reason.trim_end_matches('.')))
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() * 2);
    for letter in text.chars() {
        if r"\.+*?()|[]{}^$".contains(letter) {
            escaped.push('\\');
        }
        escaped.push(letter);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn reason(pattern: &str) -> String {
        let input = serde_json::from_value(json!({"pattern": pattern})).unwrap();
        Pattern::of(&input).unwrap_err().reason().to_owned()
    }

    #[test]
    fn a_broken_pattern_is_explained_in_one_sentence() {
        assert_eq!(
            reason("interface{}"),
            "`interface{}` is not a valid regex: repetition quantifier expects a valid decimal. Literal braces, \
             brackets and parentheses need a backslash; as plain text it would be `interface\\{\\}`."
        );
        assert!(reason("foo(").contains("unclosed group"));
        assert!(reason("[a").contains("unclosed character class"));
        assert!(reason("(?<!a)b").ends_with("choose from the matches."));
    }
}
