//! Parses the header `WWW-Authenticate`. Pure.

use super::token::sanitize_text;

/// Missing scope of an `insufficient_scope` error (HTTP 403): the outer `None` for other errors, the inner one if no
/// scope is named.
pub(crate) fn missing_scope(header: &str) -> Option<Option<String>> {
    let is_scope_error = parameter(header, "error")?.eq_ignore_ascii_case("insufficient_scope");
    let scope =
        || parameter(header, "scope").map(|scope| sanitize_text(&scope)).filter(|scope| !scope.is_empty());
    is_scope_error.then(scope)
}

/// Value of a parameter, in any of the challenges.
pub(crate) fn parameter(header: &str, name: &str) -> Option<String> {
    let mut rest = header;
    loop {
        rest = rest.trim_start_matches(|c: char| c == ',' || c.is_whitespace());
        let end = rest.find(|c: char| c == '=' || c == ',' || c.is_whitespace())?;
        let (key, after) = rest.split_at(end);
        // A token without `=` is the name of a scheme.
        let Some(after) = after.trim_start().strip_prefix('=') else {
            rest = &rest[end..];
            continue;
        };
        let (value, after) = parse_value(after.trim_start());
        if key.eq_ignore_ascii_case(name) {
            return Some(value);
        }
        rest = after;
    }
}

/// Parses a value, quoted or not; returns it and the rest.
fn parse_value(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find(|c: char| c == ',' || c.is_whitespace()).unwrap_or(text.len());
        return (text[..end].to_owned(), &text[end..]);
    };
    let (mut value, mut escaped) = (String::new(), false);
    for (index, c) in quoted.char_indices() {
        match c {
            _ if escaped => {
                value.push(c);
                escaped = false;
            }
            '\\' => escaped = true,
            '"' => return (value, &quoted[index + 1..]),
            _ => value.push(c),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_scope_is_read_from_the_challenge() {
        for (name, header, expected) in [
            (
                "with scope",
                r#"Bearer error="insufficient_scope", scope="a:read b:write""#,
                Some(Some("a:read b:write")),
            ),
            ("without scope", r#"Bearer error="insufficient_scope""#, Some(None)),
            (
                "with control characters",
                "Bearer error=insufficient_scope, scope=\"a\u{1b}b\"",
                Some(Some("a b")),
            ),
            ("another error", r#"Bearer error="invalid_token", scope="a""#, None),
            ("no error", "Bearer", None),
        ] {
            let scope_found = missing_scope(header);
            assert_eq!(scope_found.as_ref().map(|scope| scope.as_deref()), expected, "{name}");
        }
    }

    #[test]
    fn a_parameter_is_found_in_any_position() {
        for (name, header, expected) in [
            ("alone", r#"Bearer resource_metadata="https://x.test/a""#, Some("https://x.test/a")),
            ("after others", r#"Bearer realm="a, b=c", resource_metadata=plain, x=1"#, Some("plain")),
            ("in another challenge", r#"Basic realm="r", Bearer Resource_Metadata = "m""#, Some("m")),
            ("only inside quotes", r#"Bearer realm="resource_metadata=no""#, None),
            ("escaped", r#"Bearer resource_metadata="a\"b""#, Some("a\"b")),
            ("cut off", r#"Bearer resource_metadata="a"#, Some("a")),
            ("a scheme only", "Bearer", None),
            ("nothing", "", None),
        ] {
            assert_eq!(parameter(header, "resource_metadata").as_deref(), expected, "{name}");
        }
    }
}
