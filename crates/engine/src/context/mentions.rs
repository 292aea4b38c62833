//! Finds `@path` mentions in a Markdown text (pure). Code is ignored.

use pulldown_cmark::{Event, Options, Parser, Tag};

const TRAILING_PUNCTUATION: [char; 9] = ['.', ',', ';', ':', '!', '?', ')', '"', '\''];

/// Limit on mentions in one text.
pub const MAX_MENTIONS: usize = 100;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mention {
    /// As written, without escaping backslashes and without `#fragment`.
    pub path: String,
    /// The same without trailing punctuation, if there is any.
    pub trimmed: Option<String>,
}

impl Mention {
    /// Candidate paths, longest first.
    pub fn candidates(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.path.as_str()).chain(self.trimmed.as_deref())
    }
}

/// The first `MAX_MENTIONS` distinct mentions in order, and whether there are more.
pub fn find_mentions(text: &str) -> (Vec<Mention>, bool) {
    // Most texts have none and need no parsing.
    if !text.contains('@') {
        return (Vec::new(), false);
    }
    let text = blank_code(text);
    let mut found = Vec::new();
    let mut previous = ' ';
    for (at, c) in text.char_indices() {
        if c == '@'
            && (previous.is_whitespace() || previous == '(')
            && let Some(mention) = parse_mention(&text[at + 1..])
            && !found.contains(&mention)
        {
            if found.len() == MAX_MENTIONS {
                return (found, true);
            }
            found.push(mention);
        }
        previous = c;
    }
    (found, false)
}

/// Parses the path at the beginning of a text.
fn parse_mention(text: &str) -> Option<Mention> {
    let mut path = String::new();
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        match c {
            '\\' if characters.peek() == Some(&' ') => path.extend(characters.next()),
            c if c.is_whitespace() => break,
            c => path.push(c),
        }
    }
    if let Some((before, _)) = path.split_once('#') {
        path.truncate(before.len());
    }
    let has_valid_start = path.starts_with(|c: char| c.is_alphanumeric() || ".~/_-".contains(c));
    if !has_valid_start || path == "/" {
        return None;
    }
    let trimmed = path.trim_end_matches(TRAILING_PUNCTUATION);
    let trimmed = (trimmed != path && !trimmed.is_empty()).then(|| trimmed.to_owned());
    Some(Mention { path, trimmed })
}

/// Replaces code by blanks.
fn blank_code(text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for (event, range) in Parser::new_ext(text, Options::empty()).into_offset_iter() {
        // Indented text is often a list, so only fenced blocks count as code.
        let fenced = matches!(&event, Event::Start(Tag::CodeBlock(pulldown_cmark::CodeBlockKind::Fenced(_))));
        if fenced || matches!(event, Event::Code(_)) {
            bytes[range].iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
        }
    }
    // Whole characters were replaced, so the text is valid UTF-8.
    String::from_utf8(bytes).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mentions_are_found_outside_code() {
        let rows: [(&str, &[&str]); 16] = [
            ("@a.md", &["a.md"]),
            ("see @docs/a.md and @~/b.md", &["docs/a.md", "~/b.md"]),
            ("- @./a.md\n- @../b\n", &["./a.md", "../b"]),
            ("(@/etc/x)", &["/etc/x)", "/etc/x"]),
            ("Read @a.md.", &["a.md.", "a.md"]),
            ("@my\\ notes.md", &["my notes.md"]),
            ("@a.md#part", &["a.md"]),
            ("@größe.md", &["größe.md"]),
            ("@a @a", &["a"]),
            ("me@example.com", &[]),
            ("@ @@x @# @/", &[]),
            ("`@a.md` and ``x @b.md``", &[]),
            ("```\n@a.md\n```\n@b.md", &["b.md"]),
            ("~~~~\n@a.md\n```\n@c\n~~~~", &[]),
            ("```\n@open.md", &[]),
            ("    @indented.md", &["indented.md"]),
        ];
        for (text, expected) in rows {
            let (found, _) = find_mentions(text);
            let found: Vec<&str> = found.iter().flat_map(Mention::candidates).collect();
            assert_eq!(found, expected, "{text:?}");
        }
    }

    #[test]
    fn number_of_mentions_is_limited() {
        let text = |count: usize| (0..count).map(|n| format!("@{n} ")).collect::<String>();
        for (count, expected) in [(MAX_MENTIONS, false), (1_000, true)] {
            let (found, has_more) = find_mentions(&text(count));
            assert_eq!((found.len(), has_more), (MAX_MENTIONS, expected));
        }
    }
}
