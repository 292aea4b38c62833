//! Parser for redirects, here-documents and here-strings.

use super::cursor::{ParseResult, Parser, PendingDocument, SYNTAX_ERROR};
use super::syntax::{HereDocument, RawCommand, RawRedirect, RawWord, StdinText, WordPiece};
use crate::shell::UnanalyzableCause;
use crate::shell::parser::words::{extract_leading_name, is_word_end};

/// The operators, longer ones first.
const OPERATORS: &[&str] = &["&>>", "<<<", "<<-", "&>", "<<", "<>", "<&", ">>", ">|", ">&", "<", ">"];

impl Parser<'_> {
    /// Parses a redirect if one is next.
    pub(crate) fn parse_redirect(&mut self, command: &mut RawCommand) -> ParseResult<bool> {
        let prefix = self.measure_descriptor();
        let rest = self.text.get(self.position + prefix..).unwrap_or_default();
        let Some(operator) = OPERATORS.iter().find(|operator| rest.starts_with(**operator)) else {
            return Ok(false);
        };
        let both = operator.starts_with('&');
        let process = matches!(*operator, "<" | ">") && rest.as_bytes().get(1) == Some(&b'(');
        if process || (both && prefix > 0) {
            return Ok(false);
        }
        if self.peek() == Some(b'{') {
            // The descriptor number is stored in a variable.
            self.result.note_unanalyzable(UnanalyzableCause::RedirectTarget);
        }
        command.may_fail |= self.peek() == Some(b'{');
        self.position += prefix + operator.len();
        self.skip_blanks();
        match *operator {
            "<<" | "<<-" => self.parse_here_document(command, *operator == "<<-")?,
            "<<<" => {
                let word = self.parse_target()?;
                command.stdin_texts.push(StdinText::HereString(word));
            }
            "<&" | ">&" => self.parse_duplicate(command, *operator == ">&")?,
            _ => {
                let target = self.parse_target()?;
                command.may_fail |= target.raw != "/dev/null";
                command.redirects.push(RawRedirect { writes: *operator != "<", target });
            }
        }
        Ok(true)
    }

    /// Measures the length of the number or `{name}` before an operator.
    fn measure_descriptor(&self) -> usize {
        let rest = self.rest();
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        if digits > 0 {
            return digits;
        }
        match rest.strip_prefix('{').map(extract_leading_name) {
            Some(name) if !name.is_empty() && rest.as_bytes().get(name.len() + 1) == Some(&b'}') => {
                name.len() + 2
            }
            _ => 0,
        }
    }

    fn parse_target(&mut self) -> ParseResult<RawWord> {
        // Neither a comment nor the number of another redirect is a target.
        let number = self.rest().bytes().take_while(u8::is_ascii_digit).count();
        let redirect = number > 0 && matches!(self.byte_at(number), Some(b'<' | b'>'));
        if self.peek() == Some(b'#') || redirect {
            return Err(SYNTAX_ERROR);
        }
        let word = self.parse_word()?;
        if word.raw.is_empty() || self.peek() == Some(b'(') { Err(SYNTAX_ERROR) } else { Ok(word) }
    }

    fn parse_duplicate(&mut self, command: &mut RawCommand, writes: bool) -> ParseResult<()> {
        let target = self.parse_target()?;
        command.may_fail |= !matches!(target.raw.as_str(), "0" | "1" | "2");
        if target.raw.bytes().all(|byte| byte.is_ascii_digit()) {
            return Ok(());
        }
        let closes = target
            .raw
            .strip_suffix('-')
            .is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
        if closes || !writes {
            self.result.note_unanalyzable(UnanalyzableCause::RedirectTarget);
        }
        if !closes {
            command.redirects.push(RawRedirect { writes, target });
        }
        Ok(())
    }

    fn parse_here_document(&mut self, command: &mut RawCommand, strips_tabs: bool) -> ParseResult<()> {
        let start = self.position;
        let mut delimiter = String::new();
        while let Some(byte) = self.peek().filter(|byte| !is_word_end(*byte)) {
            match byte {
                b'$' | b'`' => return Err(SYNTAX_ERROR),
                b'\'' | b'"' => {
                    let rest = self.text.get(self.position + 1..).unwrap_or_default();
                    let length = rest.find(byte as char).ok_or(SYNTAX_ERROR)?;
                    let text = rest.get(..length).unwrap_or_default();
                    if text.contains(['\n', '\\', '$', '`']) {
                        return Err(SYNTAX_ERROR);
                    }
                    delimiter.push_str(text);
                    self.position += length + 2;
                }
                b'\\' => {
                    let next = self.rest().chars().nth(1).filter(|next| *next != '\n').ok_or(SYNTAX_ERROR)?;
                    delimiter.push(next);
                    self.position += 1 + next.len_utf8();
                }
                _ => {
                    let next = self.rest().chars().next().ok_or(SYNTAX_ERROR)?;
                    delimiter.push(next);
                    self.position += next.len_utf8();
                }
            }
        }
        let raw = self.text_since(start);
        if raw.is_empty() {
            return Err(SYNTAX_ERROR);
        }
        let quoted = raw.contains(['\'', '"', '\\']);
        let index = self.result.here_documents.len();
        self.result.here_documents.push(HereDocument::default());
        self.pending.push(PendingDocument { index, delimiter, quoted, strips_tabs });
        command.stdin_texts.push(StdinText::HereDocument(index));
        Ok(())
    }
}

/// Returns true if a target has no tilde, glob, brace or expansion.
pub(crate) fn is_plain_target(target: &RawWord) -> bool {
    target.pieces.iter().enumerate().all(|(index, piece)| match piece {
        WordPiece::Quoted(_) => true,
        WordPiece::Plain(text) => {
            !(text.contains(['*', '?', '[', '{']) || (index == 0 && text.starts_with('~')))
        }
        WordPiece::Variable { .. } | WordPiece::Unknown => false,
    })
}
