//! What a command would run in turn: behind wrappers, in the text of `sh -c`, `eval` and their like.

use std::ops::{ControlFlow, Range};

use super::facts::plain_name;
use super::inspect::Inspector;
use super::scripts::Code;
use super::spelling::written;
use super::word::text_of;
use super::{
    Kind, Value, Word, builtins, carriers, fallback, find, interpreters, part, scripts, unknown, wrappers,
};

/// How many wrappers may stand before one another until the rest is searched as text.
const DEEPEST: usize = 8;

/// How many later words are tried as the command behind a wrapper with options that are not known.
const MOST_STARTS: usize = 8;

/// How many texts are read once more at the end.
const MOST_LATER: usize = 64;

/// Words that mean something only where a command of the shell begins.
const RESERVED: &[&str] = &[
    "!", "{", "}", "if", "then", "elif", "else", "fi", "while", "until", "for", "do", "done", "case", "esac",
    "select", "function", "[[",
];

/// Whether a command touches what lies below what it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Below {
    Too,
    Not,
}

impl Inspector<'_> {
    /// Looks behind the command that is the part at some place.
    pub(super) fn behind(&mut self, at: usize, words: &[Word], depth: usize) {
        let Some((first, arguments)) = words.split_first() else { return };
        let Some(name) = first.value.literal() else {
            self.mark_opaque(at);
            return;
        };
        if depth >= DEEPEST {
            self.unfollowed(&spoken(words));
            return;
        }
        if depth > 0 && RESERVED.contains(&name) {
            // No command is called so; but whoever wrote it meant what follows.
            self.unfollowed(&spoken(arguments));
        }
        let name = plain_name(name);
        if let Some(behind) = wrappers::behind(&name, words) {
            self.note_given(at, &behind.given);
            for text in &behind.texts {
                self.carried(at, text);
            }
            // Searching a text at every word covers all that stands behind later wrappers in it.
            let covered = self.covered;
            if behind.anywhere && !covered {
                self.unfollowed(&spoken(arguments));
                self.covered = true;
                let literal =
                    |start: &usize| words.get(*start).is_some_and(|word| word.value.literal().is_some());
                for start in (1..words.len().min(MOST_STARTS)).filter(literal) {
                    self.searched(words.get(start..).unwrap_or_default(), depth + 1);
                }
            }
            if let Some(words) = &behind.respelled {
                self.searched(words, depth + 1);
            }
            if matches!(name.as_str(), "xargs" | "parallel") {
                self.filled_in(at, &name, words, behind.start);
            }
            if matches!(name.as_str(), "watch" | "parallel") {
                // The words are joined and given to a shell.
                let start = behind.start.unwrap_or(words.len());
                self.nested(&spoken(words.get(start..).unwrap_or_default()));
            }
            if let Some(start) = behind.start {
                self.searched(words.get(start..).unwrap_or_default(), depth + 1);
            }
            self.covered = covered;
        }
        if interpreters::SHELLS.contains(&name.as_str()) {
            self.shell(at, arguments);
        }
        if interpreters::SHELLS.contains(&name.as_str()) || matches!(name.as_str(), "source" | ".") {
            self.program_file(arguments, depth);
        }
        if builtins::holds_commands(&name) {
            self.builtin(at, &name, arguments);
        }
        let prints = name == "printf" && !arguments.iter().any(|word| word.raw.contains("-v"));
        if builtins::expands_subscripts(&name) && !prints {
            self.subscripts(arguments);
        }
        if name == "find" {
            let executed = find::executed(arguments);
            if executed.len() >= find::MOST_EXECUTED {
                self.unfollowed(&spoken(arguments));
            }
            for command in executed {
                if unknown::runs_unknown(&unknown::with_holes(command, "{}")) {
                    self.mark_opaque(at);
                }
                self.searched(command, depth + 1);
                self.touches(&find::filled(command, arguments), Below::Too);
            }
        }
        if name == "hash" {
            self.remembered(arguments);
        }
        self.carriers(at, &name, arguments);
    }

    /// What ordinary programs are given to run, or may run.
    fn carriers(&mut self, at: usize, name: &str, arguments: &[Word]) {
        let carried = carriers::carried(name, arguments);
        for text in &carried.commands {
            self.carried(at, text);
        }
        for text in &carried.guesses {
            self.perhaps(text);
        }
        self.codes(at, scripts::found(name, arguments));
    }

    /// What scripts of other languages may run.
    pub(super) fn codes(&mut self, at: usize, codes: Vec<Code>) {
        for code in codes {
            if let Some(part) = self.script.parts.get_mut(at) {
                part.opaque |= code.opaque;
                part.deny_spellings.extend(fallback::spellings_in(&code.text));
            }
            for piece in &code.pieces {
                self.perhaps(piece);
            }
        }
    }

    /// What `xargs` or `parallel` runs, if that is filled in from what it reads.
    fn filled_in(&mut self, at: usize, name: &str, words: &[Word], start: Option<usize>) {
        let unknown = match start {
            Some(start) => unknown::runs_unknown(&unknown::filled(words, start, None)),
            // Each line is a command of its own.
            None => name == "parallel",
        };
        if unknown {
            self.mark_opaque(at);
        }
        if let Some(start) = start {
            self.touches(&unknown::filled(words, start, None), Below::Not);
        }
    }

    /// The files of a command whose words are filled in. By which words it is called is judged without them.
    fn touches(&mut self, words: &[Word], below: Below) {
        let inner = (0..DEEPEST).try_fold(words, |words, _| {
            let name = words.first().and_then(|word| word.value.literal()).map(plain_name);
            let start = name.and_then(|name| wrappers::behind(&name, words)).and_then(|behind| behind.start);
            match start.and_then(|start| words.get(start..)) {
                Some(inner) => ControlFlow::Continue(inner),
                None => ControlFlow::Break(words),
            }
        });
        let (ControlFlow::Continue(words) | ControlFlow::Break(words)) = inner;
        let mut part = part::searched(words);
        part.deny_spellings.clear();
        part.opaque = false;
        part.recursive |= below == Below::Too;
        if !(part.reads.is_empty() && part.writes.is_empty() && part.critical.is_empty()) {
            self.script.parts.push(part);
        }
    }

    /// The commands among these parts that are filled in by what they read, each with where what they run begins.
    pub(super) fn filled_commands(&self, parts: &[Range<usize>]) -> Vec<(Vec<Word>, usize)> {
        let parts = parts.iter().flat_map(|parts| self.script.parts.get(parts.clone()).unwrap_or_default());
        let filled = parts.filter_map(|part| {
            let name = plain_name(part.words.first()?.value.literal()?);
            if !matches!(name.as_str(), "xargs" | "parallel") {
                return None;
            }
            Some((part.words.clone(), wrappers::behind(&name, &part.words)?.start?))
        });
        filled.collect()
    }

    /// What commands do with the words of a text.
    pub(super) fn filled_by(&mut self, commands: &[(Vec<Word>, usize)], text: &str) {
        for (words, start) in commands {
            if !self.limits.take_filled(words.len() + unknown::growth(words, *start, text) / 8) {
                self.cut_short();
                return;
            }
            self.searched(&unknown::filled(words, *start, Some(text)), 1);
        }
    }

    /// `hash -p FILE NAME`: from now on the name means the file.
    fn remembered(&mut self, arguments: &[Word]) {
        let texts: Vec<&str> = arguments.iter().filter_map(|word| word.value.literal()).collect();
        let Some(option) = texts.iter().position(|text| text.starts_with('-') && text.contains('p')) else {
            return;
        };
        let joined = texts.get(option).and_then(|text| text.split_once('p')).map_or("", |(_, file)| file);
        let (file, names) = match joined {
            "" => (texts.get(option + 1).copied().unwrap_or_default(), option + 2),
            joined => (joined, option + 1),
        };
        for name in texts.get(names..).unwrap_or_default() {
            self.scope.rename(name, file);
        }
        self.nested(file);
    }

    pub(super) fn mark_opaque(&mut self, at: usize) {
        if let Some(part) = self.script.parts.get_mut(at) {
            part.opaque = true;
        }
    }

    /// The text of a command in one word.
    fn carried(&mut self, at: usize, text: &Value) {
        if text.literal().is_none() {
            self.mark_opaque(at);
        }
        self.nested(&text_of(text));
    }

    /// `sh -c TEXT`, also with the letter in a bundle.
    fn shell(&mut self, at: usize, arguments: &[Word]) {
        let command = arguments.iter().position(|word| {
            let text = word.value.literal().unwrap_or_default();
            text == "--command"
                || text
                    .strip_prefix(['-', '+'])
                    .is_some_and(|letters| !letters.starts_with('-') && letters.contains('c'))
        });
        if arguments.iter().any(|word| word.value.is_unknown()) {
            self.mark_opaque(at);
        }
        let Some(command) = command else { return };
        // Options may stand between the letter and the text, so each later word may be it.
        for word in arguments.iter().skip(command + 1).take(4) {
            self.carried(at, &word.value);
        }
        let rest: Vec<String> = arguments.iter().skip(command + 5).map(|word| text_of(&word.value)).collect();
        if !rest.is_empty() {
            self.unfollowed(&rest.join(" "));
        }
    }

    /// `sh NAME` and `source NAME`: a name that is no file here is looked for where programs are.
    fn program_file(&mut self, arguments: &[Word], depth: usize) {
        let option = |word: &&Word| word.value.literal().is_some_and(|text| text.starts_with(['-', '+']));
        let start = arguments.iter().take_while(option).count();
        self.searched(arguments.get(start..).unwrap_or_default(), depth + 1);
    }

    /// Commands in `a[$(..)]`, which a builtin expands although the shell has left them alone.
    fn subscripts(&mut self, arguments: &[Word]) {
        for text in arguments.iter().filter_map(|word| word.value.literal()) {
            let subscript = text.contains('[') || text.contains("=(");
            if subscript && text.contains(['$', '`']) {
                // What is in it runs, whatever rule allows the builtin.
                self.note(Kind::Substitution);
                self.nested(text);
            }
        }
    }

    fn builtin(&mut self, at: usize, name: &str, arguments: &[Word]) {
        if matches!(name, "eval" | "trap") && self.later.len() < MOST_LATER {
            let texts = arguments.iter().filter_map(|word| word.value.literal());
            self.later.extend(texts.filter(|text| text.contains('$')).map(str::to_owned));
        }
        if arguments.iter().any(|word| word.value.literal().is_none()) {
            self.mark_opaque(at);
        }
        if name == "eval" {
            let end = usize::from(arguments.first().is_some_and(|word| word.value.literal() == Some("--")));
            let texts: Vec<String> = arguments.iter().skip(end).map(|word| text_of(&word.value)).collect();
            self.nested(&texts.join(" "));
            return;
        }
        let texts: Vec<String> = arguments.iter().map(|word| text_of(&word.value)).collect();
        for text in texts.iter().take(32) {
            let text = match text.split_once('=').filter(|_| name == "alias") {
                Some((alias, text)) => {
                    self.scope.rename(alias, text);
                    text
                }
                None => text,
            };
            if !text.starts_with('-') {
                self.nested(text);
                continue;
            }
            // The text may be joined to any letter of the options.
            for (at, _) in text.char_indices().skip(2).take(4) {
                self.nested(text.get(at..).unwrap_or_default());
            }
        }
        if texts.len() > 32 {
            self.unfollowed(&texts.join(" "));
        }
    }
}

/// The words without quotes, or as written where their value is not known.
fn spoken(words: &[Word]) -> String {
    let text = |word: &Word| word.value.literal().map_or_else(|| word.raw.clone(), str::to_owned);
    if words.iter().all(|word| word.value.literal().is_none()) {
        return written(words);
    }
    words.iter().map(text).collect::<Vec<_>>().join(" ")
}
