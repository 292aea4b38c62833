//! Parser for simple commands: assignments, words, redirects; also arrays and function definitions.

use super::cursor::{ParseResult, Parser, SYNTAX_ERROR};
use super::syntax::{AssignmentForm, ConditionalKind, RawAssignment, RawCommand, RawWord, WordPiece};
use crate::shell::UnanalyzableCause;
use crate::shell::parser::words::{extract_leading_name, is_word_end};

impl Parser<'_> {
    pub(super) fn parse_simple_command(&mut self) -> ParseResult<bool> {
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
