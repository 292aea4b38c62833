//! Parser of shell text: a closed grammar, one pass, bounded depth. It yields a [`syntax::ParsedScript`].
//!
//! This file parses lists and pipelines; `simple_commands`, `compound` (groups, subshells, loops, conditions),
//! `redirects`, `words` and `expansions` (variables, substitutions) parse what they consist of. The parser builds no
//! tree: each simple command is added to the [`ParsedScript`](syntax::ParsedScript) when it ends, and every construct
//! outside the supported set is recorded there.

pub(crate) mod ansi_quotes;
pub(crate) mod brackets;
pub(crate) mod compound;
pub(crate) mod cursor;
pub(crate) mod expansions;
pub(crate) mod hidden_characters;
pub(crate) mod redirects;
mod simple_commands;
pub(crate) mod syntax;
pub(crate) mod words;

use cursor::{ParseResult, Parser, SYNTAX_ERROR};
use syntax::{ConditionalKind, Pipeline};
use words::is_word_end;

/// Words that end a list of commands.
const LIST_END_WORDS: &[&str] = &["then", "elif", "else", "fi", "do", "done", "esac", "}"];

impl<'a> Parser<'a> {
    /// Parses a whole text.
    pub(crate) fn parse_program(&mut self) -> ParseResult<()> {
        self.parse_optional_list()?;
        if self.is_at_end() && self.pending.is_empty() { Ok(()) } else { Err(SYNTAX_ERROR) }
    }

    /// Parses at least one command, up to the end of the list.
    pub(crate) fn parse_list(&mut self) -> ParseResult<()> {
        if self.parse_optional_list()? == 0 { Err(SYNTAX_ERROR) } else { Ok(()) }
    }

    /// Parses commands up to the end of the list. Returns their number.
    pub(crate) fn parse_optional_list(&mut self) -> ParseResult<usize> {
        let mut count = 0;
        loop {
            self.skip_line_breaks()?;
            if self.is_at_list_end() {
                return Ok(count);
            }
            let start = self.result.commands.len();
            self.parse_and_or()?;
            count += 1;
            self.skip_blanks();
            self.skip_comment();
            match self.peek() {
                Some(b';') if matches!(self.byte_at(1), Some(b';' | b'&')) => return Ok(count),
                Some(b';') => self.position += 1,
                Some(b'&') => {
                    self.result.background = true;
                    self.mark_conditional(start, ConditionalKind::Branch);
                    self.position += 1;
                }
                Some(b'\n') => {}
                _ if self.is_at_list_end() => return Ok(count),
                _ => return Err(SYNTAX_ERROR),
            }
        }
    }

    fn is_at_list_end(&self) -> bool {
        match self.peek() {
            None | Some(b')') => true,
            Some(b';') => matches!(self.byte_at(1), Some(b';' | b'&')),
            Some(_) => LIST_END_WORDS.contains(&self.keyword()),
        }
    }

    /// The plain word at the position, as long as a reserved word can be.
    pub(crate) fn keyword(&self) -> &'a str {
        let rest = self.rest();
        let end = rest.bytes().take(9).position(is_word_end).unwrap_or(rest.len().min(9));
        rest.get(..end).unwrap_or_default()
    }

    /// Consumes a reserved word if it is next.
    pub(crate) fn consume_keyword(&mut self, word: &str) -> bool {
        let found = self.keyword() == word;
        if found {
            self.position += word.len();
        }
        found
    }

    /// Consumes a reserved word, or fails.
    pub(crate) fn expect_keyword(&mut self, word: &str) -> ParseResult<()> {
        if self.consume_keyword(word) { Ok(()) } else { Err(SYNTAX_ERROR) }
    }

    /// Parses pipelines joined by `&&` and `||`. After `&&`, all pipelines since the last `||` have run.
    fn parse_and_or(&mut self) -> ParseResult<()> {
        let whole = self.result.commands.len();
        self.parse_pipeline()?;
        let mut branch_start = None;
        // Branches of `a && b || c`, if both exist.
        let mut branches = Vec::new();
        loop {
            self.skip_blanks();
            let both = self.consume("&&");
            if !both && !self.consume("||") {
                branch_start.into_iter().for_each(|branch_start| {
                    self.mark_conditional(branch_start, ConditionalKind::Branch);
                });
                if branches.len() == 2 && branch_start.is_none() {
                    self.mark_choice(whole, branches);
                }
                return Ok(());
            }
            let start = self.result.commands.len();
            branches.clear();
            if !both && let Some(branch_start) = branch_start.take() {
                branches.push(self.mark_conditional(branch_start, ConditionalKind::Branch));
            }
            self.skip_line_breaks()?;
            self.parse_pipeline()?;
            if both {
                branch_start.get_or_insert(start);
            } else {
                branches.push(self.mark_conditional(start, ConditionalKind::Branch));
            }
        }
    }

    fn parse_pipeline(&mut self) -> ParseResult<()> {
        while self.consume_keyword("!") {
            self.skip_blanks();
        }
        self.parse_time_prefix()?;
        let start = self.result.commands.len();
        let mut starts = Vec::new();
        let mut after_pipe = false;
        loop {
            let element = self.result.commands.len();
            let simple = self.parse_command()?;
            self.skip_blanks();
            let piped = self.peek() == Some(b'|') && self.byte_at(1) != Some(b'|');
            if piped || after_pipe {
                self.mark_conditional(element, ConditionalKind::Branch);
            }
            if piped {
                self.position += if self.byte_at(1) == Some(b'&') { 2 } else { 1 };
            }
            if let Some(command) = self.result.commands.last_mut().filter(|_| simple) {
                command.after_pipe = after_pipe;
                command.before_pipe = piped;
            }
            let next = self.result.commands.len();
            if !piped {
                if after_pipe {
                    starts.push(next);
                    self.result
                        .pipelines
                        .push(Pipeline { starts, substitution_depth: self.substitution_depth });
                }
                return Ok(());
            }
            if !after_pipe {
                starts.push(start);
            }
            starts.push(next);
            self.skip_line_breaks()?;
            if self.consume_keyword("!") {
                // Bash accepts `!` only at the start of a pipeline; other shells accept it here too.
                return Err(SYNTAX_ERROR);
            }
            after_pipe = true;
        }
    }

    /// Parses `time`: a reserved word before a compound command, treated as a wrapper before a simple one.
    fn parse_time_prefix(&mut self) -> ParseResult<()> {
        let start = self.position;
        if !self.consume_keyword("time") {
            return Ok(());
        }
        self.skip_blanks();
        while ["-p", "--", "!", "time"].iter().any(|word| self.consume_keyword(word)) {
            self.skip_blanks();
        }
        if self.is_at_misplaced_keyword() || matches!(self.peek(), Some(b'|' | b'&')) {
            return Err(SYNTAX_ERROR);
        }
        if !self.is_at_compound() {
            self.position = start;
        }
        Ok(())
    }

    /// Returns true at a reserved word that cannot start a command.
    fn is_at_misplaced_keyword(&self) -> bool {
        let word = self.keyword();
        LIST_END_WORDS.contains(&word) || matches!(word, "!" | "in" | "]]")
    }

    /// Parses one command. Returns true if it is a simple one.
    pub(crate) fn parse_command(&mut self) -> ParseResult<bool> {
        self.skip_blanks();
        if self.is_at_compound() {
            self.with_depth(Self::parse_compound)?;
            return Ok(false);
        }
        if self.is_at_misplaced_keyword() {
            return Err(SYNTAX_ERROR);
        }
        self.parse_simple_command()
    }
}
