//! Commands: lists, pipelines, simple commands. Compound commands are in `compound`, redirects in `redirects`.
//!
//! The parser keeps no tree. Each simple command goes to the harvest as it is found, and whatever is not on the closed
//! list of constructs is noted there.

use super::Kind;
use super::assigned::{assignment, is_array_start};
use super::cursor::{Parsed, Parser, WRONG};
use super::lexer::{ends_word, leading_name};
use super::syntax::{Form, Of, Piece, Pipeline, RawAssignment, RawWord, Simple};

/// Words that end a list of commands.
const CLOSERS: &[&str] = &["then", "elif", "else", "fi", "do", "done", "esac", "}"];

impl<'a> Parser<'a> {
    /// A whole text.
    pub(super) fn program(&mut self) -> Parsed<()> {
        self.list_or_nothing()?;
        if self.at_end() && self.pending.is_empty() { Ok(()) } else { Err(WRONG) }
    }

    /// At least one command, up to something that ends a list.
    pub(super) fn list(&mut self) -> Parsed<()> {
        if self.list_or_nothing()? == 0 { Err(WRONG) } else { Ok(()) }
    }

    /// Commands up to something that ends a list; answers how many.
    pub(super) fn list_or_nothing(&mut self) -> Parsed<usize> {
        let mut count = 0;
        loop {
            self.line_breaks()?;
            if self.at_list_end() {
                return Ok(count);
            }
            let start = self.found.commands.len();
            self.and_or()?;
            count += 1;
            self.blanks();
            self.comment();
            match self.peek() {
                Some(b';') if matches!(self.byte(1), Some(b';' | b'&')) => return Ok(count),
                Some(b';') => self.at += 1,
                Some(b'&') => {
                    self.found.background = true;
                    self.apart(start, Of::Branch);
                    self.at += 1;
                }
                Some(b'\n') => {}
                _ if self.at_list_end() => return Ok(count),
                _ => return Err(WRONG),
            }
        }
    }

    fn at_list_end(&self) -> bool {
        match self.peek() {
            None | Some(b')') => true,
            Some(b';') => matches!(self.byte(1), Some(b';' | b'&')),
            Some(_) => CLOSERS.contains(&self.keyword()),
        }
    }

    /// The plain word at the cursor, as far as a reserved word could go.
    pub(super) fn keyword(&self) -> &'a str {
        let rest = self.rest();
        let end = rest.bytes().take(9).position(ends_word).unwrap_or(rest.len().min(9));
        rest.get(..end).unwrap_or_default()
    }

    /// Steps over a reserved word if it is there.
    pub(super) fn take_keyword(&mut self, word: &str) -> bool {
        let there = self.keyword() == word;
        if there {
            self.at += word.len();
        }
        there
    }

    /// Steps over a reserved word, which must be there.
    pub(super) fn expect_keyword(&mut self, word: &str) -> Parsed<()> {
        if self.take_keyword(word) { Ok(()) } else { Err(WRONG) }
    }

    /// Pipelines of which each after the first runs or not by how those before it end. Behind `&&` all since the last `||`
    /// have run.
    fn and_or(&mut self) -> Parsed<()> {
        let whole = self.found.commands.len();
        self.pipeline()?;
        let mut since = None;
        // The ways of `a && b || c`, as far as they are there.
        let mut ways = Vec::new();
        loop {
            self.blanks();
            let both = self.take("&&");
            if !both && !self.take("||") {
                since.into_iter().for_each(|since| {
                    self.apart(since, Of::Branch);
                });
                if ways.len() == 2 && since.is_none() {
                    self.choice(whole, ways);
                }
                return Ok(());
            }
            let start = self.found.commands.len();
            ways.clear();
            if !both && let Some(since) = since.take() {
                ways.push(self.apart(since, Of::Branch));
            }
            self.line_breaks()?;
            self.pipeline()?;
            if both {
                since.get_or_insert(start);
            } else {
                ways.push(self.apart(start, Of::Branch));
            }
        }
    }

    fn pipeline(&mut self) -> Parsed<()> {
        while self.take_keyword("!") {
            self.blanks();
        }
        self.timed()?;
        let start = self.found.commands.len();
        let mut starts = Vec::new();
        let mut after_pipe = false;
        loop {
            let element = self.found.commands.len();
            let simple = self.command()?;
            self.blanks();
            let piped = self.peek() == Some(b'|') && self.byte(1) != Some(b'|');
            if piped || after_pipe {
                self.apart(element, Of::Branch);
            }
            if piped {
                self.at += if self.byte(1) == Some(b'&') { 2 } else { 1 };
            }
            if let Some(command) = self.found.commands.last_mut().filter(|_| simple) {
                command.after_pipe = after_pipe;
                command.before_pipe = piped;
            }
            let next = self.found.commands.len();
            if !piped {
                if after_pipe {
                    starts.push(next);
                    self.found.pipelines.push(Pipeline { starts, within: self.within });
                }
                return Ok(());
            }
            if !after_pipe {
                starts.push(start);
            }
            starts.push(next);
            self.line_breaks()?;
            if self.take_keyword("!") {
                // Bash takes it only at the start of a pipeline; other shells take it here too.
                return Err(WRONG);
            }
            after_pipe = true;
        }
    }

    /// `time` before a compound command is a reserved word; before a simple one it is taken for a wrapper.
    fn timed(&mut self) -> Parsed<()> {
        let start = self.at;
        if !self.take_keyword("time") {
            return Ok(());
        }
        self.blanks();
        while ["-p", "--", "!", "time"].iter().any(|word| self.take_keyword(word)) {
            self.blanks();
        }
        if self.at_misplaced() || matches!(self.peek(), Some(b'|' | b'&')) {
            return Err(WRONG);
        }
        if !self.at_compound() {
            self.at = start;
        }
        Ok(())
    }

    /// Whether a reserved word stands here that cannot begin a command.
    fn at_misplaced(&self) -> bool {
        let word = self.keyword();
        CLOSERS.contains(&word) || matches!(word, "!" | "in" | "]]")
    }

    /// One command; answers whether it was a simple one.
    pub(super) fn command(&mut self) -> Parsed<bool> {
        self.blanks();
        if self.at_compound() {
            self.deeper(Self::compound)?;
            return Ok(false);
        }
        if self.at_misplaced() {
            return Err(WRONG);
        }
        self.simple()
    }

    fn simple(&mut self) -> Parsed<bool> {
        let mut command = Simple { hidden: self.hidden, within: self.within, ..Simple::default() };
        loop {
            self.blanks();
            self.comment();
            if self.redirect(&mut command)? {
                continue;
            }
            let process = matches!(self.peek(), Some(b'<' | b'>')) && self.byte(1) == Some(b'(');
            if !process && self.peek().is_none_or(ends_word) {
                break;
            }
            let start = self.at;
            let word = self.word()?;
            if self.peek() == Some(b'(') {
                if is_array_start(&word.raw) {
                    self.array(&mut command, &word, start)?;
                    continue;
                }
                if command.words.is_empty() && command.assignments.is_empty() && command.redirects.is_empty()
                {
                    return self.function_body(&word.raw).map(|()| false);
                }
                return Err(WRONG);
            }
            if command.words.is_empty() {
                match assignment(&word)? {
                    Some(given) => {
                        if given.form != Form::Plain {
                            self.found.note(Kind::Group);
                        }
                        command.assignments.push(given);
                    }
                    None => command.words.push(word),
                }
            } else {
                // After `time` assignments still count as such.
                let timed =
                    command.words.iter().all(|word| matches!(word.raw.as_str(), "time" | "-p" | "--"));
                if timed && assignment(&word)?.is_some_and(|given| given.form != Form::Plain) {
                    self.found.note(Kind::Group);
                }
                command.words.push(word);
            }
        }
        if let [only] = command.words.as_slice() {
            // `name ()` with a blank between.
            if self.peek() == Some(b'(') && command.assignments.is_empty() && command.redirects.is_empty() {
                let name = only.raw.clone();
                return self.function_body(&name).map(|()| false);
            }
        }
        if self.peek() == Some(b'(') {
            return Err(WRONG);
        }
        let empty = command.words.is_empty() && command.assignments.is_empty();
        if empty && command.redirects.is_empty() && command.input.is_empty() {
            return Err(WRONG);
        }
        if command.words.is_empty() && !command.assignments.is_empty() {
            self.found.note(Kind::Assignment);
        }
        self.found.commands.push(command);
        Ok(true)
    }

    /// `NAME=( .. )`, in front of a command or as an argument of `declare` and the like.
    fn array(&mut self, command: &mut Simple, word: &RawWord, start: usize) -> Parsed<()> {
        self.found.note(Kind::Group);
        self.at += 1;
        loop {
            self.line_breaks()?;
            if self.take(")") {
                break;
            }
            if self.word()?.raw.is_empty() {
                return Err(WRONG);
            }
        }
        let name = leading_name(&word.raw).to_owned();
        let value = RawWord { raw: self.since(start).to_owned(), pieces: vec![Piece::Unknown] };
        if command.words.is_empty() {
            command.assignments.push(RawAssignment {
                name,
                raw: value.raw.clone(),
                value,
                form: Form::Array,
            });
        } else {
            command.words.push(value);
        }
        Ok(())
    }

    /// The parentheses and the body of a function.
    pub(super) fn function_body(&mut self, name: &str) -> Parsed<()> {
        self.found.note(Kind::Group);
        if name.is_empty() || name.contains(['$', '`', '\'', '"', '\\', '=']) {
            return Err(WRONG);
        }
        if self.take("(") {
            self.blanks();
            self.expect(")")?;
        }
        self.line_breaks()?;
        if !self.at_compound() {
            return Err(WRONG);
        }
        let start = self.found.commands.len();
        self.deeper(Self::compound)?;
        self.found.repeats = true;
        self.apart(start, Of::Function(name.to_owned()));
        let body = start..self.found.commands.len();
        self.found.functions.push((name.to_owned(), body));
        Ok(())
    }
}
