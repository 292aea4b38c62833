//! Text from a model, a file or a program, made harmless: what could control the terminal or hide itself becomes a
//! visible escape. Every [`Line`](super::Line) is built through this.

use std::borrow::Cow;
use std::fmt::Write as _;

use unicode_width::UnicodeWidthChar;

const TAB: &str = "    ";

/// Replaces control characters, invisible characters and marks of the display order by visible escapes, and tabs by
/// blanks. A line break becomes `\n` in two characters.
pub(crate) fn sanitize(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        return Cow::Borrowed(text);
    }
    let mut clean = String::with_capacity(text.len() + 16);
    let mut last: Option<char> = None;
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\t' => clean.push_str(TAB),
            _ if joins(character, last, characters.peek().copied()) => clean.push(character),
            _ if is_hidden(character) || (last.is_none() && is_combining(character)) => {
                push_escape(character, &mut clean);
            }
            _ => clean.push(character),
        }
        last = Some(character);
    }
    Cow::Owned(clean)
}

/// Splits a text at its line breaks and sanitizes each line. A final line break ends the last line and starts none.
pub(crate) fn sanitize_lines(text: &str) -> Vec<String> {
    text.lines().map(|line| sanitize(line).into_owned()).collect()
}

/// Joiners are kept where scripts and emoji need them: between two characters outside ASCII.
fn joins(character: char, before: Option<char>, after: Option<char>) -> bool {
    let is_outside_ascii = |side: Option<char>| side.is_some_and(|side| !side.is_ascii() && !is_hidden(side));
    matches!(character, '\u{200c}' | '\u{200d}') && is_outside_ascii(before) && is_outside_ascii(after)
}

fn is_hidden(character: char) -> bool {
    character.is_control()
        || whimbrel::wire::invisible::is_invisible(character)
        || is_line_separator(character)
}

fn is_line_separator(character: char) -> bool {
    matches!(character, '\u{2028}' | '\u{2029}' | '\u{fe0e}')
}

/// True for marks that a terminal would add to the cell before.
fn is_combining(character: char) -> bool {
    character.width() == Some(0)
}

fn push_escape(character: char, clean: &mut String) {
    let code = u32::from(character);
    // Writing to a string cannot fail.
    let _ = match character {
        '\n' => clean.write_str("\\n"),
        '\r' => clean.write_str("\\r"),
        _ if code < 0x100 => write!(clean, "\\x{code:02x}"),
        _ => write!(clean, "\\u{{{code:x}}}"),
    };
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn hidden_characters_become_visible() {
        let rows = [
            ("plain", "plain"),
            ("a\x1b[2Jb", "a\\x1b[2Jb"),
            ("bell\x07 c1\u{9b}31m", "bell\\x07 c1\\x9b31m"),
            ("a\tb", "a    b"),
            ("a\nb\rc", "a\\nb\\rc"),
            ("txt\u{202e}exe", "txt\\u{202e}exe"),
            ("a\u{200d}b", "a\\u{200d}b"),
            ("👨\u{200d}👩\u{200d}👧", "👨\u{200d}👩\u{200d}👧"),
            ("\u{301}x", "\\u{301}x"),
            ("e\u{301}", "e\u{301}"),
            ("tag\u{e0041}", "tag\\u{e0041}"),
        ];
        for (text, expected) in rows {
            assert_eq!(sanitize(text), expected, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn sanitized_text_has_no_control_characters(text in ".*") {
            prop_assert!(!sanitize(&text).chars().any(char::is_control));
        }
    }
}
