//! Which values variables are given, by assignments and wrappers; and which names commands get.

use std::collections::HashMap;

use super::inspect::Inspector;
use super::lexer::leading_name;
use super::scope::{LAST, Reading};
use super::syntax::{Form, Harvest, RawAssignment, RawWord, Simple};
use super::{Part, Value, Word, word};

/// Variables that bash itself looks into for what a command name means.
const COMMAND_TABLES: &[&str] = &["BASH_ALIASES", "BASH_CMDS"];

/// Of longer texts with something unknown in them only one reading is followed.
const LONG_TEXT: usize = 256;

/// How long a meaning of a command may be that counts as one.
const A_MEANING: usize = 256;

/// Variables whose value bash runs, or a file that it runs.
const RUN_BY_BASH: &[&str] = &["BASH_ENV", "PROMPT_COMMAND"];

/// Variables whose value is a command to bash or to programs in wide use.
const RUN: &[&str] = &[
    "PROMPT_COMMAND",
    "BASH_ENV",
    "SHELL",
    "PAGER",
    "EDITOR",
    "VISUAL",
    "GIT_PAGER",
    "GIT_EDITOR",
    "GIT_SEQUENCE_EDITOR",
    "GIT_EXTERNAL_DIFF",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_ASKPASS",
    "SSH_ASKPASS",
];

impl Inspector<'_> {
    /// Notes what a variable that is given a word is if what is not known is nothing.
    pub(super) fn suppose_of(&mut self, name: &str, word: &RawWord) {
        let mut texts: Vec<String> = Vec::new();
        for choice in 0..self.scope.vanishing(std::iter::once(word)) {
            let left = word::single_by(word, &self.scope, Reading::Nothing(choice), &mut Vec::new());
            texts.extend(left.literal().map(str::to_owned));
            if texts.last().is_none_or(|text| text.len() > LONG_TEXT) || !self.limits.take_values(1) {
                break;
            }
        }
        for text in texts.iter().rev() {
            self.scope.suppose(name, text);
        }
    }

    /// Everything that a word may be where it is not split, what it was given last at the end.
    pub(super) fn values_of(&mut self, word: &RawWord) -> Vec<Option<String>> {
        let choices = if self.scope.is_last(word) { 1 } else { self.scope.ways(word) };
        if choices > 1 && !self.limits.take_values(choices) {
            self.scope.overflows = true;
            return vec![None];
        }
        let value = |choice| {
            let value = word::single_by(word, &self.scope, Reading::Nth(choice), &mut Vec::new());
            value.literal().map(str::to_owned)
        };
        (0..choices).rev().map(value).collect()
    }

    /// An assignment in front of a command, or one alone.
    pub(super) fn assigned(&mut self, command: &Simple, given: &RawAssignment, value: &Value) {
        let doubtful = !self.scope.is_last(&given.value) && self.scope.doubts(&given.value);
        let mut values = self.values_of(&given.value);
        if doubtful {
            values.insert(0, None);
        }
        self.suppose_of(&given.name, &given.value);
        self.keep(command, given, values);
        if let Some(text) = value.literal() {
            self.search_value(text);
            self.search_command(&given.name, text);
        }
    }

    /// Gives a variable the values of an assignment.
    pub(super) fn keep(&mut self, command: &Simple, given: &RawAssignment, values: Vec<Option<String>>) {
        let name = given.name.as_str();
        match &given.form {
            Form::Plain if !command.words.is_empty() => {
                for value in values {
                    self.scope.lend(name, value);
                }
            }
            Form::Plain => {
                let several = values.len() > 1;
                for value in values {
                    self.scope.give(name, value);
                }
                if several {
                    self.scope.settle_some(name);
                } else {
                    self.scope.settle(name);
                }
            }
            Form::Appended => {
                if self.limits.take_values(values.len() * self.scope.choices(name)) {
                    self.scope.append(name, &values);
                } else {
                    self.scope.overflows = true;
                    self.scope.give(name, None);
                }
            }
            Form::Element(subscript) => {
                for value in values {
                    if let Some(text) = value.as_ref().filter(|_| COMMAND_TABLES.contains(&name)) {
                        self.scope.rename(subscript, text);
                    }
                    self.scope.give(name, value);
                }
                // The first element is what the bare name stands for.
                self.scope.give(name, None);
            }
            Form::Array => {
                self.scope.give(name, None);
            }
        }
    }

    /// Prompts, start-up files and arithmetic expand values once more, so commands in one are searched.
    pub(super) fn search_value(&mut self, value: &str) {
        if value.contains(['$', '`']) && value.contains(['(', '`']) {
            self.nested(value);
        }
    }

    /// Values that bash or another program would run.
    pub(super) fn search_command(&mut self, name: &str, value: &str) {
        if COMMAND_TABLES.contains(&name) || RUN.contains(&name) {
            self.nested(value);
        }
    }

    /// Variables that a wrapper such as `env` gives to what it runs.
    pub(super) fn note_given(&mut self, at: usize, words: &[Word]) {
        for word in words {
            let text = word::text_of(&word.value);
            let name = leading_name(&text);
            let value = text.get(name.len()..).and_then(|rest| rest.strip_prefix('=')).unwrap_or_default();
            let known = word.value.literal().is_some();
            self.scope.lend(name, known.then(|| value.to_owned()));
            if known {
                self.search_value(value);
                self.search_command(name, value);
            } else if RUN_BY_BASH.contains(&name) {
                self.mark_opaque(at);
            }
        }
    }

    /// Commands whose name was given another meaning are searched by that meaning too.
    pub(super) fn other_meanings(&mut self, harvest: &Harvest) {
        if !self.scope.renames() {
            return;
        }
        let mut seen: HashMap<_, usize> = HashMap::new();
        for command in &harvest.commands {
            let raw: Vec<&str> = command.words.iter().map(|word| word.raw.as_str()).collect();
            let times = seen.entry((raw, self.standing())).or_default();
            *times += 1;
            // What runs again may find another disk than the first time; once more changes nothing, unless it moves.
            if *times > 2 {
                continue;
            }
            let words = self.words(&command.words, LAST, &mut Vec::new());
            let Some((first, rest)) = words.split_first() else { continue };
            for text in self.scope.meanings(first.value.literal().unwrap_or_default()) {
                if !self.limits.take_meanings(1 + text.len() / A_MEANING) {
                    self.cut_short();
                    return;
                }
                let rest: Vec<String> = rest.iter().map(|word| word::text_of(&word.value)).collect();
                self.nested(&format!("{text} {}", rest.join(" ")));
                // After one that ends in a blank, the next word may be one, too.
                let Some((next, rest)) = rest.split_first().filter(|_| text.ends_with([' ', '\t'])) else {
                    continue;
                };
                for meaning in self.scope.meanings(next) {
                    if !self.limits.take_meanings(1 + (text.len() + meaning.len()) / A_MEANING) {
                        self.cut_short();
                        return;
                    }
                    self.nested(&format!("{text} {meaning} {}", rest.join(" ")));
                }
            }
        }
    }
}

/// Whether something that is not known is given to bash to run.
pub(super) fn hides_commands(part: &Part) -> bool {
    let run = |name: &str| RUN_BY_BASH.contains(&name);
    part.assignments.iter().any(|given| run(&given.name) && given.value.literal().is_none())
}

/// Whether an assignment changes what command names mean.
pub(super) fn renames_commands(command: &Simple) -> bool {
    let table = |text: &str| COMMAND_TABLES.contains(&leading_name(text));
    command.assignments.iter().any(|given| table(&given.name))
        || command.words.iter().skip(1).any(|word: &RawWord| table(&word.raw) && word.raw.contains('='))
}
