//! Parser for compound commands: loops, conditions, groups, functions.

use super::cursor::{NestedContent, ParseResult, Parser, SYNTAX_ERROR};
use super::syntax::{CompoundInput, ConditionalKind, RawCommand, RawWord, WordPiece};
use crate::shell::UnanalyzableCause;
use crate::shell::parser::words::extract_leading_name;

const COMPOUND_WORDS: &[&str] =
    &["if", "while", "until", "for", "case", "select", "function", "coproc", "{", "[["];

impl Parser<'_> {
    /// Returns true if a compound command starts here.
    pub(crate) fn is_at_compound(&self) -> bool {
        self.peek() == Some(b'(') || COMPOUND_WORDS.contains(&self.keyword())
    }

    /// Parses one compound command with its redirects.
    pub(crate) fn parse_compound(&mut self) -> ParseResult<()> {
        let start = self.result.commands.len();
        match self.keyword() {
            "if" => self.parse_if()?,
            "while" | "until" => {
                self.result.may_repeat = true;
                self.position += 5;
                self.parse_list()?;
                self.parse_loop_body(ConditionalKind::Branch)?;
                // The condition may end the loop before the body has run.
                self.mark_conditional(start, ConditionalKind::Branch);
            }
            "for" => self.parse_for()?,
            "select" => {
                self.result.note_unanalyzable(UnanalyzableCause::CompoundSyntax);
                self.result.may_repeat = true;
                self.position += 6;
                self.parse_named_loop()?;
            }
            "case" => self.parse_case()?,
            "function" => {
                self.position += 8;
                self.skip_blanks();
                let name = self.parse_word()?.raw;
                self.skip_blanks();
                return self.parse_function_body(&name);
            }
            "coproc" => return self.parse_coproc(),
            "[[" => self.parse_test()?,
            "{" => {
                self.result.note_unanalyzable(UnanalyzableCause::CompoundSyntax);
                self.position += 1;
                self.parse_list()?;
                self.expect_keyword("}")?;
            }
            _ => self.parse_parentheses()?,
        }
        self.parse_trailing_redirects(start)
    }

    /// Parses the redirects of a compound command whose commands start at an index.
    fn parse_trailing_redirects(&mut self, start: usize) -> ParseResult<()> {
        let mut holder = RawCommand {
            in_substitution: self.in_substitution,
            substitution_depth: self.substitution_depth,
            ..RawCommand::default()
        };
        loop {
            self.skip_blanks();
            if !self.parse_redirect(&mut holder)? {
                break;
            }
        }
        let has_input =
            !holder.stdin_texts.is_empty() || holder.redirects.iter().any(|redirect| !redirect.writes);
        let end = self.result.commands.len();
        if has_input {
            self.result.compound_inputs.push(CompoundInput { commands: start..end, redirect_holder: end });
        }
        if holder.may_fail {
            // If a redirect cannot be opened, none of the commands run.
            self.mark_conditional(start, ConditionalKind::Branch);
        }
        if has_input || !holder.redirects.is_empty() {
            self.result.commands.push(holder);
        }
        Ok(())
    }

    fn parse_if(&mut self) -> ParseResult<()> {
        let whole = self.result.commands.len();
        self.position += 2;
        self.parse_list()?;
        self.expect_keyword("then")?;
        let mut branches = vec![self.parse_branch()?];
        let others = self.result.commands.len();
        while self.consume_keyword("elif") {
            self.parse_list()?;
            self.expect_keyword("then")?;
            branches.push(self.parse_branch()?);
        }
        let last = self.consume_keyword("else");
        if last {
            branches.push(self.parse_branch()?);
        }
        self.mark_conditional(others, ConditionalKind::Branch);
        if last {
            self.mark_choice(whole, branches);
        }
        self.expect_keyword("fi")
    }

    /// Parses commands that may not run. Returns the index of their conditional range.
    fn parse_branch(&mut self) -> ParseResult<usize> {
        let start = self.result.commands.len();
        self.parse_list()?;
        Ok(self.mark_conditional(start, ConditionalKind::Branch))
    }

    fn parse_loop_body(&mut self, kind: ConditionalKind) -> ParseResult<()> {
        self.expect_keyword("do")?;
        let start = self.result.commands.len();
        self.parse_list()?;
        self.mark_conditional(start, kind);
        self.expect_keyword("done")
    }

    fn parse_for(&mut self) -> ParseResult<()> {
        self.result.may_repeat = true;
        self.position += 3;
        self.skip_blanks();
        if !self.rest().starts_with("((") {
            return self.parse_named_loop();
        }
        self.result.note_unanalyzable(UnanalyzableCause::CompoundSyntax);
        let end = self.find_closing(self.position, b'(', b')')?;
        self.search_arithmetic(self.position + 1, end - 1);
        self.position = end;
        self.skip_blanks();
        self.consume(";");
        self.skip_line_breaks()?;
        if self.keyword() == "{" {
            self.parse_braced_body()
        } else {
            self.parse_loop_body(ConditionalKind::Branch)
        }
    }

    /// Parses a body in braces, which may not run.
    fn parse_braced_body(&mut self) -> ParseResult<()> {
        let start = self.result.commands.len();
        self.parse_compound()?;
        self.mark_conditional(start, ConditionalKind::Branch);
        Ok(())
    }

    fn parse_named_loop(&mut self) -> ParseResult<()> {
        self.skip_blanks();
        let name = self.parse_word()?.raw;
        if name.is_empty() || extract_leading_name(&name) != name {
            return Err(SYNTAX_ERROR);
        }
        // The loop sets its variable, which may affect programs.
        if !name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
            || name.ends_with("_proxy")
            || name.starts_with("npm_")
        {
            self.result.note_unanalyzable(UnanalyzableCause::Assignment);
        }
        self.skip_line_breaks()?;
        let mut words = Vec::new();
        if self.consume_keyword("in") {
            loop {
                self.skip_blanks();
                if self.peek() == Some(b'#') {
                    break;
                }
                let word = self.parse_word()?;
                if word.raw.is_empty() {
                    break;
                }
                words.push(word);
            }
        } else {
            self.result.note_unanalyzable(UnanalyzableCause::Variable);
            words.push(RawWord { raw: "\"$@\"".to_owned(), pieces: vec![WordPiece::Unknown] });
        }
        self.result.loop_values.push((name.clone(), words));
        self.skip_blanks();
        self.consume(";");
        self.skip_line_breaks()?;
        self.parse_loop_body(ConditionalKind::Loop(name))
    }

    fn parse_case(&mut self) -> ParseResult<()> {
        self.result.note_unanalyzable(UnanalyzableCause::CompoundSyntax);
        self.position += 4;
        self.skip_blanks();
        self.parse_word()?;
        self.skip_line_breaks()?;
        self.expect_keyword("in")?;
        let (whole, mut branches, mut all) = (self.result.commands.len(), Vec::new(), false);
        loop {
            self.skip_line_breaks()?;
            if self.consume_keyword("esac") {
                break;
            }
            self.consume("(");
            loop {
                self.skip_blanks();
                let pattern = self.parse_word()?.raw;
                if pattern.is_empty() {
                    return Err(SYNTAX_ERROR);
                }
                all |= pattern == "*";
                self.skip_blanks();
                if !self.consume("|") {
                    break;
                }
            }
            self.expect(")")?;
            let start = self.result.commands.len();
            self.parse_optional_list()?;
            branches.push(self.mark_conditional(start, ConditionalKind::Branch));
            if !(self.consume(";;&") || self.consume(";;") || self.consume(";&")) {
                self.expect_keyword("esac")?;
                break;
            }
        }
        if all {
            self.mark_choice(whole, branches);
        }
        Ok(())
    }

    fn parse_coproc(&mut self) -> ParseResult<()> {
        self.result.note_unanalyzable(UnanalyzableCause::CompoundSyntax);
        self.result.background = true;
        self.position += 6;
        self.skip_blanks();
        let start = self.position;
        // `coproc NAME { .. }`
        self.position += extract_leading_name(self.rest()).len();
        self.skip_blanks();
        if !self.is_at_compound() {
            self.position = start;
        }
        let start = self.result.commands.len();
        self.parse_command()?;
        self.mark_conditional(start, ConditionalKind::Branch);
        Ok(())
    }

    /// Parses a subshell, or arithmetic in double parentheses. Like bash, it first looks for the end of the inner
    /// pair: it is arithmetic if the outer one closes right after it.
    fn parse_parentheses(&mut self) -> ParseResult<()> {
        self.result.note_unanalyzable(UnanalyzableCause::CompoundSyntax);
        if self.byte_at(1) == Some(b'(') {
            let end = self.find_closing(self.position + 1, b'(', b')')?;
            if self.text.as_bytes().get(end) == Some(&b')') {
                self.parse_arithmetic_command(end);
                return Ok(());
            }
        }
        self.position += 1;
        let start = self.result.commands.len();
        self.parse_list()?;
        self.mark_conditional(start, ConditionalKind::Branch);
        self.expect(")")
    }

    /// Parses `(( .. ))`. No here-document starts in it. Other shells read it as commands, so it is searched as such
    /// too.
    fn parse_arithmetic_command(&mut self, end: usize) {
        let start = self.position + 2;
        let inside = self.text.get(start..end - 1).unwrap_or_default();
        self.search_arithmetic(start, end - 1);
        if inside.contains(['\'', '"', '`']) || inside.contains("$(") {
            // Arithmetic expands quoted text as well, and the quotes make its end uncertain.
            self.parse_nested(inside, NestedContent::Expansions);
            self.search_whole_text();
        }
        self.position = end + 1;
    }

    /// Parses `[[ .. ]]`: its operands must be literal, and nothing may evaluate them.
    fn parse_test(&mut self) -> ParseResult<()> {
        let start = self.position;
        self.position += 2;
        let mut words: Vec<String> = Vec::new();
        let mut quoted: Vec<String> = Vec::new();
        loop {
            self.skip_line_breaks()?;
            if self.consume_keyword("]]") {
                break;
            }
            let operator = ["&&", "||", "(", ")", "<", ">"].iter().find(|operator| {
                self.rest().starts_with(**operator)
                    && !matches!(self.rest().as_bytes(), [b'<' | b'>', b'(', ..])
            });
            if let Some(operator) = operator {
                self.position += operator.len();
                words.push((*operator).to_owned());
                continue;
            }
            let pattern = words.last().is_some_and(|last| last == "=~");
            let word = if pattern {
                self.parse_word_until(|byte| matches!(byte, b' ' | b'\t' | b'\n'))?
            } else {
                self.parse_word()?
            };
            if word.raw.is_empty() {
                return Err(SYNTAX_ERROR);
            }
            quoted.extend(word.pieces.iter().filter_map(extract_quoted_expansion));
            words.push(word.raw);
        }
        if words.is_empty() {
            return Err(SYNTAX_ERROR);
        }
        if crate::shell::programs::builtins::evaluates_operands(words.iter().map(String::as_str)) {
            self.result.note_unanalyzable(UnanalyzableCause::Test);
            // Arithmetic expands the quoted text.
            for text in &quoted {
                self.parse_nested(text, NestedContent::Expansions);
            }
        }
        let text = self.text_since(start).to_owned();
        self.result.commands.push(RawCommand {
            words: vec![RawWord { raw: text.clone(), pieces: vec![WordPiece::Quoted(text)] }],
            is_test: true,
            in_substitution: self.in_substitution,
            substitution_depth: self.substitution_depth,
            ..RawCommand::default()
        });
        Ok(())
    }
}

/// Extracts quoted text that contains an expansion.
fn extract_quoted_expansion(piece: &WordPiece) -> Option<String> {
    match piece {
        WordPiece::Quoted(text) if text.contains(['$', '`']) => Some(text.clone()),
        WordPiece::Quoted(_) | WordPiece::Plain(_) | WordPiece::Variable { .. } | WordPiece::Unknown => None,
    }
}
