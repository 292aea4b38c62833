//! Parser for lists, pipelines and simple commands. Compound commands are in `compound`, redirects in `redirects`.
//!
//! The parser builds no tree: each simple command is added to the [`ParsedScript`](super::syntax::ParsedScript) when
//! it ends, and every construct outside the supported set is recorded there.

use super::cursor::{ParseResult, Parser, SYNTAX_ERROR};
use super::syntax::{
    AssignmentForm, ConditionalKind, Pipeline, RawAssignment, RawCommand, RawWord, WordPiece,
};
use crate::shell::UnanalyzableCause;
use crate::shell::parser::words::{extract_leading_name, is_word_end};

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
                    Some(assignment) => {
                        if assignment.form != AssignmentForm::Plain {
                            self.result.note_unanalyzable(UnanalyzableCause::CompoundSyntax);
                        }
                        command.assignments.push(assignment);
                    }
                    None => command.words.push(word),
                }
            } else {
                // Assignments after `time` are still assignments.
                let timed =
                    command.words.iter().all(|word| matches!(word.raw.as_str(), "time" | "-p" | "--"));
                if timed
                    && parse_assignment(&word)?
                        .is_some_and(|assignment| assignment.form != AssignmentForm::Plain)
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
            if self.consume(")") {
                break;
            }
            if self.parse_word()?.raw.is_empty() {
                return Err(SYNTAX_ERROR);
            }
        }
        let name = extract_leading_name(&word.raw).to_owned();
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
        if self.consume("(") {
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

/// Returns true if an array may follow: `NAME=` or `NAME+=`.
fn is_array_start(raw: &str) -> bool {
    let name = extract_leading_name(raw);
    !name.is_empty() && matches!(raw.get(name.len()..), Some("=" | "+="))
}

/// Parses a word as an assignment, if it is one.
fn parse_assignment(word: &RawWord) -> ParseResult<Option<RawAssignment>> {
    let name = extract_leading_name(&word.raw);
    let after = word.raw.get(name.len()..).unwrap_or_default();
    if name.is_empty() {
        return Ok(None);
    }
    let (form, length) = match after.as_bytes() {
        [b'=', ..] => (AssignmentForm::Plain, 1),
        [b'+', b'=', ..] => (AssignmentForm::Appended, 2),
        [b'[', ..] if after.contains("]=") || after.contains("]+=") => {
            return Ok(Some(parse_element(word, name)));
        }
        // A subscript with blanks: the shell reads on to the closing bracket.
        [b'[', ..] if !after.contains(']') => return Err(SYNTAX_ERROR),
        _ => return Ok(None),
    };
    let mut pieces = word.pieces.clone();
    if let Some(WordPiece::Plain(text)) = pieces.first_mut() {
        text.drain(..(name.len() + length).min(text.len()));
    }
    let value = RawWord { raw: after.get(length..).unwrap_or_default().to_owned(), pieces };
    Ok(Some(RawAssignment { name: name.to_owned(), value, raw: word.raw.clone(), form }))
}

/// Parses `NAME[subscript]=value`. The value is known if the whole word is literal.
fn parse_element(word: &RawWord, name: &str) -> RawAssignment {
    let literal = |piece: &WordPiece| match piece {
        WordPiece::Plain(text) | WordPiece::Quoted(text) => Some(text.clone()),
        WordPiece::Variable { .. } | WordPiece::Unknown => None,
    };
    let text: Option<String> = word.pieces.iter().map(literal).collect();
    let known = text.as_deref().and_then(|text| {
        let (subscript, value) = text.get(name.len() + 1..)?.split_once("]=")?;
        Some((subscript.to_owned(), WordPiece::Quoted(value.to_owned())))
    });
    let (subscript, piece) = known.unwrap_or((String::new(), WordPiece::Unknown));
    RawAssignment {
        name: name.to_owned(),
        value: RawWord { raw: word.raw.clone(), pieces: vec![piece] },
        raw: word.raw.clone(),
        form: AssignmentForm::Element(subscript),
    }
}
