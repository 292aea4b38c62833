//! Where the parser stands in a text, and the small steps it takes.

use super::Kind;
use super::syntax::{Apart, Choice, Document, Harvest, Of};

/// Why the parser gave up on a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stop(pub(super) Kind);

/// What parsing answers.
pub(super) type Parsed<T> = Result<T, Stop>;

/// The text is not one that bash would take, or not one that is known here.
pub(super) const WRONG: Stop = Stop(Kind::Syntax);

/// How many constructs may stand inside one another.
const DEEPEST: usize = 48;

/// How many bytes of text inside text are taken apart.
const MOST_INNER: usize = 1_000_000;

/// A here-document whose text has not been reached yet.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) number: usize,
    pub(super) delimiter: String,
    pub(super) quoted: bool,
    pub(super) tabs: bool,
}

/// What is looked for in a text inside another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Inside {
    /// Commands.
    Commands,
    /// Expansions only, as in a here-document.
    Expansions,
}

/// A parser of one text. What it finds goes to the shared [`Harvest`].
pub(super) struct Parser<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
    pub(super) depth: usize,
    pub(super) hidden: bool,
    /// How many substitutions of the text at hand we are in.
    pub(super) within: usize,
    pub(super) pending: Vec<Pending>,
    /// Whether the whole text is already left to be searched as it is.
    pub(super) doubted: bool,
    pub(super) found: &'a mut Harvest,
}

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a str, depth: usize, hidden: bool, found: &'a mut Harvest) -> Self {
        Self { text, at: 0, depth, hidden, within: 0, pending: Vec::new(), doubted: false, found }
    }

    /// The byte at the cursor.
    pub(super) fn peek(&self) -> Option<u8> {
        self.byte(0)
    }

    /// The byte some steps ahead.
    pub(super) fn byte(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + ahead).copied()
    }

    /// The text from the cursor on.
    pub(super) fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// The text from a place up to the cursor.
    pub(super) fn since(&self, start: usize) -> &'a str {
        self.text.get(start..self.at).unwrap_or_default()
    }

    pub(super) fn at_end(&self) -> bool {
        self.at >= self.text.len()
    }

    /// Steps over the token if it is there.
    pub(super) fn take(&mut self, token: &str) -> bool {
        let there = self.rest().starts_with(token);
        if there {
            self.at += token.len();
        }
        there
    }

    /// Steps over the token, which must be there.
    pub(super) fn expect(&mut self, token: &str) -> Parsed<()> {
        if self.take(token) { Ok(()) } else { Err(WRONG) }
    }

    /// Runs a step one level deeper.
    pub(super) fn deeper<T>(&mut self, step: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= DEEPEST {
            return Err(Stop(Kind::TooDeep));
        }
        self.depth += 1;
        let result = step(self);
        self.depth -= 1;
        result
    }

    /// Parses another text, found inside this one. What cannot be taken apart is left to be searched as it is.
    pub(super) fn inner(&mut self, text: &str, inside: Inside) {
        self.found.inner += text.len();
        let stop = if self.depth >= DEEPEST || self.found.inner > MOST_INNER {
            Some(Kind::TooDeep)
        } else {
            let within = self.within + 1;
            let start = self.found.commands.len();
            let mut parser = Parser::new(text, self.depth + 1, true, self.found);
            parser.within = within;
            let result = match inside {
                Inside::Commands => parser.program(),
                Inside::Expansions => parser.expansions(),
            };
            let stop = result.err().map(|stop| stop.0);
            self.apart(start, Of::Branch);
            stop
        };
        if let Some(kind) = stop {
            self.found.note(kind);
            self.found.leftovers.push(text.to_owned());
        }
    }

    /// Notes that what was found since a place may not run, or runs in another shell; answers where that is noted.
    pub(super) fn apart(&mut self, start: usize, of: Of) -> usize {
        let commands = start..self.found.commands.len();
        self.found.apart.push(Apart { commands, of });
        self.found.apart.len() - 1
    }

    /// Notes that of these ways, which stand behind some place, one is always taken.
    pub(super) fn choice(&mut self, start: usize, ways: Vec<usize>) {
        let commands = start..self.found.commands.len();
        self.found.choices.push(Choice { commands, ways });
    }

    /// Notes that bash may see the end of something elsewhere than we do: the whole text is searched at every word.
    pub(super) fn doubt(&mut self) {
        if !std::mem::replace(&mut self.doubted, true) {
            self.found.leftovers.push(self.text.to_owned());
        }
    }

    /// Steps over blanks and continued lines.
    pub(super) fn blanks(&mut self) {
        loop {
            match self.peek() {
                Some(b' ' | b'\t') => self.at += 1,
                Some(b'\\') if self.byte(1) == Some(b'\n') => {
                    self.found.note(Kind::Quoting);
                    self.at += 2;
                }
                _ => return,
            }
        }
    }

    /// Steps over a comment, up to the end of its line.
    pub(super) fn comment(&mut self) {
        if self.peek() == Some(b'#') {
            self.at += self.rest().find('\n').unwrap_or(self.rest().len());
        }
    }

    /// Steps over blanks, comments and line ends; the text of here-documents is read on the way.
    pub(super) fn line_breaks(&mut self) -> Parsed<()> {
        loop {
            self.blanks();
            self.comment();
            if self.peek() != Some(b'\n') {
                return Ok(());
            }
            self.at += 1;
            self.read_documents()?;
        }
    }

    fn read_documents(&mut self) -> Parsed<()> {
        for pending in std::mem::take(&mut self.pending) {
            let start = self.at;
            let end = loop {
                if self.at_end() {
                    return Err(WRONG);
                }
                let line_start = self.at;
                let rest = self.rest();
                let length = rest.find('\n').unwrap_or(rest.len());
                let line = rest.get(..length).unwrap_or_default();
                let line = if pending.tabs { line.trim_start_matches('\t') } else { line };
                self.at = (line_start + length + 1).min(self.text.len());
                if line == pending.delimiter {
                    break line_start;
                }
            };
            let body = self.text.get(start..end).unwrap_or_default();
            let literal = pending.quoted || !body.contains(['$', '`', '\\']);
            if !literal {
                self.found.note(Kind::Heredoc);
                self.inner(body, Inside::Expansions);
            }
            if let Some(document) = self.found.documents.get_mut(pending.number) {
                *document = Document { body: body.to_owned(), literal };
            }
        }
        Ok(())
    }
}
