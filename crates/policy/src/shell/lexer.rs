//! Words: quotes and escapes, up to where the word ends. What begins with `$` or a backquote is in `expansions`.

use super::Kind;
use super::cursor::{Parsed, Parser, WRONG};
use super::syntax::{Piece, RawWord};

/// Whether the byte ends a word when it stands outside quotes.
pub(super) fn ends_word(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'(' | b')' | b'<' | b'>')
}

fn name_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    match bytes.first() {
        Some(first) if first.is_ascii_alphabetic() || *first == b'_' => {
            bytes.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count()
        }
        _ => 0,
    }
}

/// The variable's name at the start of the text.
pub(super) fn leading_name(text: &str) -> &str {
    text.get(..name_length(text)).unwrap_or_default()
}

/// Adds text to a list of pieces, to the last one where that is of the same sort.
pub(super) fn push(pieces: &mut Vec<Piece>, text: &str, quoted: bool) {
    match (pieces.last_mut(), quoted) {
        (Some(Piece::Plain(last)), false) | (Some(Piece::Quoted(last)), true) => last.push_str(text),
        (_, false) => pieces.push(Piece::Plain(text.to_owned())),
        (_, true) => pieces.push(Piece::Quoted(text.to_owned())),
    }
}

impl Parser<'_> {
    /// Reads one word; it may be empty if something else stands here.
    pub(super) fn word(&mut self) -> Parsed<RawWord> {
        self.word_until(ends_word)
    }

    /// Reads up to a byte outside quotes at which the word ends.
    pub(super) fn word_until(&mut self, ends: impl Fn(u8) -> bool) -> Parsed<RawWord> {
        let start = self.at;
        let mut pieces = Vec::new();
        let mut messages = 0;
        while let Some(byte) = self.peek() {
            match byte {
                b'<' | b'>' if self.byte(1) == Some(b'(') => {
                    self.at += 2;
                    self.substitution()?;
                    pieces.push(Piece::Unknown);
                }
                _ if ends(byte) => break,
                b'\'' => {
                    let text = self.single_quoted()?;
                    push(&mut pieces, text, true);
                }
                b'"' => {
                    self.at += 1;
                    messages += self.double_quoted(&mut pieces)?;
                }
                b'\\' => self.escape(&mut pieces)?,
                b'$' => self.dollar(&mut pieces, false)?,
                b'`' => self.backquoted(&mut pieces, false)?,
                _ => {
                    let rest = self.rest();
                    let length = rest
                        .bytes()
                        .position(|byte| {
                            ends(byte) || matches!(byte, b'\'' | b'"' | b'\\' | b'$' | b'`' | b'<' | b'>')
                        })
                        .unwrap_or(rest.len())
                        .max(1);
                    push(&mut pieces, rest.get(..length).unwrap_or_default(), false);
                    self.at += length;
                }
            }
        }
        // A message by `cat` and a here-document is plain text only if the word is nothing else.
        let alone =
            pieces.len() == 1 && self.since(start).starts_with("\"$(") && self.since(start).ends_with(")\"");
        if messages > 1 || (messages == 1 && !alone) {
            self.found.note(Kind::Substitution);
        }
        Ok(RawWord { raw: self.since(start).to_owned(), pieces })
    }

    pub(super) fn single_quoted(&mut self) -> Parsed<&'_ str> {
        let rest = self.text.get(self.at + 1..).unwrap_or_default();
        let length = rest.find('\'').ok_or(WRONG)?;
        self.at += length + 2;
        Ok(rest.get(..length).unwrap_or_default())
    }

    pub(super) fn escape(&mut self, pieces: &mut Vec<Piece>) -> Parsed<()> {
        let next = self.rest().chars().nth(1).ok_or(WRONG)?;
        self.at += 1 + next.len_utf8();
        if matches!(next, ' ' | '\t' | '\n') {
            self.found.note(Kind::Quoting);
        }
        if next != '\n' {
            push(pieces, next.encode_utf8(&mut [0; 4]), true);
        }
        Ok(())
    }

    /// Reads the inside of double quotes and the closing one; answers how many messages by `cat` it holds.
    pub(super) fn double_quoted(&mut self, pieces: &mut Vec<Piece>) -> Parsed<usize> {
        let mut messages = 0;
        // Even nothing between the quotes makes a word.
        push(pieces, "", true);
        loop {
            match self.peek().ok_or(WRONG)? {
                b'"' => {
                    self.at += 1;
                    return Ok(messages);
                }
                b'\\' => {
                    let next = self.rest().chars().nth(1).ok_or(WRONG)?;
                    self.at += 1 + next.len_utf8();
                    match next {
                        '\n' => self.found.note(Kind::Quoting),
                        '$' | '`' | '"' | '\\' => push(pieces, next.encode_utf8(&mut [0; 4]), true),
                        other => {
                            push(pieces, "\\", true);
                            push(pieces, other.encode_utf8(&mut [0; 4]), true);
                        }
                    }
                }
                b'$' => {
                    if let Some(text) = self.message()? {
                        messages += 1;
                        push(pieces, &text, true);
                    } else {
                        self.dollar(pieces, true)?;
                    }
                }
                b'`' => self.backquoted(pieces, true)?,
                _ => {
                    let rest = self.rest();
                    let length = rest.find(['"', '\\', '$', '`']).unwrap_or(rest.len());
                    push(pieces, rest.get(..length).unwrap_or_default(), true);
                    self.at += length;
                }
            }
        }
    }

    /// `$(cat <<'X' .. X)`: one quoted here-document handed on by `cat`, which is plain text.
    fn message(&mut self) -> Parsed<Option<String>> {
        let Some(rest) = self.rest().strip_prefix("$(") else { return Ok(None) };
        let Some(rest) = rest.trim_start_matches([' ', '\t']).strip_prefix("cat ") else { return Ok(None) };
        let Some(rest) = rest.trim_start_matches([' ', '\t']).strip_prefix("<<'") else { return Ok(None) };
        let Some((delimiter, rest)) = rest.split_once('\'') else { return Ok(None) };
        let Some(rest) = rest.trim_start_matches([' ', '\t']).strip_prefix('\n') else { return Ok(None) };
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        if delimiter.is_empty() || !delimiter.bytes().all(plain) || !self.pending.is_empty() {
            return Ok(None);
        }
        let mut length = 0;
        for line in rest.split_inclusive('\n') {
            if line.strip_suffix('\n').unwrap_or(line) == delimiter {
                let body = rest.get(..length).unwrap_or_default();
                let after = rest.get(length + line.len()..).unwrap_or_default();
                let Some(after) = after.trim_start_matches([' ', '\t', '\n']).strip_prefix(')') else {
                    return Ok(None);
                };
                self.at = self.text.len() - after.len();
                self.found.commands.push(super::syntax::Simple {
                    words: vec![RawWord { raw: "cat".into(), pieces: vec![Piece::Plain("cat".into())] }],
                    hidden: true,
                    within: self.within + 1,
                    ..Default::default()
                });
                return Ok(Some(body.trim_end_matches('\n').to_owned()));
            }
            length += line.len();
        }
        Ok(None)
    }
}
