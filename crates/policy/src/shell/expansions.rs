//! Expansions inside words: variables, substitutions, arithmetic.

use super::Kind;
use super::cursor::{Inside, Parsed, Parser, WRONG};
use super::lexer::{leading_name, push};
use super::syntax::{Of, Piece, RawWord};
use super::{ansi, arithmetic};

impl Parser<'_> {
    /// Whatever begins with `$`.
    pub(super) fn dollar(&mut self, pieces: &mut Vec<Piece>, quoted: bool) -> Parsed<()> {
        match self.byte(1) {
            Some(b'(') if self.byte(2) == Some(b'(') => self.arithmetic(pieces),
            Some(b'(') => {
                pieces.push(match self.rest().starts_with("$(pwd)") {
                    true => Piece::Variable { name: "PWD".to_owned(), quoted, guarded: false },
                    false => Piece::Unknown,
                });
                self.at += 2;
                self.substitution()
            }
            Some(b'{') => self.parameter(pieces, quoted),
            Some(b'[') => {
                self.found.note(Kind::Variable);
                let end = self.balanced(self.at + 1, b'[', b']')?;
                self.searched_arithmetic(self.at + 2, end - 1);
                self.at = end;
                pieces.push(Piece::Unknown);
                Ok(())
            }
            Some(b'\'') if !quoted => {
                self.found.note(Kind::Quoting);
                let (text, length) =
                    ansi::decode(self.text.get(self.at + 2..).unwrap_or_default()).ok_or(WRONG)?;
                self.at += 2 + length;
                push(pieces, &text, true);
                Ok(())
            }
            Some(b'"') if !quoted => {
                self.found.note(Kind::Quoting);
                self.at += 2;
                if self.double_quoted(pieces)? > 0 {
                    self.found.note(Kind::Substitution);
                }
                Ok(())
            }
            Some(parameter @ (b'1'..=b'9' | b'@' | b'*')) => {
                self.at += 2;
                let name = char::from(parameter).to_string();
                // All of them are several words, in quotes too.
                let quoted = quoted && parameter.is_ascii_digit();
                self.variable(pieces, name, quoted, false);
                Ok(())
            }
            Some(b'0' | b'#' | b'?' | b'-' | b'$' | b'!') => {
                self.found.note(Kind::Variable);
                self.at += 2;
                pieces.push(Piece::Unknown);
                Ok(())
            }
            _ => {
                let name = leading_name(self.text.get(self.at + 1..).unwrap_or_default()).to_owned();
                self.at += 1 + name.len();
                if name.is_empty() {
                    push(pieces, "$", true);
                } else {
                    self.variable(pieces, name, quoted, false);
                }
                Ok(())
            }
        }
    }

    fn variable(&mut self, pieces: &mut Vec<Piece>, name: String, quoted: bool, guarded: bool) {
        if name != "HOME" {
            self.found.note(Kind::Variable);
        }
        pieces.push(Piece::Variable { name, quoted, guarded });
    }

    /// Parses commands up to the closing parenthesis, which ends the substitution.
    pub(super) fn substitution(&mut self) -> Parsed<()> {
        self.found.note(Kind::Substitution);
        if !self.pending.is_empty() {
            return Err(WRONG);
        }
        let outer = std::mem::replace(&mut self.hidden, true);
        self.within += 1;
        let start = self.found.commands.len();
        let result = self.deeper(|parser| {
            parser.list()?;
            parser.expect(")")
        });
        self.apart(start, Of::Branch);
        self.within -= 1;
        self.hidden = outer;
        if self.pending.is_empty() { result } else { Err(WRONG) }
    }

    pub(super) fn backquoted(&mut self, pieces: &mut Vec<Piece>, quoted: bool) -> Parsed<()> {
        self.found.note(Kind::Substitution);
        self.at += 1;
        let mut text = String::new();
        loop {
            let rest = self.rest();
            let length = rest.find(['`', '\\']).ok_or(WRONG)?;
            text.push_str(rest.get(..length).unwrap_or_default());
            self.at += length;
            if self.take("`") {
                break;
            }
            let next = self.rest().chars().nth(1).ok_or(WRONG)?;
            self.at += 1 + next.len_utf8();
            if !(matches!(next, '`' | '\\' | '$') || (quoted && next == '"')) {
                text.push('\\');
            }
            text.push(next);
        }
        pieces.push(match text.trim() {
            "pwd" => Piece::Variable { name: "PWD".to_owned(), quoted, guarded: false },
            _ => Piece::Unknown,
        });
        self.inner(&text, Inside::Commands);
        Ok(())
    }

    fn parameter(&mut self, pieces: &mut Vec<Piece>, quoted: bool) -> Parsed<()> {
        let inside = self.text.get(self.at + 2..).unwrap_or_default();
        let name = leading_name(inside);
        let after = inside.get(name.len()..).unwrap_or_default();
        if !name.is_empty() && after.starts_with('}') {
            self.at += 3 + name.len();
            self.variable(pieces, name.to_owned(), quoted, false);
            return Ok(());
        }
        self.found.note(Kind::Variable);
        if inside.starts_with([' ', '\t', '\n', '|']) {
            return Err(WRONG);
        }
        let guarded = !name.is_empty() && (after.starts_with(":?") || after.starts_with('?'));
        let assigns = after.starts_with(":=") || after.starts_with('=');
        let other = alternative(after).filter(|_| !name.is_empty());
        self.at += 2;
        self.deeper(|parser| parser.inside_braces(quoted))?;
        if assigns && !name.is_empty() {
            self.found.loops.push((name.to_owned(), one_or_unknown(other)));
        }
        pieces.push(if guarded {
            Piece::Variable { name: name.to_owned(), quoted, guarded }
        } else if let Some(text) = other {
            // A variable of its own that may be this text.
            let name = format!("{name}-{text}");
            self.found.loops.push((name.clone(), one_or_unknown(other)));
            Piece::Variable { name, quoted, guarded: false }
        } else {
            Piece::Unknown
        });
        Ok(())
    }

    fn inside_braces(&mut self, quoted: bool) -> Parsed<()> {
        let mut dropped = Vec::new();
        loop {
            dropped.clear();
            match self.peek().ok_or(WRONG)? {
                b'}' => {
                    self.at += 1;
                    return Ok(());
                }
                b'\'' if !quoted => {
                    let text = self.single_quoted()?.to_owned();
                    if text.contains(['$', '`']) {
                        // A value that is kept may be expanded later.
                        self.inner(&text, Inside::Expansions);
                    }
                }
                b'"' => {
                    self.at += 1;
                    if self.double_quoted(&mut dropped)? > 0 {
                        self.found.note(Kind::Substitution);
                    }
                }
                b'\\' => self.escape(&mut dropped)?,
                b'$' => self.dollar(&mut dropped, quoted)?,
                b'`' => self.backquoted(&mut dropped, quoted)?,
                b'<' | b'>' if !quoted && self.byte(1) == Some(b'(') => {
                    self.at += 2;
                    self.substitution()?;
                }
                _ => self.at += self.rest().chars().next().map_or(1, char::len_utf8),
            }
        }
    }

    fn arithmetic(&mut self, pieces: &mut Vec<Piece>) -> Parsed<()> {
        let end = self.balanced(self.at + 1, b'(', b')')?;
        let inside = self.text.get(self.at + 3..end - 1).unwrap_or_default();
        if let Some(number) = inside.strip_suffix(')').and_then(arithmetic::value) {
            push(pieces, &number.to_string(), true);
        } else {
            self.found.note(Kind::Variable);
            self.searched_arithmetic(self.at + 2, end - 1);
            pieces.push(Piece::Unknown);
        }
        self.at = end;
        Ok(())
    }

    /// Searches a stretch that may be arithmetic or commands: expansions are found either way, and what cannot be taken
    /// apart is searched as it is.
    pub(super) fn searched_arithmetic(&mut self, start: usize, end: usize) {
        let text = self.text.get(start..end).unwrap_or_default();
        if text.contains(['$', '`', ';', '|', '&', '<', '\n']) || text.contains(char::is_alphabetic) {
            self.inner(text, Inside::Commands);
        }
    }

    /// Looks for expansions only, in text where quotes mean nothing.
    pub(super) fn expansions(&mut self) -> Parsed<()> {
        let mut dropped = Vec::new();
        loop {
            dropped.clear();
            let rest = self.rest();
            self.at += rest.find(['$', '`', '\\']).unwrap_or(rest.len());
            match self.peek() {
                None => return Ok(()),
                Some(b'\\') => self.at += 1 + self.rest().chars().nth(1).map_or(0, char::len_utf8),
                Some(b'$') => self.dollar(&mut dropped, true)?,
                Some(_) => self.backquoted(&mut dropped, true)?,
            }
        }
    }
}

/// The literal text that `${NAME:-text}` and its like may stand for, from behind the name on.
fn alternative(after: &str) -> Option<&str> {
    let rest = after.strip_prefix(':').unwrap_or(after).strip_prefix(['-', '=', '+'])?;
    let end = rest.find(['}', '$', '`', '\\', '{', '~'])?;
    let (text, rest) = rest.split_at_checked(end)?;
    let bare = |quote: char| text.strip_prefix(quote).and_then(|text| text.strip_suffix(quote));
    let text = bare('"').or_else(|| bare('\'')).unwrap_or(text);
    (rest.starts_with('}') && !text.is_empty() && !text.contains(['"', '\''])).then_some(text)
}

/// Values of a variable: a text, if there is one, or not known.
fn one_or_unknown(text: Option<&str>) -> Vec<RawWord> {
    let word = |piece| RawWord { raw: String::new(), pieces: vec![piece] };
    let known = text.map(|text| word(Piece::Quoted(text.to_owned())));
    known.into_iter().chain([word(Piece::Unknown)]).collect()
}
