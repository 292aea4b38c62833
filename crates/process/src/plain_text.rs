//! Terminal output as plain text for the model.

/// Decodes bytes: invalid UTF-8 is replaced, escape sequences and control characters are removed.
pub(crate) fn to_plain_text(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    if text.bytes().any(is_control_byte) { strip_control_bytes(&text) } else { text.into_owned() }
}

fn is_control_byte(byte: u8) -> bool {
    byte == 0x7f || (byte < 0x20 && !matches!(byte, b'\n' | b'\t' | b'\r'))
}

fn strip_control_bytes(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.bytes().position(is_control_byte) {
        clean.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        rest = if rest[at..].starts_with('\x1b') { skip_escape(after) } else { after };
    }
    clean.push_str(rest);
    clean
}

/// Skips an escape sequence whose escape character has been removed.
fn skip_escape(rest: &str) -> &str {
    match rest.bytes().next() {
        Some(b'[') => skip_sequence(&rest[1..], 0x30..=0x3f, 0x40..=0x7e),
        Some(b']' | b'P' | b'X' | b'^' | b'_') => skip_string(&rest[1..]),
        _ => skip_sequence(rest, 0x20..=0x2f, 0x30..=0x7e),
    }
}

/// Skips parameters, intermediate bytes and the final byte; keeps what is not part of the sequence.
fn skip_sequence(
    rest: &str,
    parameters: std::ops::RangeInclusive<u8>,
    last: std::ops::RangeInclusive<u8>,
) -> &str {
    let rest = rest.trim_start_matches(|c: char| u8::try_from(c).is_ok_and(|c| parameters.contains(&c)));
    let rest = rest.trim_start_matches(|c: char| (' '..='/').contains(&c));
    match rest.bytes().next() {
        Some(byte) if last.contains(&byte) => &rest[1..],
        _ => rest,
    }
}

/// Skips a string such as a window title; an unterminated one ends with its line.
fn skip_string(rest: &str) -> &str {
    match rest.bytes().position(|byte| matches!(byte, 0x07 | 0x1b | b'\n')) {
        Some(at) if rest[at..].starts_with("\x1b\\") => &rest[at + 2..],
        Some(at) if rest[at..].starts_with('\x07') => &rest[at + 1..],
        Some(at) => &rest[at..],
        None => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_are_removed_and_text_is_kept() {
        for (name, bytes, text) in [
            ("plain text", "a\tb\r\nü\n".as_bytes(), "a\tb\r\nü\n"),
            ("colors", b"\x1b[1;31mred\x1b[0m and \x1b[?25lhidden", "red and hidden"),
            ("a title", b"\x1b]0;title\x07text", "text"),
            ("a link", b"\x1b]8;;http://x\x1b\\word\x1b]8;;\x1b\\", "word"),
            ("an open string", b"\x1b]0;title\nnext", "\nnext"),
            ("a character set", b"\x1b(Btext", "text"),
            ("zero, bell, backspace", b"a\0b\x07c\x08d", "abcd"),
            ("broken UTF-8", b"a\xffb", "a\u{fffd}b"),
            ("cut in a sequence", b"end\x1b[3", "end"),
            ("a lone escape", b"end\x1b", "end"),
            ("not ASCII after an escape", "\x1bü\x1b[ü".as_bytes(), "üü"),
        ] {
            assert_eq!(to_plain_text(bytes), text, "{name}");
        }
    }
}
