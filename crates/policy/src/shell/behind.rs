//! What a command would run in turn: behind wrappers, in the text of `sh -c`, `eval` and their like.

use super::facts::plain_name;
use super::inspect::Inspector;
use super::spelling::written;
use super::word::text_of;
use super::{Value, Word, builtins, find, interpreters, part, wrappers};

/// How many wrappers may stand before one another until the rest is searched as text.
const DEEPEST: usize = 8;

/// Words that mean something only where a command of the shell begins.
const RESERVED: &[&str] = &[
    "!", "{", "}", "if", "then", "elif", "else", "fi", "while", "until", "for", "do", "done", "case", "esac",
    "select", "function", "[[",
];

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
            for text in &behind.texts {
                self.carried(at, text);
            }
            // Searching a text at every word covers all that stands behind later wrappers in it.
            let covered = self.covered;
            if behind.anywhere && !covered {
                self.unfollowed(&spoken(arguments));
                self.covered = true;
            }
            if matches!(name.as_str(), "watch" | "parallel") {
                // The words are joined and given to a shell.
                let start = behind.start.unwrap_or(words.len());
                self.nested(&spoken(words.get(start..).unwrap_or_default()));
            }
            if let Some(start) = behind.start {
                let inner = self.script.parts.len();
                self.searched(words.get(start..).unwrap_or_default(), depth + 1);
                if let Some(inner) = self.script.parts.get_mut(inner).filter(|_| name == "xargs") {
                    part::append_unknown(inner);
                }
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
        if builtins::expands_subscripts(&name) {
            self.subscripts(arguments);
        }
        if name == "find" {
            let executed = find::executed(arguments);
            if executed.len() >= find::MOST_EXECUTED {
                self.unfollowed(&spoken(arguments));
            }
            for command in executed {
                self.searched(command, depth + 1);
            }
        }
    }

    fn mark_opaque(&mut self, at: usize) {
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
            if text.contains('[') && text.contains(['$', '`']) {
                self.nested(text);
            }
        }
    }

    fn builtin(&mut self, at: usize, name: &str, arguments: &[Word]) {
        if arguments.iter().any(|word| word.value.literal().is_none()) {
            self.mark_opaque(at);
        }
        if name == "eval" {
            let texts: Vec<String> = arguments.iter().map(|word| text_of(&word.value)).collect();
            self.nested(&texts.join(" "));
            return;
        }
        let texts: Vec<String> = arguments.iter().map(|word| text_of(&word.value)).collect();
        for text in texts.iter().take(32) {
            let text = if name == "alias" {
                text.split_once('=').map_or(text.as_str(), |(_, text)| text)
            } else {
                text
            };
            if !text.starts_with('-') {
                self.nested(text);
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
