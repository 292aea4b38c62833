//! Assignments: the values that variables get from assignments and wrappers, and aliases of commands.

use std::collections::HashMap;

use super::env::{ExpansionMode, LAST_VALUE};
use crate::shell::analyzer::Analyzer;
use crate::shell::parser::syntax::{AssignmentForm, ParsedScript, RawAssignment, RawCommand, RawWord};
use crate::shell::parser::words::extract_leading_name;
use crate::shell::words::expand;
use crate::shell::{SimpleCommand, Word, WordValue};

/// Variables in which bash looks up command names.
const COMMAND_TABLE_VARS: &[&str] = &["BASH_ALIASES", "BASH_CMDS"];

/// For longer texts with unknown parts, only one alternative is tracked.
const MAX_MULTI_TEXT_LENGTH: usize = 256;

/// Length of an alias that costs one unit of the budget.
const ALIAS_UNIT_LENGTH: usize = 256;

/// Variables whose value, or the file it names, bash runs.
const VARS_RUN_BY_BASH: &[&str] = &["BASH_ENV", "PROMPT_COMMAND"];

/// Variables whose value bash or common programs run as a command.
const COMMAND_VARS: &[&str] = &[
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

impl Analyzer<'_> {
    /// Records the value of an assigned variable for the case that unknown parts are empty.
    pub(crate) fn record_texts_if_empty(&mut self, name: &str, word: &RawWord) {
        let mut texts: Vec<String> = Vec::new();
        for choice in 0..self.variables.count_empty_alternatives(std::iter::once(word)) {
            let value = expand::expand_single_with(
                word,
                &self.variables,
                ExpansionMode::UnknownAsEmpty(choice),
                &mut Vec::new(),
            );
            texts.extend(value.as_literal().map(str::to_owned));
            if texts.last().is_none_or(|text| text.len() > MAX_MULTI_TEXT_LENGTH)
                || !self.budget.spend_values(1)
            {
                break;
            }
        }
        for text in texts.iter().rev() {
            self.variables.add_text_if_empty(name, text);
        }
    }

    /// Lists all values that a word may have where it is not split, the most recent one last.
    pub(crate) fn list_possible_values(&mut self, word: &RawWord) -> Vec<Option<String>> {
        let choices = if self.variables.has_only_last_values(word) {
            1
        } else {
            self.variables.count_alternatives(word)
        };
        if choices > 1 && !self.budget.spend_values(choices) {
            self.variables.overflowed = true;
            return vec![None];
        }
        let value = |choice| {
            let value = expand::expand_single_with(
                word,
                &self.variables,
                ExpansionMode::NthValue(choice),
                &mut Vec::new(),
            );
            value.as_literal().map(str::to_owned)
        };
        (0..choices).rev().map(value).collect()
    }

    /// Records an assignment, alone or before a command.
    pub(crate) fn record_assignment(
        &mut self,
        command: &RawCommand,
        assignment: &RawAssignment,
        value: &WordValue,
    ) {
        let may_differ = !self.variables.has_only_last_values(&assignment.value)
            && self.variables.may_have_other_values(&assignment.value);
        let mut values = self.list_possible_values(&assignment.value);
        if may_differ {
            values.insert(0, None);
        }
        self.record_texts_if_empty(&assignment.name, &assignment.value);
        self.apply_assignment(command, assignment, values);
        if let Some(text) = value.as_literal() {
            self.analyze_value(text);
            self.analyze_command_value(&assignment.name, text);
        }
    }

    /// Adds the values of an assignment to its variable.
    pub(crate) fn apply_assignment(
        &mut self,
        command: &RawCommand,
        assignment: &RawAssignment,
        values: Vec<Option<String>>,
    ) {
        let name = assignment.name.as_str();
        match &assignment.form {
            AssignmentForm::Plain if !command.words.is_empty() => {
                for value in values {
                    self.variables.add_temporary_value(name, value);
                }
            }
            AssignmentForm::Plain => {
                let several = values.len() > 1;
                for value in values {
                    self.variables.add_value(name, value);
                }
                if several {
                    self.variables.mark_definite_any(name);
                } else {
                    self.variables.mark_definite(name);
                }
            }
            AssignmentForm::Appended => {
                if self.budget.spend_values(values.len() * self.variables.value_count(name)) {
                    self.variables.append(name, &values);
                } else {
                    self.variables.overflowed = true;
                    self.variables.add_value(name, None);
                }
            }
            AssignmentForm::Element(subscript) => {
                for value in values {
                    if let Some(text) = value.as_ref().filter(|_| COMMAND_TABLE_VARS.contains(&name)) {
                        self.variables.add_alias(subscript, text);
                    }
                    self.variables.add_value(name, value);
                }
                // The bare name stands for the first element, which may be another one.
                self.variables.add_value(name, None);
            }
            AssignmentForm::Array => {
                self.variables.add_value(name, None);
            }
        }
    }

    /// Analyzes commands in a value. Prompts, start-up files and arithmetic expand values a second time.
    pub(crate) fn analyze_value(&mut self, value: &str) {
        if value.contains(['$', '`']) && value.contains(['(', '`']) {
            self.analyze_text(value);
        }
    }

    /// Analyzes a value that bash or another program would run as a command.
    pub(crate) fn analyze_command_value(&mut self, name: &str, value: &str) {
        if COMMAND_TABLE_VARS.contains(&name) || COMMAND_VARS.contains(&name) {
            self.analyze_text(value);
        }
    }

    /// Records the variables that a wrapper such as `env` sets for its command.
    pub(crate) fn record_wrapper_variables(&mut self, index: usize, words: &[Word]) {
        for word in words {
            let text = expand::render_value(&word.value);
            let name = extract_leading_name(&text);
            let value = text.get(name.len()..).and_then(|rest| rest.strip_prefix('=')).unwrap_or_default();
            let known = word.value.as_literal().is_some();
            self.variables.add_temporary_value(name, known.then(|| value.to_owned()));
            if known {
                self.analyze_value(value);
                self.analyze_command_value(name, value);
            } else if VARS_RUN_BY_BASH.contains(&name) {
                self.mark_opaque(index);
            }
        }
    }

    /// Analyzes commands whose name has an alias with the alias text as well.
    pub(crate) fn analyze_aliases(&mut self, parsed: &ParsedScript) {
        if !self.variables.has_aliases() {
            return;
        }
        let mut seen: HashMap<_, usize> = HashMap::new();
        for command in &parsed.commands {
            let raw: Vec<&str> = command.words.iter().map(|word| word.raw.as_str()).collect();
            let times = seen.entry((raw, self.capture_analysis_state())).or_default();
            *times += 1;
            // A second run may find a changed disk; further ones change nothing, unless they move files.
            if *times > 2 {
                continue;
            }
            let words = self.expand_words(&command.words, LAST_VALUE, &mut Vec::new());
            let Some((first, rest)) = words.split_first() else { continue };
            for text in self.variables.aliases(first.value.as_literal().unwrap_or_default()) {
                if !self.budget.spend_aliases(1 + text.len() / ALIAS_UNIT_LENGTH) {
                    self.mark_truncated();
                    return;
                }
                let rest: Vec<String> = rest.iter().map(|word| expand::render_value(&word.value)).collect();
                self.analyze_text(&format!("{text} {}", rest.join(" ")));
                // After an alias that ends in a blank, the next word may be an alias too.
                let Some((next, rest)) = rest.split_first().filter(|_| text.ends_with([' ', '\t'])) else {
                    continue;
                };
                for next_text in self.variables.aliases(next) {
                    if !self.budget.spend_aliases(1 + (text.len() + next_text.len()) / ALIAS_UNIT_LENGTH) {
                        self.mark_truncated();
                        return;
                    }
                    self.analyze_text(&format!("{text} {next_text} {}", rest.join(" ")));
                }
            }
        }
    }
}

/// Returns true if bash is given an unknown command to run.
pub(crate) fn gives_bash_unknown_command(simple_command: &SimpleCommand) -> bool {
    let run = |name: &str| VARS_RUN_BY_BASH.contains(&name);
    simple_command
        .assignments
        .iter()
        .any(|assignment| run(&assignment.name) && assignment.value.as_literal().is_none())
}

/// Returns true if an assignment changes the meaning of command names.
pub(crate) fn assigns_command_table(command: &RawCommand) -> bool {
    let table = |text: &str| COMMAND_TABLE_VARS.contains(&extract_leading_name(text));
    command.assignments.iter().any(|assignment| table(&assignment.name))
        || command.words.iter().skip(1).any(|word: &RawWord| table(&word.raw) && word.raw.contains('='))
}
