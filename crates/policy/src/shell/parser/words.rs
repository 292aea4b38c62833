//! Parser for words: quotes and escapes up to the end of the word. Expansions are in `expansions`.

use super::cursor::{ParseResult, Parser, SYNTAX_ERROR};
use super::syntax::{RawWord, WordPiece};
use crate::shell::UnanalyzableCause;

/// Returns true if the byte ends a word outside quotes.
pub(crate) fn is_word_end(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'(' | b')' | b'<' | b'>')
}

fn measure_name(text: &str) -> usize {
    let bytes = text.as_bytes();
    match bytes.first() {
        Some(first) if first.is_ascii_alphabetic() || *first == b'_' => {
            bytes.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count()
        }
        _ => 0,
    }
}

/// Extracts the variable name at the start of the text.
pub(crate) fn extract_leading_name(text: &str) -> &str {
    text.get(..measure_name(text)).unwrap_or_default()
}

/// Appends text to the pieces of a word, extending the last one if it has the same quoting.
pub(crate) fn push_text(pieces: &mut Vec<WordPiece>, text: &str, quoted: bool) {
    match (pieces.last_mut(), quoted) {
        (Some(WordPiece::Plain(last)), false) | (Some(WordPiece::Quoted(last)), true) => last.push_str(text),
        (_, false) => pieces.push(WordPiece::Plain(text.to_owned())),
        (_, true) => pieces.push(WordPiece::Quoted(text.to_owned())),
    }
}

impl Parser<'_> {
    /// Parses one word; empty if there is none.
    pub(crate) fn parse_word(&mut self) -> ParseResult<RawWord> {
        self.parse_word_until(is_word_end)
    }

    /// Parses a word up to a byte outside quotes that ends it.
    pub(crate) fn parse_word_until(&mut self, ends: impl Fn(u8) -> bool) -> ParseResult<RawWord> {
        let start = self.position;
        let mut pieces = Vec::new();
        let mut document_count = 0;
        while let Some(byte) = self.peek() {
            match byte {
                b'<' | b'>' if self.byte_at(1) == Some(b'(') => {
                    self.position += 2;
                    self.parse_substitution()?;
                    pieces.push(WordPiece::Unknown);
                }
                _ if ends(byte) => break,
                b'\'' => {
                    let text = self.parse_single_quoted()?;
                    push_text(&mut pieces, text, true);
                }
                b'"' => {
                    self.position += 1;
                    document_count += self.parse_double_quoted(&mut pieces)?;
                }
                b'\\' => self.parse_escape(&mut pieces)?,
                b'$' => self.parse_dollar(&mut pieces, false)?,
                b'`' => self.parse_backquoted(&mut pieces, false)?,
                _ => {
                    let rest = self.rest();
                    let length = rest
                        .bytes()
                        .position(|byte| {
                            ends(byte) || matches!(byte, b'\'' | b'"' | b'\\' | b'$' | b'`' | b'<' | b'>')
                        })
                        .unwrap_or(rest.len())
                        .max(1);
                    push_text(&mut pieces, rest.get(..length).unwrap_or_default(), false);
                    self.position += length;
                }
            }
        }
        // The text of `$(cat <<'X' ..)` is literal only if the word contains nothing else.
        let is_only_piece = pieces.len() == 1
            && self.text_since(start).starts_with("\"$(")
            && self.text_since(start).ends_with(")\"");
        if document_count > 1 || (document_count == 1 && !is_only_piece) {
            self.result.note_unanalyzable(UnanalyzableCause::Substitution);
        }
        Ok(RawWord { raw: self.text_since(start).to_owned(), pieces })
    }

    pub(crate) fn parse_single_quoted(&mut self) -> ParseResult<&'_ str> {
        let rest = self.text.get(self.position + 1..).unwrap_or_default();
        let length = rest.find('\'').ok_or(SYNTAX_ERROR)?;
        self.position += length + 2;
        Ok(rest.get(..length).unwrap_or_default())
    }

    pub(crate) fn parse_escape(&mut self, pieces: &mut Vec<WordPiece>) -> ParseResult<()> {
        let next = self.rest().chars().nth(1).ok_or(SYNTAX_ERROR)?;
        self.position += 1 + next.len_utf8();
        if matches!(next, ' ' | '\t' | '\n') {
            self.result.note_unanalyzable(UnanalyzableCause::Quoting);
        }
        if next != '\n' {
            push_text(pieces, next.encode_utf8(&mut [0; 4]), true);
        }
        Ok(())
    }

    /// Parses double-quoted text with its closing quote. Returns the number of `cat` here-documents in it.
    pub(crate) fn parse_double_quoted(&mut self, pieces: &mut Vec<WordPiece>) -> ParseResult<usize> {
        let mut document_count = 0;
        // Even empty quotes make a word.
        push_text(pieces, "", true);
        loop {
            match self.peek().ok_or(SYNTAX_ERROR)? {
                b'"' => {
                    self.position += 1;
                    return Ok(document_count);
                }
                b'\\' => {
                    let next = self.rest().chars().nth(1).ok_or(SYNTAX_ERROR)?;
                    self.position += 1 + next.len_utf8();
                    match next {
                        '\n' => self.result.note_unanalyzable(UnanalyzableCause::Quoting),
                        '$' | '`' | '"' | '\\' => push_text(pieces, next.encode_utf8(&mut [0; 4]), true),
                        other => {
                            push_text(pieces, "\\", true);
                            push_text(pieces, other.encode_utf8(&mut [0; 4]), true);
                        }
                    }
                }
                b'$' => {
                    if let Some(text) = self.parse_cat_here_document()? {
                        document_count += 1;
                        push_text(pieces, &text, true);
                    } else {
                        self.parse_dollar(pieces, true)?;
                    }
                }
                b'`' => self.parse_backquoted(pieces, true)?,
                _ => {
                    let rest = self.rest();
                    let length = rest.find(['"', '\\', '$', '`']).unwrap_or(rest.len());
                    push_text(pieces, rest.get(..length).unwrap_or_default(), true);
                    self.position += length;
                }
            }
        }
    }

    /// Parses `$(cat <<'X' .. X)`: one quoted here-document printed by `cat`, which is literal text.
    fn parse_cat_here_document(&mut self) -> ParseResult<Option<String>> {
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
                self.position = self.text.len() - after.len();
                self.result.commands.push(super::syntax::RawCommand {
                    words: vec![RawWord { raw: "cat".into(), pieces: vec![WordPiece::Plain("cat".into())] }],
                    in_substitution: true,
                    substitution_depth: self.substitution_depth + 1,
                    ..Default::default()
                });
                return Ok(Some(body.trim_end_matches('\n').to_owned()));
            }
            length += line.len();
        }
        Ok(None)
    }
}
