//! Parser for lists, pipelines and simple commands. Compound commands are in `compound`, redirects in `redirects`.
//!
//! The parser builds no tree: each simple command is added to the [`ParsedScript`](super::syntax::ParsedScript) when
//! it ends, and every construct outside the supported set is recorded there.

use super::assignment_words::{is_array_start, parse_assignment};
use super::cursor::{ParseResult, Parser, SYNTAX_ERROR};
use super::syntax::{
    AssignmentForm, ConditionalKind, Pipeline, RawAssignment, RawCommand, RawWord, WordPiece,
};
use crate::shell::UnanalyzableCause;
use crate::shell::parser::words::{is_word_end, leading_name};

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
    pub(crate) fn take_keyword(&mut self, word: &str) -> bool {
        let there = self.keyword() == word;
        if there {
            self.position += word.len();
        }
        there
    }

    /// Consumes a reserved word, or fails.
    pub(crate) fn expect_keyword(&mut self, word: &str) -> ParseResult<()> {
        if self.take_keyword(word) { Ok(()) } else { Err(SYNTAX_ERROR) }
    }

    /// Parses pipelines joined by `&&` and `||`. After `&&`, all pipelines since the last `||` have run.
    fn parse_and_or(&mut self) -> ParseResult<()> {
        let whole = self.result.commands.len();
        self.parse_pipeline()?;
        let mut since = None;
        // Branches of `a && b || c`, if both exist.
        let mut ways = Vec::new();
        loop {
            self.skip_blanks();
            let both = self.take("&&");
            if !both && !self.take("||") {
                since.into_iter().for_each(|since| {
                    self.mark_conditional(since, ConditionalKind::Branch);
                });
                if ways.len() == 2 && since.is_none() {
                    self.mark_choice(whole, ways);
                }
                return Ok(());
            }
            let start = self.result.commands.len();
            ways.clear();
            if !both && let Some(since) = since.take() {
                ways.push(self.mark_conditional(since, ConditionalKind::Branch));
            }
            self.skip_line_breaks()?;
            self.parse_pipeline()?;
            if both {
                since.get_or_insert(start);
            } else {
                ways.push(self.mark_conditional(start, ConditionalKind::Branch));
            }
        }
    }

    fn parse_pipeline(&mut self) -> ParseResult<()> {
        while self.take_keyword("!") {
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
            if self.take_keyword("!") {
                // Bash accepts `!` only at the start of a pipeline; other shells accept it here too.
                return Err(SYNTAX_ERROR);
            }
            after_pipe = true;
        }
    }

    /// Parses `time`: a reserved word before a compound command, treated as a wrapper before a simple one.
    fn parse_time_prefix(&mut self) -> ParseResult<()> {
        let start = self.position;
        if !self.take_keyword("time") {
            return Ok(());
        }
        self.skip_blanks();
        while ["-p", "--", "!", "time"].iter().any(|word| self.take_keyword(word)) {
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

    fn parse_simple_command(&mut self) -> ParseResult<bool> {
        let mut command = RawCommand {
            in_substitution: self.in_substitution,
            substitution_depth: self.substitution_depth,
            ..RawCommand::default()
        };
        loop {
            self.skip_blanks();
            self.skip_comment();
            if self.parse_redirect(&mut command)? {
                continue;
            }
            let process = matches!(self.peek(), Some(b'<' | b'>')) && self.byte_at(1) == Some(b'(');
            if !process && self.peek().is_none_or(is_word_end) {
                break;
            }
            let start = self.position;
            let word = self.parse_word()?;
            if self.peek() == Some(b'(') {
                if is_array_start(&word.raw) {
                    self.parse_array(&mut command, &word, start)?;
                    continue;
                }
                if command.words.is_empty() && command.assignments.is_empty() && command.redirects.is_empty()
                {
                    return self.parse_function_body(&word.raw).map(|()| false);
                }
                return Err(SYNTAX_ERROR);
            }
            if command.words.is_empty() {
                match parse_assignment(&word)? {
                    Some(given) => {
                        if given.form != AssignmentForm::Plain {
                            self.result.note_unanalyzable(UnanalyzableCause::CompoundSyntax);
                        }
                        command.assignments.push(given);
                    }
                    None => command.words.push(word),
                }
            } else {
                // Assignments after `time` are still assignments.
                let timed =
                    command.words.iter().all(|word| matches!(word.raw.as_str(), "time" | "-p" | "--"));
                if timed && parse_assignment(&word)?.is_some_and(|given| given.form != AssignmentForm::Plain)
                {
                    self.result.note_unanalyzable(UnanalyzableCause::CompoundSyntax);
                }
                command.words.push(word);
            }
        }
        if let [only] = command.words.as_slice() {
            // `name ()` with a blank in between.
            if self.peek() == Some(b'(') && command.assignments.is_empty() && command.redirects.is_empty() {
                let name = only.raw.clone();
                return self.parse_function_body(&name).map(|()| false);
            }
        }
        if self.peek() == Some(b'(') {
            return Err(SYNTAX_ERROR);
        }
        let empty = command.words.is_empty() && command.assignments.is_empty();
        if empty && command.redirects.is_empty() && command.stdin_texts.is_empty() {
            return Err(SYNTAX_ERROR);
        }
        if command.words.is_empty() && !command.assignments.is_empty() {
            self.result.note_unanalyzable(UnanalyzableCause::Assignment);
        }
        self.result.commands.push(command);
        Ok(true)
    }

    /// Parses `NAME=( .. )`, in front of a command or as an argument of `declare` and the like.
    fn parse_array(&mut self, command: &mut RawCommand, word: &RawWord, start: usize) -> ParseResult<()> {
        self.result.note_unanalyzable(UnanalyzableCause::CompoundSyntax);
        self.position += 1;
        loop {
            self.skip_line_breaks()?;
            if self.take(")") {
                break;
            }
            if self.parse_word()?.raw.is_empty() {
                return Err(SYNTAX_ERROR);
            }
        }
        let name = leading_name(&word.raw).to_owned();
        let value = RawWord { raw: self.text_since(start).to_owned(), pieces: vec![WordPiece::Unknown] };
        if command.words.is_empty() {
            command.assignments.push(RawAssignment {
                name,
                raw: value.raw.clone(),
                value,
                form: AssignmentForm::Array,
            });
        } else {
            command.words.push(value);
        }
        Ok(())
    }

    /// Parses the parentheses and the body of a function.
    pub(crate) fn parse_function_body(&mut self, name: &str) -> ParseResult<()> {
        self.result.note_unanalyzable(UnanalyzableCause::CompoundSyntax);
        if name.is_empty() || name.contains(['$', '`', '\'', '"', '\\', '=']) {
            return Err(SYNTAX_ERROR);
        }
        if self.take("(") {
            self.skip_blanks();
            self.expect(")")?;
        }
        self.skip_line_breaks()?;
        if !self.is_at_compound() {
            return Err(SYNTAX_ERROR);
        }
        let start = self.result.commands.len();
        self.with_depth(Self::parse_compound)?;
        self.result.may_repeat = true;
        self.mark_conditional(start, ConditionalKind::Function(name.to_owned()));
        let body = start..self.result.commands.len();
        self.result.functions.push((name.to_owned(), body));
        Ok(())
    }
}
