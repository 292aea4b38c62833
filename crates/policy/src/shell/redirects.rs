//! Redirects, here-documents and here-strings.

use super::Kind;
use super::cursor::{Parsed, Parser, Pending, WRONG};
use super::lexer::{ends_word, leading_name};
use super::syntax::{Document, Fed, Piece, RawRedirect, RawWord, Simple};

/// The operators, longer ones first.
const OPERATORS: &[&str] = &["&>>", "<<<", "<<-", "&>", "<<", "<>", "<&", ">>", ">|", ">&", "<", ">"];

impl Parser<'_> {
    /// Reads a redirect if one stands here.
    pub(super) fn redirect(&mut self, command: &mut Simple) -> Parsed<bool> {
        let prefix = self.descriptor();
        let rest = self.text.get(self.at + prefix..).unwrap_or_default();
        let Some(operator) = OPERATORS.iter().find(|operator| rest.starts_with(**operator)) else {
            return Ok(false);
        };
        let both = operator.starts_with('&');
        let process = matches!(*operator, "<" | ">") && rest.as_bytes().get(1) == Some(&b'(');
        if process || (both && prefix > 0) {
            return Ok(false);
        }
        if self.peek() == Some(b'{') {
            // The number of the opened file goes to a variable.
            self.found.note(Kind::RedirectTarget);
        }
        command.may_fail |= self.peek() == Some(b'{');
        self.at += prefix + operator.len();
        self.blanks();
        match *operator {
            "<<" | "<<-" => self.document(command, *operator == "<<-")?,
            "<<<" => {
                let word = self.target()?;
                command.input.push(Fed::Word(word));
            }
            "<&" | ">&" => self.duplicate(command, *operator == ">&")?,
            _ => {
                let target = self.target()?;
                command.may_fail |= target.raw != "/dev/null";
                command.redirects.push(RawRedirect { writes: *operator != "<", target });
            }
        }
        Ok(true)
    }

    /// How long the number or the `{name}` before an operator is.
    fn descriptor(&self) -> usize {
        let rest = self.rest();
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        if digits > 0 {
            return digits;
        }
        match rest.strip_prefix('{').map(leading_name) {
            Some(name) if !name.is_empty() && rest.as_bytes().get(name.len() + 1) == Some(&b'}') => {
                name.len() + 2
            }
            _ => 0,
        }
    }

    fn target(&mut self) -> Parsed<RawWord> {
        // A comment is no target, nor is the number of another redirect.
        let number = self.rest().bytes().take_while(u8::is_ascii_digit).count();
        let redirect = number > 0 && matches!(self.byte(number), Some(b'<' | b'>'));
        if self.peek() == Some(b'#') || redirect {
            return Err(WRONG);
        }
        let word = self.word()?;
        if word.raw.is_empty() || self.peek() == Some(b'(') { Err(WRONG) } else { Ok(word) }
    }

    fn duplicate(&mut self, command: &mut Simple, writes: bool) -> Parsed<()> {
        let target = self.target()?;
        command.may_fail |= !matches!(target.raw.as_str(), "0" | "1" | "2");
        if target.raw.bytes().all(|byte| byte.is_ascii_digit()) {
            return Ok(());
        }
        let closes = target
            .raw
            .strip_suffix('-')
            .is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
        if closes || !writes {
            self.found.note(Kind::RedirectTarget);
        }
        if !closes {
            command.redirects.push(RawRedirect { writes, target });
        }
        Ok(())
    }

    fn document(&mut self, command: &mut Simple, tabs: bool) -> Parsed<()> {
        let start = self.at;
        let mut delimiter = String::new();
        while let Some(byte) = self.peek().filter(|byte| !ends_word(*byte)) {
            match byte {
                b'$' | b'`' => return Err(WRONG),
                b'\'' | b'"' => {
                    let rest = self.text.get(self.at + 1..).unwrap_or_default();
                    let length = rest.find(byte as char).ok_or(WRONG)?;
                    let text = rest.get(..length).unwrap_or_default();
                    if text.contains(['\n', '\\', '$', '`']) {
                        return Err(WRONG);
                    }
                    delimiter.push_str(text);
                    self.at += length + 2;
                }
                b'\\' => {
                    let next = self.rest().chars().nth(1).filter(|next| *next != '\n').ok_or(WRONG)?;
                    delimiter.push(next);
                    self.at += 1 + next.len_utf8();
                }
                _ => {
                    let next = self.rest().chars().next().ok_or(WRONG)?;
                    delimiter.push(next);
                    self.at += next.len_utf8();
                }
            }
        }
        let raw = self.since(start);
        if raw.is_empty() {
            return Err(WRONG);
        }
        let quoted = raw.contains(['\'', '"', '\\']);
        let number = self.found.documents.len();
        self.found.documents.push(Document::default());
        self.pending.push(Pending { number, delimiter, quoted, tabs });
        command.input.push(Fed::Document(number));
        Ok(())
    }
}

/// Whether a target is written plainly: no tilde, glob, brace or expansion.
pub(super) fn is_plain(target: &RawWord) -> bool {
    target.pieces.iter().enumerate().all(|(at, piece)| match piece {
        Piece::Quoted(_) => true,
        Piece::Plain(text) => !(text.contains(['*', '?', '[', '{']) || (at == 0 && text.starts_with('~'))),
        Piece::Variable { .. } | Piece::Unknown => false,
    })
}
