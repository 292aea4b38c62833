//! Which values variables are given, by assignments and builtins; and which names commands get.

use std::collections::HashMap;

use super::inspect::Inspector;
use super::lexer::leading_name;
use super::scope::{LAST, Reading};
use super::syntax::{Form, Harvest, RawAssignment, RawWord, Simple};
use super::{Part, Value, Word, builtins, word};

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
        let choices = if self.scope.is_last(word) { 1 } else { word::choices(word, &self.scope) };
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
    fn search_value(&mut self, value: &str) {
        if value.contains(['$', '`']) && value.contains(['(', '`']) {
            self.nested(value);
        }
    }

    /// Values that bash or another program would run.
    fn search_command(&mut self, name: &str, value: &str) {
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

    /// Variables that a builtin sets.
    pub(super) fn note_values(&mut self, words: &[Word]) {
        let words = words.get(words.iter().take_while(|word| is_prefix(word)).count()..).unwrap_or_default();
        let Some((first, arguments)) = words.split_first() else { return };
        let Some(name) = first.value.literal().filter(|name| builtins::sets_variables(name)) else { return };
        match name {
            "source" | "." | "enable" => self.scope.unsure = true,
            // They may run before any command, and after any.
            "trap" => self.scope.repeats = true,
            "alias" => {
                self.scope.repeats = true;
                self.scope.unsure |= arguments.iter().any(gives_builtin_a_meaning);
            }
            "eval" => self.scope.unsure |= arguments.iter().any(|word| word.value.literal().is_none()),
            "set" => {
                let mut options = arguments.iter().take_while(|word| word.value.literal() != Some("--"));
                self.scope.unsure |= options.any(takes_all_assignments);
            }
            _ if builtins::declares(name) => self.declared(name, arguments),
            "printf" if !sets_by_printf(arguments) => {}
            _ => self.overwritten(arguments),
        }
    }

    /// `declare NAME=value` and its like.
    fn declared(&mut self, name: &str, arguments: &[Word]) {
        let refers = |word: &Word| option_letters(word).contains('n');
        if matches!(name, "declare" | "typeset" | "local") && arguments.iter().any(refers) {
            // One name for another: from now on any name may mean any variable.
            self.scope.unsure = true;
        }
        let plain = arguments.iter().all(|word| is_plain_option(name, word));
        let fixes = name == "readonly" || arguments.iter().any(|word| option_letters(word).contains('r'));
        for word in arguments {
            let text = word.value.literal().unwrap_or(&word.raw);
            let variable = leading_name(text);
            let Some((target, value)) = text.split_once('=') else {
                // A name alone may hide its value in a function, or keep it; if it is not known which, that of any.
                self.scope.unsure |= word.value.literal().is_none();
                if fixes {
                    self.scope.keep_earlier(variable);
                    self.scope.keep_standing(variable);
                } else if name != "export" {
                    self.scope.forget(variable);
                }
                continue;
            };
            if variable.is_empty() {
                self.scope.unsure = true;
                continue;
            }
            let value = word.value.literal().map(|_| value);
            if target.ends_with('+') {
                self.scope.append(variable, &[value.map(str::to_owned)]);
            } else {
                self.scope.give(variable, value.map(str::to_owned));
                // Outside of functions nothing is local, and nothing is set; nor by options that say something else.
                if plain && target == variable && (name != "local" || self.in_function) {
                    self.scope.settle(variable);
                } else if !plain {
                    self.scope.give(variable, None);
                }
                if fixes {
                    self.scope.keep_earlier(variable);
                }
            }
            if target.contains('[') {
                self.scope.give(variable, None);
            }
            if let Some(value) = value {
                self.search_value(value);
                self.search_command(variable, value);
            }
        }
    }

    /// `read NAME` and its like: every argument may be the name, also one joined to an option.
    fn overwritten(&mut self, arguments: &[Word]) {
        for name in ["REPLY", "MAPFILE", "OPTARG", "OPTIND"] {
            self.scope.forget(name);
        }
        for word in arguments {
            let Some(text) = word.value.literal() else {
                self.scope.unsure = true;
                continue;
            };
            self.scope.forget(leading_name(text));
            if text.starts_with('-') {
                for (at, _) in text.char_indices().skip(2).take(6) {
                    self.scope.forget(text.get(at..).unwrap_or_default());
                }
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

/// Whether a word may stand before a builtin.
pub(super) fn is_prefix(word: &Word) -> bool {
    matches!(word.value.literal(), Some("builtin" | "command" | "time" | "-p" | "--" | "!"))
}

/// Whether `printf` sets a variable.
fn sets_by_printf(arguments: &[Word]) -> bool {
    match arguments.split_first() {
        // One word in quotes is the text to print.
        Some((first, [])) if first.raw.starts_with('"') => false,
        Some((first, _)) => first.value.literal().is_none_or(|text| text.starts_with("-v")),
        None => false,
    }
}

/// Whether an alias is called like a builtin that sets variables.
fn gives_builtin_a_meaning(word: &Word) -> bool {
    let text = word::text_of(&word.value);
    word.value.literal().is_none() || builtins::sets_variables(text.split('=').next().unwrap_or_default())
}

/// Whether an option of `set` makes every assignment among the arguments one in front.
fn takes_all_assignments(word: &Word) -> bool {
    word.value.literal().is_none_or(|text| text == "keyword" || text.starts_with('-') && text.contains('k'))
}

/// Whether a word is no option of a declaring builtin, or one that leaves the value as it is.
fn is_plain_option(builtin: &str, word: &Word) -> bool {
    let Some(text) = word.value.literal() else { return !word.raw.starts_with(['-', '$']) };
    let letters = if matches!(builtin, "export" | "readonly") { "" } else { "grtx" };
    match text.strip_prefix('-') {
        Some(given) => {
            text == "--" || !given.is_empty() && given.chars().all(|letter| letters.contains(letter))
        }
        None => !text.starts_with('+'),
    }
}

/// The letters of an option.
fn option_letters(word: &Word) -> &str {
    let text = word.value.literal().unwrap_or_default();
    text.strip_prefix('-').filter(|letters| !letters.starts_with('-')).unwrap_or_default()
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
