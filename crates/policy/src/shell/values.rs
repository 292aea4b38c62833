//! Which values variables are given, by assignments, loops and builtins; and which names commands get.

use std::collections::{HashMap, HashSet};

use super::inspect::Inspector;
use super::lexer::leading_name;
use super::syntax::{Form, Harvest, Piece, RawAssignment, RawWord, Simple};
use super::{Part, Value, Word, builtins, word};

/// Variables that bash itself looks into for what a command name means.
const COMMAND_TABLES: &[&str] = &["BASH_ALIASES", "BASH_CMDS"];

/// How long a meaning of a command may be that counts as one.
const A_MEANING: usize = 256;

/// How many words are looked at for a builtin behind `command` and its like.
const MOST_PREFIXES: usize = 4;

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
    /// Gives the variables of loops their words.
    pub(super) fn give_loops(&mut self, harvest: &Harvest) {
        for (name, words) in &harvest.loops {
            for raw in words {
                for choice in 0..word::choices(raw, &self.scope) {
                    if self.scope.is_full() {
                        self.scope.give(name, None);
                        break;
                    }
                    let expanded = word::expand(raw, &self.scope, choice, &mut Vec::new());
                    for word in expanded {
                        if let Value::Glob(glob) = &word.value {
                            // One of its files; the pattern stands for them.
                            self.scope.give(name, Some(glob.clone()));
                        }
                        self.scope.give(name, word.value.literal().map(str::to_owned));
                    }
                }
            }
        }
    }

    /// Gives functions what they are called with. Somebody else may call them, or set what they see: that comes last.
    fn give_arguments(&mut self, harvest: &Harvest) {
        let names: HashSet<&str> = harvest.functions.iter().map(|(name, _)| name.as_str()).collect();
        for command in &harvest.commands {
            let Some((_, arguments)) =
                command.words.split_first().filter(|(name, _)| names.contains(name.raw.as_str()))
            else {
                continue;
            };
            let words = self.words(arguments, 0, &mut Vec::new());
            for (number, word) in (1..10).zip(&words) {
                self.scope.give(&number.to_string(), word.value.literal().map(str::to_owned));
                self.scope.give(&number.to_string(), None);
            }
            let all: Vec<String> = words.iter().map(|word| word::text_of(&word.value)).collect();
            for name in ["@", "*"] {
                self.scope.give(name, Some(all.join(" ")));
                self.scope.give(name, None);
            }
        }
    }

    /// Where something may run more than once, a value that is given later may be there already.
    pub(super) fn foresee(&mut self, harvest: &Harvest) {
        for command in &harvest.commands {
            for given in &command.assignments {
                let value = word::single(&given.value, &self.scope, &mut Vec::new());
                self.keep(command, given, &value);
            }
            // What a text does to variables is not foreseen.
            let texts = |word: &RawWord| matches!(word.raw.as_str(), "eval" | "trap");
            self.scope.unsure |= command.words.iter().take(MOST_PREFIXES).any(texts);
            let sets = command.words.first().is_some_and(|word| builtins::sets_variables(&word.raw));
            if sets {
                let words = self.words(&command.words, 0, &mut Vec::new());
                self.note_values(&words);
            }
        }
        self.give_loops(harvest);
        self.give_arguments(harvest);
        // Values made of other values: once more, by all of those. What still changes then is not known.
        for given in harvest.commands.iter().flat_map(|command| &command.assignments) {
            let varies = given.value.pieces.iter().any(|piece| matches!(piece, Piece::Variable { .. }));
            if !varies || self.scope.is_lost(&given.name) {
                continue;
            }
            for choice in 0..word::choices(&given.value, &self.scope) {
                let words = word::expand(&given.value, &self.scope, choice, &mut Vec::new());
                let text: Option<Vec<&str>> = words.iter().map(|word| word.value.literal()).collect();
                if self.scope.give(&given.name, text.map(|texts| texts.join(" "))) {
                    self.scope.give(&given.name, None);
                }
            }
        }
    }

    /// An assignment in front of a command, or one alone.
    pub(super) fn assigned(&mut self, command: &Simple, given: &RawAssignment, value: &Value) {
        self.keep(command, given, value);
        if let Some(text) = value.literal() {
            self.search_value(text);
            self.search_command(&given.name, text);
        }
    }

    fn keep(&mut self, command: &Simple, given: &RawAssignment, value: &Value) {
        let name = given.name.as_str();
        let literal = value.literal();
        match &given.form {
            Form::Plain if !command.words.is_empty() => self.scope.lend(name, literal.map(str::to_owned)),
            Form::Plain => {
                self.scope.give(name, literal.map(str::to_owned));
                if name == "IFS" {
                    self.scope.split_at(literal);
                }
            }
            Form::Appended => self.scope.append(name, literal),
            Form::Element(subscript) => {
                // The first element is what the bare name stands for.
                self.scope.give(name, literal.map(str::to_owned));
                self.scope.give(name, None);
                if let Some(text) = literal.filter(|_| COMMAND_TABLES.contains(&name)) {
                    self.scope.rename(subscript, text);
                }
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
        let passes = |word: &&Word| matches!(word.value.literal(), Some("builtin" | "command" | "-p" | "--"));
        let words = words.get(words.iter().take_while(passes).count()..).unwrap_or_default();
        let Some((first, arguments)) = words.split_first() else { return };
        let Some(name) = first.value.literal().filter(|name| builtins::sets_variables(name)) else { return };
        match name {
            "source" | "." => self.scope.unsure = true,
            "eval" => self.scope.unsure |= arguments.iter().any(|word| word.value.literal().is_none()),
            _ if builtins::declares(name) => self.declared(name, arguments),
            "printf"
                if !arguments
                    .first()
                    .is_some_and(|word| word.raw.trim_matches(['\'', '"']).starts_with("-v")) => {}
            _ => self.overwritten(arguments),
        }
    }

    /// `declare NAME=value` and its like.
    fn declared(&mut self, name: &str, arguments: &[Word]) {
        let refers = |word: &Word| {
            let text = word.value.literal().unwrap_or_default();
            text.starts_with('-') && !text.starts_with("--") && text.contains('n')
        };
        if matches!(name, "declare" | "typeset" | "local") && arguments.iter().any(refers) {
            // One name for another: from now on any name may mean any variable.
            self.scope.unsure = true;
        }
        for word in arguments {
            let text = word.value.literal().unwrap_or(&word.raw);
            let variable = leading_name(text);
            let Some((target, value)) = text.split_once('=') else {
                // A name alone changes nothing, unless it is not known which.
                self.scope.unsure |= word.value.literal().is_none();
                continue;
            };
            if variable.is_empty() {
                self.scope.unsure = true;
                continue;
            }
            let value = word.value.literal().map(|_| value);
            if target.ends_with('+') {
                self.scope.append(variable, value);
            } else {
                self.scope.give(variable, value.map(str::to_owned));
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
            let words = self.words(&command.words, 0, &mut Vec::new());
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
