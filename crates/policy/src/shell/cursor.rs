//! Where the parser stands in a text, and the small steps it takes.

use super::UnanalyzableCause;
use super::syntax::{ConditionalCommands, ExhaustiveChoice, HereDocument, ParsedScript, ConditionalKind};

/// Why the parser gave up on a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ParseError(pub(super) UnanalyzableCause);

/// What parsing answers.
pub(super) type ParseResult<T> = Result<T, ParseError>;

/// The text is not one that bash would take, or not one that is known here.
pub(super) const SYNTAX_ERROR: ParseError = ParseError(UnanalyzableCause::Syntax);

/// How many constructs may stand inside one another.
const MAX_DEPTH: usize = 48;

/// How many bytes of text inside text are taken apart.
const MAX_NESTED_BYTES: usize = 1_000_000;

/// A here-document whose text has not been reached yet.
#[derive(Debug)]
pub(super) struct PendingDocument {
    pub(super) index: usize,
    pub(super) delimiter: String,
    pub(super) quoted: bool,
    pub(super) strips_tabs: bool,
}

/// What is looked for in a text inside another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NestedContent {
    /// Commands.
    Commands,
    /// Expansions only, as in a here-document.
    Expansions,
}

/// A parser of one text. What it finds goes to the shared [`Harvest`].
pub(super) struct Parser<'a> {
    pub(super) text: &'a str,
    pub(super) position: usize,
    pub(super) depth: usize,
    pub(super) in_substitution: bool,
    /// How many substitutions of the text at hand we are in.
    pub(super) substitution_depth: usize,
    pub(super) pending: Vec<PendingDocument>,
    /// Whether the whole text is already left to be searched as it is.
    pub(super) whole_text_searched: bool,
    pub(super) result: &'a mut ParsedScript,
}

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a str, depth: usize, in_substitution: bool, result: &'a mut ParsedScript) -> Self {
        Self { text, position: 0, depth, in_substitution, substitution_depth: 0, pending: Vec::new(), whole_text_searched: false, result }
    }

    /// The byte at the cursor.
    pub(super) fn peek(&self) -> Option<u8> {
        self.byte_at(0)
    }

    /// The byte some steps ahead.
    pub(super) fn byte_at(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.position + ahead).copied()
    }

    /// The text from the cursor on.
    pub(super) fn rest(&self) -> &'a str {
        self.text.get(self.position..).unwrap_or_default()
    }

    /// The text from a place up to the cursor.
    pub(super) fn text_since(&self, start: usize) -> &'a str {
        self.text.get(start..self.position).unwrap_or_default()
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.position >= self.text.len()
    }

    /// Steps over the token if it is there.
    pub(super) fn take(&mut self, token: &str) -> bool {
        let there = self.rest().starts_with(token);
        if there {
            self.position += token.len();
        }
        there
    }

    /// Steps over the token, which must be there.
    pub(super) fn expect(&mut self, token: &str) -> ParseResult<()> {
        if self.take(token) { Ok(()) } else { Err(SYNTAX_ERROR) }
    }

    /// Runs a step one level deeper.
    pub(super) fn with_depth<T>(&mut self, step: impl FnOnce(&mut Self) -> ParseResult<T>) -> ParseResult<T> {
        if self.depth >= MAX_DEPTH {
            return Err(ParseError(UnanalyzableCause::TooDeep));
        }
        self.depth += 1;
        let result = step(self);
        self.depth -= 1;
        result
    }

    /// Parses another text, found inside this one. What cannot be taken apart is left to be searched as it is.
    pub(super) fn parse_nested(&mut self, text: &str, inside: NestedContent) {
        self.result.nested_bytes += text.len();
        let stop = if self.depth >= MAX_DEPTH || self.result.nested_bytes > MAX_NESTED_BYTES {
            Some(UnanalyzableCause::TooDeep)
        } else {
            let within = self.substitution_depth + 1;
            let start = self.result.commands.len();
            let mut parser = Parser::new(text, self.depth + 1, true, self.result);
            parser.substitution_depth = within;
            let result = match inside {
                NestedContent::Commands => parser.parse_program(),
                NestedContent::Expansions => parser.parse_expansions(),
            };
            let stop = result.err().map(|stop| stop.0);
            self.mark_conditional(start, ConditionalKind::Branch);
            stop
        };
        if let Some(kind) = stop {
            self.result.note_unanalyzable(kind);
            self.result.unparsed_texts.push(text.to_owned());
        }
    }

    /// Notes that what was found since a place may not run, or runs in another shell; answers where that is noted.
    pub(super) fn mark_conditional(&mut self, start: usize, of: ConditionalKind) -> usize {
        let commands = start..self.result.commands.len();
        self.result.conditional_ranges.push(ConditionalCommands { commands, kind: of });
        self.result.conditional_ranges.len() - 1
    }

    /// Notes that of these ways, which stand behind some place, one is always taken.
    pub(super) fn mark_choice(&mut self, start: usize, ways: Vec<usize>) {
        let commands = start..self.result.commands.len();
        self.result.exhaustive_choices.push(ExhaustiveChoice { commands, branches: ways });
    }

    /// Notes that bash may see the end of something elsewhere than we do: the whole text is searched at every word.
    pub(super) fn search_whole_text(&mut self) {
        if !std::mem::replace(&mut self.whole_text_searched, true) {
            self.result.unparsed_texts.push(self.text.to_owned());
        }
    }

    /// Steps over blanks and continued lines.
    pub(super) fn skip_blanks(&mut self) {
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

    /// Steps over a comment, up to the end of its line.
    pub(super) fn skip_comment(&mut self) {
        if self.peek() == Some(b'#') {
            self.position += self.rest().find('\n').unwrap_or(self.rest().len());
        }
    }

    /// Steps over blanks, comments and line ends; the text of here-documents is read on the way.
    pub(super) fn skip_line_breaks(&mut self) -> ParseResult<()> {
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
