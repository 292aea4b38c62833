//! Parser for expansions in words: variables, substitutions, arithmetic.

use super::ansi_quotes;
use super::cursor::{NestedContent, ParseResult, Parser, SYNTAX_ERROR};
use super::syntax::{ConditionalKind, RawWord, WordPiece};
use crate::shell::UnanalyzableCause;
use crate::shell::parser::words::{extract_leading_name, push_text};
use crate::shell::words::arithmetic;

impl Parser<'_> {
    /// Parses an expansion that starts with `$`.
    pub(crate) fn parse_dollar(&mut self, pieces: &mut Vec<WordPiece>, quoted: bool) -> ParseResult<()> {
        match self.byte_at(1) {
            Some(b'(') if self.byte_at(2) == Some(b'(') => self.parse_arithmetic(pieces),
            Some(b'(') => {
                pieces.push(match self.rest().starts_with("$(pwd)") {
                    true => WordPiece::Variable { name: "PWD".to_owned(), quoted, nonempty: false },
                    false => WordPiece::Unknown,
                });
                self.position += 2;
                self.parse_substitution()
            }
            Some(b'{') => self.parse_parameter(pieces, quoted),
            Some(b'[') => {
                self.result.note_unanalyzable(UnanalyzableCause::Variable);
                let end = self.find_closing(self.position + 1, b'[', b']')?;
                self.search_arithmetic(self.position + 2, end - 1);
                self.position = end;
                pieces.push(WordPiece::Unknown);
                Ok(())
            }
            Some(b'\'') if !quoted => {
                self.result.note_unanalyzable(UnanalyzableCause::Quoting);
                let (text, length) =
                    ansi_quotes::decode(self.text.get(self.position + 2..).unwrap_or_default())
                        .ok_or(SYNTAX_ERROR)?;
                self.position += 2 + length;
                push_text(pieces, &text, true);
                Ok(())
            }
            Some(b'"') if !quoted => {
                self.result.note_unanalyzable(UnanalyzableCause::Quoting);
                self.position += 2;
                if self.parse_double_quoted(pieces)? > 0 {
                    self.result.note_unanalyzable(UnanalyzableCause::Substitution);
                }
                Ok(())
            }
            Some(parameter @ (b'1'..=b'9' | b'@' | b'*')) => {
                self.position += 2;
                let name = char::from(parameter).to_string();
                // `$@` and `$*` expand to several words, even in quotes.
                let quoted = quoted && parameter.is_ascii_digit();
                self.push_variable(pieces, name, quoted, false);
                Ok(())
            }
            Some(b'0' | b'#' | b'?' | b'-' | b'$' | b'!') => {
                self.result.note_unanalyzable(UnanalyzableCause::Variable);
                self.position += 2;
                pieces.push(WordPiece::Unknown);
                Ok(())
            }
            _ => {
                let name =
                    extract_leading_name(self.text.get(self.position + 1..).unwrap_or_default()).to_owned();
                self.position += 1 + name.len();
                if name.is_empty() {
                    push_text(pieces, "$", true);
                } else {
                    self.push_variable(pieces, name, quoted, false);
                }
                Ok(())
            }
        }
    }

    fn push_variable(&mut self, pieces: &mut Vec<WordPiece>, name: String, quoted: bool, nonempty: bool) {
        if name != "HOME" {
            self.result.note_unanalyzable(UnanalyzableCause::Variable);
        }
        pieces.push(WordPiece::Variable { name, quoted, nonempty });
    }

    /// Parses the commands of a substitution and its closing parenthesis.
    pub(crate) fn parse_substitution(&mut self) -> ParseResult<()> {
        self.result.note_unanalyzable(UnanalyzableCause::Substitution);
        if !self.pending.is_empty() {
            return Err(SYNTAX_ERROR);
        }
        let outer = std::mem::replace(&mut self.in_substitution, true);
        self.substitution_depth += 1;
        let start = self.result.commands.len();
        let result = self.with_depth(|parser| {
            parser.parse_list()?;
            parser.expect(")")
        });
        self.mark_conditional(start, ConditionalKind::Branch);
        self.substitution_depth -= 1;
        self.in_substitution = outer;
        if self.pending.is_empty() { result } else { Err(SYNTAX_ERROR) }
    }

    pub(crate) fn parse_backquoted(&mut self, pieces: &mut Vec<WordPiece>, quoted: bool) -> ParseResult<()> {
        self.result.note_unanalyzable(UnanalyzableCause::Substitution);
        self.position += 1;
        let mut text = String::new();
        loop {
            let rest = self.rest();
            let length = rest.find(['`', '\\']).ok_or(SYNTAX_ERROR)?;
            text.push_str(rest.get(..length).unwrap_or_default());
            self.position += length;
            if self.consume("`") {
                break;
            }
            let next = self.rest().chars().nth(1).ok_or(SYNTAX_ERROR)?;
            self.position += 1 + next.len_utf8();
            if !(matches!(next, '`' | '\\' | '$') || (quoted && next == '"')) {
                text.push('\\');
            }
            text.push(next);
        }
        pieces.push(match text.trim() {
            "pwd" => WordPiece::Variable { name: "PWD".to_owned(), quoted, nonempty: false },
            _ => WordPiece::Unknown,
        });
        self.parse_nested(&text, NestedContent::Commands);
        Ok(())
    }

    fn parse_parameter(&mut self, pieces: &mut Vec<WordPiece>, quoted: bool) -> ParseResult<()> {
        let inside = self.text.get(self.position + 2..).unwrap_or_default();
        let name = extract_leading_name(inside);
        let after = inside.get(name.len()..).unwrap_or_default();
        if !name.is_empty() && after.starts_with('}') {
            self.position += 3 + name.len();
            self.push_variable(pieces, name.to_owned(), quoted, false);
            return Ok(());
        }
        self.result.note_unanalyzable(UnanalyzableCause::Variable);
        if inside.starts_with([' ', '\t', '\n', '|']) {
            return Err(SYNTAX_ERROR);
        }
        let nonempty = !name.is_empty() && (after.starts_with(":?") || after.starts_with('?'));
        let assigns = after.starts_with(":=") || after.starts_with('=');
        let default = default_text(after).filter(|_| !name.is_empty());
        self.position += 2;
        self.with_depth(|parser| parser.parse_parameter_body(quoted))?;
        if assigns && !name.is_empty() {
            self.result.loop_values.push((name.to_owned(), list_known_and_unknown(default)));
        }
        pieces.push(if nonempty {
            WordPiece::Variable { name: name.to_owned(), quoted, nonempty }
        } else if let Some(text) = default {
            // A synthetic variable that may have the default text as its value.
            let name = format!("{name}-{text}");
            self.result.loop_values.push((name.clone(), list_known_and_unknown(default)));
            WordPiece::Variable { name, quoted, nonempty: false }
        } else {
            WordPiece::Unknown
        });
        Ok(())
    }

    fn parse_parameter_body(&mut self, quoted: bool) -> ParseResult<()> {
        let mut ignored = Vec::new();
        loop {
            ignored.clear();
            match self.peek().ok_or(SYNTAX_ERROR)? {
                b'}' => {
                    self.position += 1;
                    return Ok(());
                }
                b'\'' if !quoted => {
                    let text = self.parse_single_quoted()?.to_owned();
                    if text.contains(['$', '`']) {
                        // A stored value may be expanded later.
                        self.parse_nested(&text, NestedContent::Expansions);
                    }
                }
                b'"' => {
                    self.position += 1;
                    if self.parse_double_quoted(&mut ignored)? > 0 {
                        self.result.note_unanalyzable(UnanalyzableCause::Substitution);
                    }
                }
                b'\\' => self.parse_escape(&mut ignored)?,
                b'$' => self.parse_dollar(&mut ignored, quoted)?,
                b'`' => self.parse_backquoted(&mut ignored, quoted)?,
                b'<' | b'>' if !quoted && self.byte_at(1) == Some(b'(') => {
                    self.position += 2;
                    self.parse_substitution()?;
                }
                _ => self.position += self.rest().chars().next().map_or(1, char::len_utf8),
            }
        }
    }

    fn parse_arithmetic(&mut self, pieces: &mut Vec<WordPiece>) -> ParseResult<()> {
        let end = self.find_closing(self.position + 1, b'(', b')')?;
        let inside = self.text.get(self.position + 3..end - 1).unwrap_or_default();
        if let Some(number) = inside.strip_suffix(')').and_then(arithmetic::evaluate) {
            push_text(pieces, &number.to_string(), true);
        } else {
            self.result.note_unanalyzable(UnanalyzableCause::Variable);
            self.search_arithmetic(self.position + 2, end - 1);
            pieces.push(WordPiece::Unknown);
        }
        self.position = end;
        Ok(())
    }

    /// Searches text that may be arithmetic or commands. Expansions are found either way; text that cannot be parsed
    /// is searched unchanged.
    pub(crate) fn search_arithmetic(&mut self, start: usize, end: usize) {
        let text = self.text.get(start..end).unwrap_or_default();
        if text.contains(['$', '`', ';', '|', '&', '<', '\n']) || text.contains(char::is_alphabetic) {
            self.parse_nested(text, NestedContent::Commands);
        }
    }

    /// Parses expansions only, in text where quotes have no meaning.
    pub(crate) fn parse_expansions(&mut self) -> ParseResult<()> {
        let mut ignored = Vec::new();
        loop {
            ignored.clear();
            let rest = self.rest();
            self.position += rest.find(['$', '`', '\\']).unwrap_or(rest.len());
            match self.peek() {
                None => return Ok(()),
                Some(b'\\') => self.position += 1 + self.rest().chars().nth(1).map_or(0, char::len_utf8),
                Some(b'$') => self.parse_dollar(&mut ignored, true)?,
                Some(_) => self.parse_backquoted(&mut ignored, true)?,
            }
        }
    }
}

/// The literal text in `${NAME:-text}` and its like, given the text after the name.
fn default_text(after: &str) -> Option<&str> {
    let rest = after.strip_prefix(':').unwrap_or(after).strip_prefix(['-', '=', '+'])?;
    let end = rest.find(['}', '$', '`', '\\', '{', '~'])?;
    let (text, rest) = rest.split_at_checked(end)?;
    let bare = |quote: char| text.strip_prefix(quote).and_then(|text| text.strip_suffix(quote));
    let text = bare('"').or_else(|| bare('\'')).unwrap_or(text);
    (rest.starts_with('}') && !text.is_empty() && !text.contains(['"', '\''])).then_some(text)
}

/// Lists possible values of a variable: the text, if any, and unknown.
fn list_known_and_unknown(text: Option<&str>) -> Vec<RawWord> {
    let word = |piece| RawWord { raw: String::new(), pieces: vec![piece] };
    let known = text.map(|text| word(WordPiece::Quoted(text.to_owned())));
    known.into_iter().chain([word(WordPiece::Unknown)]).collect()
}
