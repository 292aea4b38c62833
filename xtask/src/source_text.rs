//! Rust source as plain text for checks that need no parser: without comments, strings and test items.

/// Removes comments, and the contents of string and character literals.
pub(crate) fn remove_comments_and_strings(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let skipped = comment_length(rest).or_else(|| literal_length(rest));
        // A name such as `r` or `b` directly before a quote belongs to the literal; a longer name does not.
        let in_name = out.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        match skipped {
            Some(length) if !(in_name && first.is_alphabetic()) => {
                if !rest.starts_with('/') {
                    out.push_str("\"\"");
                }
                rest = &rest[length..];
            }
            _ => {
                out.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
    }
    out
}

fn comment_length(rest: &str) -> Option<usize> {
    if rest.starts_with("//") {
        return Some(rest.find('\n').unwrap_or(rest.len()));
    }
    rest.starts_with("/*").then(|| rest.find("*/").map_or(rest.len(), |end| end + 2))
}

fn literal_length(rest: &str) -> Option<usize> {
    let prefix = ["br", "cr", "b", "c", "r", ""].into_iter().find(|prefix| {
        let after = rest.strip_prefix(prefix);
        after.is_some_and(|after| after.starts_with('"') || (prefix.ends_with('r') && after.starts_with('#')))
    });
    if let Some(prefix) = prefix {
        return string_length(&rest[prefix.len()..], prefix.ends_with('r'))
            .map(|length| prefix.len() + length);
    }
    // A character, not a lifetime: `'x'` or `'\..'`.
    let inner = rest.strip_prefix('\'')?;
    if let Some(escaped) = inner.strip_prefix('\\') {
        let after = escaped.chars().next()?.len_utf8();
        return escaped[after..].find('\'').map(|end| 2 + after + end + 1);
    }
    let first = inner.chars().next()?.len_utf8();
    inner[first..].starts_with('\'').then_some(first + 2)
}

fn string_length(quoted: &str, raw: bool) -> Option<usize> {
    if raw {
        let hashes = quoted.chars().take_while(|c| *c == '#').count();
        let body = quoted[hashes..].strip_prefix('"')?;
        let end = format!("\"{}", "#".repeat(hashes));
        return Some(body.find(&end).map_or(quoted.len(), |at| hashes + 1 + at + end.len()));
    }
    let mut escaped = false;
    for (at, c) in quoted.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return Some(at + 1),
            _ => {}
        }
    }
    Some(quoted.len())
}

/// Removes items, statements and fields that are compiled for tests only.
pub(crate) fn remove_test_items(code: &str) -> String {
    let mut out = String::with_capacity(code.len());
    let mut rest = code;
    while let Some((start, end)) = find_test_attribute(rest) {
        out.push_str(&rest[..start]);
        let item = &rest[end..];
        rest = &item[item_length(item)..];
    }
    out.push_str(rest);
    out
}

/// Finds the next `#[cfg(test)]` or `#[cfg(all(test, ..))]`.
fn find_test_attribute(code: &str) -> Option<(usize, usize)> {
    let starts = ["#[cfg(test)", "#[cfg(all(test,"].into_iter().filter_map(|attribute| code.find(attribute));
    let start = starts.min()?;
    Some((start, start + code[start..].find(']')? + 1))
}

/// Words that begin an item; a comma outside brackets does not end it.
const ITEM_KEYWORDS: [&str; 12] =
    ["async", "const", "enum", "extern", "fn", "impl", "mod", "static", "struct", "trait", "type", "use"];

/// The length of an item: to the end of its block, or to the semicolon or comma that ends it.
fn item_length(item: &str) -> usize {
    let is_list_element = !begins_with_item_keyword(item);
    let mut depth = 0_usize;
    for (at, c) in item.char_indices() {
        match c {
            '{' | '(' | '[' => depth += 1,
            '}' if depth == 1 => return at + 1 + usize::from(item[at + 1..].starts_with(';')),
            '}' | ')' | ']' if depth == 0 => return at,
            '}' | ')' | ']' => depth -= 1,
            ';' if depth == 0 => return at + 1,
            ',' if depth == 0 && is_list_element => return at + 1,
            _ => {}
        }
    }
    item.len()
}

/// Returns true if the first word after attributes and visibility is the keyword of an item.
fn begins_with_item_keyword(item: &str) -> bool {
    let mut rest = item.trim_start();
    while let Some((_, after)) = rest.strip_prefix("#[").and_then(|attribute| attribute.split_once(']')) {
        rest = after.trim_start();
    }
    if let Some(after) = rest.strip_prefix("pub") {
        let scope_end = if after.starts_with('(') { after.find(')').map_or(0, |end| end + 1) } else { 0 };
        rest = after[scope_end..].trim_start();
    }
    let word = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
    ITEM_KEYWORDS.contains(&word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_removed() {
        let rows = [
            ("a // b\nc", "a \nc"),
            ("a /* b */ c", "a  c"),
            ("f(\"x \\\" y\", b)", "f(\"\", b)"),
            ("r#\"crate::x\"# + y", "\"\" + y"),
            ("'\\'' 'a' &'a str", "\"\" \"\" &'a str"),
            ("br\"x\" bar\"x\"", "\"\" bar\"\""),
        ];
        for (text, expected) in rows {
            assert_eq!(remove_comments_and_strings(text), expected, "{text}");
        }
    }

    #[test]
    fn test_items_are_removed() {
        let rows = [
            ("a #[cfg(test)] mod tests { b } c", "a  c"),
            ("a #[cfg(test)] use b::{c, d}; e", "a  e"),
            ("{ a: 1, #[cfg(test)] b: 2, c: 3 }", "{ a: 1,  c: 3 }"),
            ("#[cfg(test)] fn f(a: [u8; 2]) { g() } h", " h"),
            ("#[cfg(test)] pub(crate) fn f<A, B>(a: A) { g() } h", " h"),
            ("#[cfg(test)] #[expect(x, reason)] impl<A, B> C<A, B> { g } h", " h"),
            ("#[cfg(all(test, feature))] mod tests; a #[cfg(feature)] mod b;", " a #[cfg(feature)] mod b;"),
        ];
        for (code, expected) in rows {
            assert_eq!(remove_test_items(code), expected, "{code}");
        }
    }
}
