//! Compound commands: loops, conditions, groups, functions.

use super::Kind;
use super::cursor::{Inside, Parsed, Parser, WRONG};
use super::lexer::leading_name;
use super::syntax::{Feed, Of, Piece, RawWord, Simple};

const OPENERS: &[&str] = &["if", "while", "until", "for", "case", "select", "function", "coproc", "{", "[["];

impl Parser<'_> {
    /// Whether a compound command begins here.
    pub(super) fn at_compound(&self) -> bool {
        self.peek() == Some(b'(') || OPENERS.contains(&self.keyword())
    }

    /// One compound command with its redirects.
    pub(super) fn compound(&mut self) -> Parsed<()> {
        let start = self.found.commands.len();
        match self.keyword() {
            "if" => self.condition()?,
            "while" | "until" => {
                self.found.repeats = true;
                self.at += 5;
                self.list()?;
                self.loop_body(Of::Branch)?;
                // The condition may end the loop before its end.
                self.apart(start, Of::Branch);
            }
            "for" => self.for_loop()?,
            "select" => {
                self.found.note(Kind::Group);
                self.found.repeats = true;
                self.at += 6;
                self.named_loop()?;
            }
            "case" => self.case()?,
            "function" => {
                self.at += 8;
                self.blanks();
                let name = self.word()?.raw;
                self.blanks();
                return self.function_body(&name);
            }
            "coproc" => return self.coprocess(),
            "[[" => self.test()?,
            "{" => {
                self.found.note(Kind::Group);
                self.at += 1;
                self.list()?;
                self.expect_keyword("}")?;
            }
            _ => self.parentheses()?,
        }
        self.trailing_redirects(start)
    }

    /// The redirects of a compound command, whose commands begin at a place in the harvest.
    fn trailing_redirects(&mut self, start: usize) -> Parsed<()> {
        let mut holder = Simple { hidden: self.hidden, within: self.within, ..Simple::default() };
        loop {
            self.blanks();
            if !self.redirect(&mut holder)? {
                break;
            }
        }
        let feeds = !holder.input.is_empty() || holder.redirects.iter().any(|redirect| !redirect.writes);
        let end = self.found.commands.len();
        if feeds {
            self.found.feeds.push(Feed { commands: start..end, holder: end });
        }
        if holder.may_fail {
            // What cannot be opened keeps the whole from running.
            self.apart(start, Of::Branch);
        }
        if feeds || !holder.redirects.is_empty() {
            self.found.commands.push(holder);
        }
        Ok(())
    }

    fn condition(&mut self) -> Parsed<()> {
        let whole = self.found.commands.len();
        self.at += 2;
        self.list()?;
        self.expect_keyword("then")?;
        let mut ways = vec![self.branch()?];
        let others = self.found.commands.len();
        while self.take_keyword("elif") {
            self.list()?;
            self.expect_keyword("then")?;
            ways.push(self.branch()?);
        }
        let last = self.take_keyword("else");
        if last {
            ways.push(self.branch()?);
        }
        self.apart(others, Of::Branch);
        if last {
            self.choice(whole, ways);
        }
        self.expect_keyword("fi")
    }

    /// Commands that may not run; answers where that is noted.
    fn branch(&mut self) -> Parsed<usize> {
        let start = self.found.commands.len();
        self.list()?;
        Ok(self.apart(start, Of::Branch))
    }

    /// The body of a loop.
    fn loop_body(&mut self, of: Of) -> Parsed<()> {
        self.expect_keyword("do")?;
        let start = self.found.commands.len();
        self.list()?;
        self.apart(start, of);
        self.expect_keyword("done")
    }

    fn for_loop(&mut self) -> Parsed<()> {
        self.found.repeats = true;
        self.at += 3;
        self.blanks();
        if !self.rest().starts_with("((") {
            return self.named_loop();
        }
        self.found.note(Kind::Group);
        let end = self.balanced(self.at, b'(', b')')?;
        self.searched_arithmetic(self.at + 1, end - 1);
        self.at = end;
        self.blanks();
        self.take(";");
        self.line_breaks()?;
        if self.keyword() == "{" { self.braced() } else { self.loop_body(Of::Branch) }
    }

    /// A body in braces, which may not run.
    fn braced(&mut self) -> Parsed<()> {
        let start = self.found.commands.len();
        self.compound()?;
        self.apart(start, Of::Branch);
        Ok(())
    }

    fn named_loop(&mut self) -> Parsed<()> {
        self.blanks();
        let name = self.word()?.raw;
        if name.is_empty() || leading_name(&name) != name {
            return Err(WRONG);
        }
        // A loop sets its variable, and a program could heed that.
        if !name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
            || name.ends_with("_proxy")
            || name.starts_with("npm_")
        {
            self.found.note(Kind::Assignment);
        }
        self.line_breaks()?;
        let mut words = Vec::new();
        if self.take_keyword("in") {
            loop {
                self.blanks();
                if self.peek() == Some(b'#') {
                    break;
                }
                let word = self.word()?;
                if word.raw.is_empty() {
                    break;
                }
                words.push(word);
            }
        } else {
            self.found.note(Kind::Variable);
            words.push(RawWord { raw: "\"$@\"".to_owned(), pieces: vec![Piece::Unknown] });
        }
        self.found.loops.push((name.clone(), words));
        self.blanks();
        self.take(";");
        self.line_breaks()?;
        self.loop_body(Of::Loop(name))
    }

    fn case(&mut self) -> Parsed<()> {
        self.found.note(Kind::Group);
        self.at += 4;
        self.blanks();
        self.word()?;
        self.line_breaks()?;
        self.expect_keyword("in")?;
        let (whole, mut ways, mut all) = (self.found.commands.len(), Vec::new(), false);
        loop {
            self.line_breaks()?;
            if self.take_keyword("esac") {
                break;
            }
            self.take("(");
            loop {
                self.blanks();
                let pattern = self.word()?.raw;
                if pattern.is_empty() {
                    return Err(WRONG);
                }
                all |= pattern == "*";
                self.blanks();
                if !self.take("|") {
                    break;
                }
            }
            self.expect(")")?;
            let start = self.found.commands.len();
            self.list_or_nothing()?;
            ways.push(self.apart(start, Of::Branch));
            if !(self.take(";;&") || self.take(";;") || self.take(";&")) {
                self.expect_keyword("esac")?;
                break;
            }
        }
        if all {
            self.choice(whole, ways);
        }
        Ok(())
    }

    fn coprocess(&mut self) -> Parsed<()> {
        self.found.note(Kind::Group);
        self.found.background = true;
        self.at += 6;
        self.blanks();
        let start = self.at;
        // `coproc NAME { .. }`
        self.at += leading_name(self.rest()).len();
        self.blanks();
        if !self.at_compound() {
            self.at = start;
        }
        let start = self.found.commands.len();
        self.command()?;
        self.apart(start, Of::Branch);
        Ok(())
    }

    /// A subshell, or arithmetic in double parentheses. Bash looks for the end of the inner ones first: it is arithmetic
    /// if the outer end stands right behind.
    fn parentheses(&mut self) -> Parsed<()> {
        self.found.note(Kind::Group);
        if self.byte(1) == Some(b'(') {
            let end = self.balanced(self.at + 1, b'(', b')')?;
            if self.text.as_bytes().get(end) == Some(&b')') {
                self.arithmetic_command(end);
                return Ok(());
            }
        }
        self.at += 1;
        let start = self.found.commands.len();
        self.list()?;
        self.apart(start, Of::Branch);
        self.expect(")")
    }

    /// `(( .. ))`. No here-document begins in it. Other shells take it for commands, so it is searched as such too.
    fn arithmetic_command(&mut self, end: usize) {
        let start = self.at + 2;
        let inside = self.text.get(start..end - 1).unwrap_or_default();
        self.searched_arithmetic(start, end - 1);
        if inside.contains(['\'', '"', '`']) || inside.contains("$(") {
            // Quotes do not keep arithmetic from expanding, and make it uncertain where it ends.
            self.inner(inside, Inside::Expansions);
            self.doubt();
        }
        self.at = end + 1;
    }

    /// `[[ .. ]]`: its operands must be literal, and nothing may evaluate them.
    fn test(&mut self) -> Parsed<()> {
        let start = self.at;
        self.at += 2;
        let mut words: Vec<String> = Vec::new();
        let mut quoted: Vec<String> = Vec::new();
        loop {
            self.line_breaks()?;
            if self.take_keyword("]]") {
                break;
            }
            let operator = ["&&", "||", "(", ")", "<", ">"].iter().find(|operator| {
                self.rest().starts_with(**operator)
                    && !matches!(self.rest().as_bytes(), [b'<' | b'>', b'(', ..])
            });
            if let Some(operator) = operator {
                self.at += operator.len();
                words.push((*operator).to_owned());
                continue;
            }
            let pattern = words.last().is_some_and(|last| last == "=~");
            let word = if pattern {
                self.word_until(|byte| matches!(byte, b' ' | b'\t' | b'\n'))?
            } else {
                self.word()?
            };
            if word.raw.is_empty() {
                return Err(WRONG);
            }
            quoted.extend(word.pieces.iter().filter_map(quoted_expansion));
            words.push(word.raw);
        }
        if words.is_empty() {
            return Err(WRONG);
        }
        if super::conditions::evaluates(words.iter().map(String::as_str)) {
            self.found.note(Kind::Test);
            // Arithmetic expands what the quotes have kept.
            for text in &quoted {
                self.inner(text, Inside::Expansions);
            }
        }
        let text = self.since(start).to_owned();
        self.found.commands.push(Simple {
            words: vec![RawWord { raw: text.clone(), pieces: vec![Piece::Quoted(text)] }],
            condition: true,
            hidden: self.hidden,
            within: self.within,
            ..Simple::default()
        });
        Ok(())
    }
}

/// Quoted text in which an expansion would be found.
fn quoted_expansion(piece: &Piece) -> Option<String> {
    match piece {
        Piece::Quoted(text) if text.contains(['$', '`']) => Some(text.clone()),
        Piece::Quoted(_) | Piece::Plain(_) | Piece::Variable { .. } | Piece::Unknown => None,
    }
}
