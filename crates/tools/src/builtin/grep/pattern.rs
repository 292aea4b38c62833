//! The regular expression, and error messages for invalid ones.

use grep_matcher::LineTerminator;
use grep_regex::{Error, ErrorKind, RegexMatcher, RegexMatcherBuilder};
use grep_searcher::SearcherBuilder;

use super::GrepInput;
use crate::api::ToolError;

/// A compiled pattern.
#[derive(Debug, Clone)]
pub(super) struct SearchPattern {
    pub(super) matcher: RegexMatcher,
    span: MatchSpan,
}

/// What a match may span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MatchSpan {
    /// Part of one line.
    Line,
    /// Part of one line; the pattern contains `$`, which must also match before CRLF.
    LineWithEnd,
    /// Several lines.
    Lines,
}

impl SearchPattern {
    /// Compiles the pattern of a call.
    pub(super) fn from_input(input: &GrepInput) -> Result<Self, ToolError> {
        let mut builder = RegexMatcherBuilder::new();
        builder.multi_line(true).case_insensitive(input.ignore_case);
        let span = if input.multiline {
            MatchSpan::Lines
        } else if input.pattern.contains('$') {
            MatchSpan::LineWithEnd
        } else {
            MatchSpan::Line
        };
        match span {
            MatchSpan::Line => builder.line_terminator(Some(b'\n')),
            MatchSpan::LineWithEnd => builder.crlf(true),
            MatchSpan::Lines => builder.dot_matches_new_line(true),
        };
        match builder.build(&input.pattern) {
            Ok(matcher) => Ok(Self { matcher, span }),
            // The pattern contains line terminators, so let it span lines; `.` still does not match them.
            Err(error) if span != MatchSpan::Lines && matches!(error.kind(), ErrorKind::NotAllowed(_)) => {
                builder
                    .crlf(false)
                    .build(&input.pattern)
                    .map(|matcher| Self { matcher, span: MatchSpan::Lines })
                    .map_err(|error| regex_error(&input.pattern, &error))
            }
            Err(error) => Err(regex_error(&input.pattern, &error)),
        }
    }

    /// Configures a searcher for this pattern.
    pub(super) fn configure(&self, searcher: &mut SearcherBuilder) {
        match self.span {
            MatchSpan::Line => searcher,
            MatchSpan::LineWithEnd => searcher.line_terminator(LineTerminator::crlf()),
            MatchSpan::Lines => searcher.multi_line(true),
        };
    }
}

/// Error with cause and the escaped pattern.
fn regex_error(pattern: &str, error: &Error) -> ToolError {
    let text = error.to_string();
    let reason = text.lines().rev().find_map(|line| line.strip_prefix("error: ")).unwrap_or(&text);
    let hint = if reason.contains("look-around") || reason.contains("backreferences") {
        "Use a simpler pattern and filter the matches.".to_owned()
    } else {
        format!(
            "Escape literal braces, brackets and parentheses; as literal text: `{}`.",
            escape_regex(pattern)
        )
    };
    ToolError::Rejected(format!("`{pattern}` is not a valid regex: {}. {hint}", reason.trim_end_matches('.')))
}

fn escape_regex(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() * 2);
    for c in text.chars() {
        if r"\.+*?()|[]{}^$".contains(c) {
            escaped.push('\\');
        }
        escaped.push(c);
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
    fn an_invalid_pattern_is_explained() {
        assert_eq!(
            error_reason("interface{}"),
            "`interface{}` is not a valid regex: repetition quantifier expects a valid decimal. Escape literal braces, \
             brackets and parentheses; as literal text: `interface\\{\\}`."
        );
        assert!(error_reason("foo(").contains("unclosed group"));
        assert!(error_reason("[a").contains("unclosed character class"));
        assert!(error_reason("(?<!a)b").ends_with("filter the matches."));
    }
}
