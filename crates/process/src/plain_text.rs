//! Terminal output as plain text: invalid UTF-8 is replaced, escape sequences and control characters are removed.

use std::mem;

/// Converts complete output.
pub(crate) fn to_plain_text(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    let mut decoder = PlainTextDecoder::default();
    decoder.push(bytes, &mut text);
    decoder.finish(&mut text);
    text
}

/// Converts output that arrives in pieces. Characters and escape sequences may be split between pieces; the result is
/// the same as for the whole.
#[derive(Debug, Default)]
pub struct PlainTextDecoder {
    /// The beginning of a character whose rest is still to come.
    partial: Vec<u8>,
    sequence: SequenceState,
}

/// Position within an escape sequence.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum SequenceState {
    /// Outside of any sequence.
    #[default]
    Text,
    /// After the escape character.
    Escape,
    /// In the parameters of a control sequence.
    Parameters,
    /// In the intermediate bytes of a control sequence.
    Intermediates,
    /// In the intermediate bytes of another sequence.
    ShortIntermediates,
    /// In a string such as a window title; an unterminated one ends with its line.
    String,
    /// After an escape character within a string, which may be its end.
    StringEscape,
}

impl PlainTextDecoder {
    /// Converts the next piece and appends the text to `out`.
    pub fn push(&mut self, bytes: &[u8], out: &mut String) {
        let mut joined = mem::take(&mut self.partial);
        let bytes = if joined.is_empty() {
            bytes
        } else {
            joined.extend_from_slice(bytes);
            &joined
        };
        let mut end = 0;
        for chunk in bytes.utf8_chunks() {
            self.push_text(chunk.valid(), out);
            end += chunk.valid().len() + chunk.invalid().len();
            if end == bytes.len() && is_incomplete(chunk.invalid()) {
                self.partial = chunk.invalid().to_vec();
            } else if !chunk.invalid().is_empty() {
                self.push_text(REPLACEMENT, out);
            }
        }
    }

    /// Ends the output: an incomplete character is replaced.
    pub fn finish(mut self, out: &mut String) {
        if !self.partial.is_empty() {
            self.push_text(REPLACEMENT, out);
        }
    }

    fn push_text(&mut self, mut text: &str, out: &mut String) {
        loop {
            if self.sequence == SequenceState::Text {
                let (plain, rest) =
                    text.split_at(text.bytes().position(is_control_byte).unwrap_or(text.len()));
                out.push_str(plain);
                text = rest;
            }
            let mut rest = text.chars();
            let Some(character) = rest.next() else { return };
            self.push_char(character, out);
            text = rest.as_str();
        }
    }

    fn push_char(&mut self, character: char, out: &mut String) {
        use SequenceState::{
            Escape, Intermediates, Parameters, ShortIntermediates, String, StringEscape, Text,
        };
        self.sequence = match (self.sequence, character) {
            (StringEscape, '\\') | (String, '\x07') => Text,
            (String, '\x1b') => StringEscape,
            (String, character) if character != '\n' => String,
            (Escape | StringEscape, '[') => Parameters,
            (Escape | StringEscape, ']' | 'P' | 'X' | '^' | '_') => String,
            (Parameters, '\x30'..='\x3f') => Parameters,
            (Parameters | Intermediates, ' '..='/') => Intermediates,
            (Parameters | Intermediates, '\x40'..='\x7e') => Text,
            (Escape | StringEscape | ShortIntermediates, ' '..='/') => ShortIntermediates,
            (Escape | StringEscape | ShortIntermediates, '\x30'..='\x7e') => Text,
            (_, '\x1b') => Escape,
            (_, character) => {
                if !is_control_char(character) {
                    out.push(character);
                }
                Text
            }
        };
    }
}

const REPLACEMENT: &str = "\u{fffd}";

/// Returns whether these bytes are the beginning of a character.
fn is_incomplete(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

fn is_control_byte(byte: u8) -> bool {
    byte == 0x7f || (byte < 0x20 && !matches!(byte, b'\n' | b'\t' | b'\r'))
}

fn is_control_char(character: char) -> bool {
    u8::try_from(character).is_ok_and(is_control_byte)
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
            ("an escape within a string", b"\x1b]0;title\x1b[31mred", "red"),
            ("a parameter after an intermediate", b"\x1b[ 1m", "1m"),
            ("a cut character", b"a\xe2\x82b\xe2\x82", "a\u{fffd}b\u{fffd}"),
            ("nothing", b"", ""),
        ] {
            assert_eq!(to_plain_text(bytes), text, "{name}");
            for cut in 0..=bytes.len() {
                let (mut decoder, mut joined) = (PlainTextDecoder::default(), String::new());
                decoder.push(&bytes[..cut], &mut joined);
                decoder.push(&bytes[cut..], &mut joined);
                decoder.finish(&mut joined);
                assert_eq!(joined, text, "{name}, cut at {cut}");
            }
        }
    }
}
