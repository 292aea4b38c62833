//! The pattern: a regular expression in Rust's syntax, and what to tell the model when it is none.

use grep_matcher::LineTerminator;
use grep_regex::{Error, ErrorKind, RegexMatcher, RegexMatcherBuilder};
use grep_searcher::SearcherBuilder;

use super::Input;
use crate::tools::ToolError;

/// A pattern that can be searched for.
#[derive(Debug, Clone)]
pub(super) struct SearchPattern {
    pub(super) matcher: RegexMatcher,
    span: MatchSpan,
}

/// What a match may span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MatchSpan {
    /// A part of one line.
    Line,
    /// The same; the pattern asks for line ends, which may be those of Windows.
    LineWithEnd,
    /// Several lines.
    Lines,
}

impl SearchPattern {
    /// Reads the pattern of a call.
    pub(super) fn from_input(input: &Input) -> Result<Self, ToolError> {
        let mut builder = RegexMatcherBuilder::new();
        builder.multi_line(true).case_insensitive(input.ignore_case);
        let reach = if input.multiline {
            MatchSpan::Lines
        } else if input.pattern.contains('$') {
            MatchSpan::LineWithEnd
        } else {
            MatchSpan::Line
        };
        match reach {
            MatchSpan::Line => builder.line_terminator(Some(b'\n')),
            MatchSpan::LineWithEnd => builder.crlf(true),
            MatchSpan::Lines => builder.dot_matches_new_line(true),
        };
        match builder.build(&input.pattern) {
            Ok(matcher) => Ok(Self { matcher, span: reach }),
            // It speaks of line ends, so it is meant to span lines; a dot still stays in its line.
            Err(error) if reach != MatchSpan::Lines && matches!(error.kind(), ErrorKind::NotAllowed(_)) => {
                builder
                    .crlf(false)
                    .build(&input.pattern)
                    .map(|matcher| Self { matcher, span: MatchSpan::Lines })
                    .map_err(|error| regex_error(&input.pattern, &error))
            }
            Err(error) => Err(regex_error(&input.pattern, &error)),
        }
    }

    /// Sets a searcher up for it.
    pub(super) fn configure(&self, searcher: &mut SearcherBuilder) {
        match self.span {
            MatchSpan::Line => searcher,
            MatchSpan::LineWithEnd => searcher.line_terminator(LineTerminator::crlf()),
            MatchSpan::Lines => searcher.multi_line(true),
        };
    }
}

/// Says in plain words what is wrong, and how the pattern is written as plain text.
fn regex_error(pattern: &str, error: &Error) -> ToolError {
    let text = error.to_string();
    let reason = text.lines().rev().find_map(|line| line.strip_prefix("error: ")).unwrap_or(&text);
    let hint = if reason.contains("look-around") || reason.contains("backreferences") {
        "Search for something simpler and choose from the matches.".to_owned()
    } else {
        format!(
            "Literal braces, brackets and parentheses need a backslash; as plain text it would be `{}`.",
            escape_regex(pattern)
        )
    };
    ToolError::Rejected(format!("`{pattern}` is not a valid regex: {}. {hint}", reason.trim_end_matches('.')))
}

fn escape_regex(text: &str) -> String {
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

    fn error_reason(pattern: &str) -> String {
        let input = serde_json::from_value(json!({"pattern": pattern})).unwrap();
        SearchPattern::from_input(&input).unwrap_err().reason().to_owned()
    }

    #[test]
    fn a_broken_pattern_is_explained_in_one_sentence() {
        assert_eq!(
            error_reason("interface{}"),
            "`interface{}` is not a valid regex: repetition quantifier expects a valid decimal. Literal braces, \
             brackets and parentheses need a backslash; as plain text it would be `interface\\{\\}`."
        );
        assert!(error_reason("foo(").contains("unclosed group"));
        assert!(error_reason("[a").contains("unclosed character class"));
        assert!(error_reason("(?<!a)b").ends_with("choose from the matches."));
    }
}
