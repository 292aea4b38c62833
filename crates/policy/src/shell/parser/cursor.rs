//! State of the parser and its primitive operations.

use super::syntax::{ConditionalCommands, ConditionalKind, ExhaustiveChoice, HereDocument, ParsedScript};
use crate::shell::UnanalyzableCause;

/// Reason why parsing stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ParseError(pub(crate) UnanalyzableCause);

pub(crate) type ParseResult<T> = Result<T, ParseError>;

/// Invalid syntax, or a construct that this parser does not support.
pub(crate) const SYNTAX_ERROR: ParseError = ParseError(UnanalyzableCause::Syntax);

/// Nesting depth of constructs.
const MAX_DEPTH: usize = 48;

/// Bytes of nested texts that are parsed.
const MAX_NESTED_BYTES: usize = 1_000_000;

/// A here-document whose body has not been reached yet.
#[derive(Debug)]
pub(crate) struct PendingDocument {
    pub(crate) index: usize,
    pub(crate) delimiter: String,
    pub(crate) quoted: bool,
    pub(crate) strips_tabs: bool,
}

/// Content to look for in a nested text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NestedContent {
    Commands,
    /// Expansions only, as in a here-document.
    Expansions,
}

/// Parser of one text. Nested parsers share its [`ParsedScript`].
pub(crate) struct Parser<'a> {
    pub(crate) text: &'a str,
    pub(crate) position: usize,
    pub(crate) depth: usize,
    pub(crate) in_substitution: bool,
    /// Depth of substitutions in the current text.
    pub(crate) substitution_depth: usize,
    pub(crate) pending: Vec<PendingDocument>,
    /// True if the whole text is already recorded for search as plain text.
    pub(crate) whole_text_searched: bool,
    pub(crate) result: &'a mut ParsedScript,
}

impl<'a> Parser<'a> {
    pub(crate) fn new(
        text: &'a str,
        depth: usize,
        in_substitution: bool,
        result: &'a mut ParsedScript,
    ) -> Self {
        Self {
            text,
            position: 0,
            depth,
            in_substitution,
            substitution_depth: 0,
            pending: Vec::new(),
            whole_text_searched: false,
            result,
        }
    }

    pub(crate) fn peek(&self) -> Option<u8> {
        self.byte_at(0)
    }

    /// The byte at an offset from the position.
    pub(crate) fn byte_at(&self, offset: usize) -> Option<u8> {
        self.text.as_bytes().get(self.position + offset).copied()
    }

    /// The text from the position on.
    pub(crate) fn rest(&self) -> &'a str {
        self.text.get(self.position..).unwrap_or_default()
    }

    /// The text from a start up to the position.
    pub(crate) fn text_since(&self, start: usize) -> &'a str {
        self.text.get(start..self.position).unwrap_or_default()
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.position >= self.text.len()
    }

    /// Consumes the token if it is next.
    pub(crate) fn consume(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        if found {
            self.position += token.len();
        }
        found
    }

    /// Consumes the token, or fails.
    pub(crate) fn expect(&mut self, token: &str) -> ParseResult<()> {
        if self.consume(token) { Ok(()) } else { Err(SYNTAX_ERROR) }
    }

    /// Runs a parsing step one nesting level deeper.
    pub(crate) fn with_depth<T>(&mut self, step: impl FnOnce(&mut Self) -> ParseResult<T>) -> ParseResult<T> {
        if self.depth >= MAX_DEPTH {
            return Err(ParseError(UnanalyzableCause::TooDeep));
        }
        self.depth += 1;
        let result = step(self);
        self.depth -= 1;
        result
    }

    /// Parses a nested text. If that fails, the text is recorded for search as plain text.
    pub(crate) fn parse_nested(&mut self, text: &str, content: NestedContent) {
        self.result.nested_bytes += text.len();
        let error = if self.depth >= MAX_DEPTH || self.result.nested_bytes > MAX_NESTED_BYTES {
            Some(UnanalyzableCause::TooDeep)
        } else {
            let substitution_depth = self.substitution_depth + 1;
            let start = self.result.commands.len();
            let mut parser = Parser::new(text, self.depth + 1, true, self.result);
            parser.substitution_depth = substitution_depth;
            let result = match content {
                NestedContent::Commands => parser.parse_program(),
                NestedContent::Expansions => parser.parse_expansions(),
            };
            self.mark_conditional(start, ConditionalKind::Branch);
            result.err().map(|error| error.0)
        };
        if let Some(cause) = error {
            self.result.note_unanalyzable(cause);
            self.result.unparsed_texts.push(text.to_owned());
        }
    }

    /// Marks the commands since an index as conditional: they may not run, or run in another shell. Returns the index
    /// of the range.
    pub(crate) fn mark_conditional(&mut self, start: usize, kind: ConditionalKind) -> usize {
        let commands = start..self.result.commands.len();
        self.result.conditional_ranges.push(ConditionalCommands { commands, kind });
        self.result.conditional_ranges.len() - 1
    }

    /// Records that one of these branches always runs.
    pub(crate) fn mark_choice(&mut self, start: usize, branches: Vec<usize>) {
        let commands = start..self.result.commands.len();
        self.result.exhaustive_choices.push(ExhaustiveChoice { commands, branches });
    }

    /// Records the whole text for search at every word, because bash may see the end of a construct elsewhere.
    pub(crate) fn search_whole_text(&mut self) {
        if !std::mem::replace(&mut self.whole_text_searched, true) {
            self.result.unparsed_texts.push(self.text.to_owned());
        }
    }

    /// Skips blanks and continued lines.
    pub(crate) fn skip_blanks(&mut self) {
        loop {
            match self.peek() {
                Some(b' ' | b'\t') => self.position += 1,
                Some(b'\\') if self.byte_at(1) == Some(b'\n') => {
                    self.result.note_unanalyzable(UnanalyzableCause::Quoting);
                    self.position += 2;
                }
                _ => return,
            }
        }
    }

    /// Skips a comment up to the end of its line.
    pub(crate) fn skip_comment(&mut self) {
        if self.peek() == Some(b'#') {
            self.position += self.rest().find('\n').unwrap_or(self.rest().len());
        }
    }

    /// Skips blanks, comments and line ends; reads the bodies of pending here-documents.
    pub(crate) fn skip_line_breaks(&mut self) -> ParseResult<()> {
        loop {
            self.skip_blanks();
            self.skip_comment();
            if self.peek() != Some(b'\n') {
                return Ok(());
            }
            self.position += 1;
            self.read_documents()?;
        }
    }

    fn read_documents(&mut self) -> ParseResult<()> {
        for pending in std::mem::take(&mut self.pending) {
            let start = self.position;
            let end = loop {
                if self.is_at_end() {
                    return Err(SYNTAX_ERROR);
                }
                let line_start = self.position;
                let rest = self.rest();
                let length = rest.find('\n').unwrap_or(rest.len());
                let line = rest.get(..length).unwrap_or_default();
                let line = if pending.strips_tabs { line.trim_start_matches('\t') } else { line };
                self.position = (line_start + length + 1).min(self.text.len());
                if line == pending.delimiter {
                    break line_start;
                }
            };
            let body = self.text.get(start..end).unwrap_or_default();
            let literal = pending.quoted || !body.contains(['$', '`', '\\']);
            if !literal {
                self.result.note_unanalyzable(UnanalyzableCause::Heredoc);
                self.parse_nested(body, NestedContent::Expansions);
            }
            if let Some(document) = self.result.here_documents.get_mut(pending.index) {
                *document = HereDocument { body: body.to_owned(), is_literal: literal };
            }
        }
        Ok(())
    }
}
