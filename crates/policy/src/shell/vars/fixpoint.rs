//! Fixpoint over variable values: in loops and functions, an assignment later in the text may run first.

use std::collections::HashSet;

use super::alternatives::MAX_PREFIX_WORDS;
use super::env::{ExpansionMode, LAST_VALUE};
use crate::shell::analyzer::Analyzer;
use crate::shell::parser::syntax::{ParsedScript, RawAssignment, RawCommand, RawWord, WordPiece};
use crate::shell::programs::builtins;
use crate::shell::words::expand;
use crate::shell::{Word, WordValue};

/// Rounds of propagating values from variable to variable.
const MAX_ROUNDS: usize = 64;

/// Values followed for a variable that is assigned from itself.
const MAX_SELF_GROWTH: usize = 8;

impl Analyzer<'_> {
    /// Assigns the words of a loop to its variable.
    pub(crate) fn assign_loop_variables(&mut self, parsed: &ParsedScript) {
        for (name, words) in &parsed.loop_values {
            for raw in words {
                for choice in 0..self.variables.count_alternatives(raw) {
                    if self.variables.is_budget_exhausted() {
                        self.variables.add_value(name, None);
                        break;
                    }
                    let expanded = expand::expand_word(
                        raw,
                        &self.variables,
                        ExpansionMode::NthValue(choice),
                        &mut Vec::new(),
                    );
                    for word in expanded {
                        if let WordValue::Glob(glob) = &word.value {
                            // The variable holds one of the matching files; the pattern represents them.
                            self.variables.add_value(name, Some(glob.clone()));
                        }
                        self.variables.add_value(name, word.value.as_literal().map(str::to_owned));
                    }
                }
                if self.variables.may_have_other_values(raw) {
                    self.variables.add_value(name, None);
                }
                self.record_texts_if_empty(name, raw);
            }
            self.variables.mark_multi_valued(name);
        }
    }

    /// Assigns call arguments to the parameters of functions. The unknown value is added last, because other callers
    /// are possible. `shift` may move any argument to the front.
    fn assign_function_arguments(&mut self, parsed: &ParsedScript) {
        let names: HashSet<&str> = parsed.functions.iter().map(|(name, _)| name.as_str()).collect();
        if names.is_empty() {
            return;
        }
        for command in &parsed.commands {
            let words = self.expand_words(&command.words, LAST_VALUE, &mut Vec::new());
            let Some((_, arguments)) = words
                .split_first()
                .filter(|(name, _)| name.value.as_literal().is_some_and(|name| names.contains(name)))
            else {
                continue;
            };
            let texts: Vec<String> = arguments.iter().map(|word| expand::render_value(&word.value)).collect();
            for number in 1..10 {
                for word in arguments.iter().skip(number - 1).take(9) {
                    self.variables.add_value(&number.to_string(), word.value.as_literal().map(str::to_owned));
                }
                self.variables.add_value(&number.to_string(), None);
            }
            for name in ["@", "*"] {
                self.variables.add_value(name, Some(texts.join(" ")));
                self.variables.add_value(name, None);
            }
        }
    }

    /// Adds the values of all assignments in advance, because commands may run more than once.
    pub(crate) fn propagate_values(&mut self, parsed: &ParsedScript) {
        let definite_count = self.variables.definite_count();
        // Nothing is definite yet.
        let floor = self.variables.set_definite_floor(usize::MAX);
        for command in &parsed.commands {
            for assignment in &command.assignments {
                let values = self.list_possible_values(&assignment.value);
                self.record_texts_if_empty(&assignment.name, &assignment.value);
                self.apply_assignment(command, assignment, values);
            }
        }
        self.assign_function_arguments(parsed);
        self.assign_loop_variables(parsed);
        self.run_to_fixpoint(parsed);
        self.variables.rollback_definite(definite_count);
        self.variables.set_definite_floor(floor);
    }

    /// Propagates values between variables until nothing changes. A value that grows out of itself becomes unknown.
    fn run_to_fixpoint(&mut self, parsed: &ParsedScript) {
        let commands = parsed.commands.iter();
        let mut dependent: Vec<&RawAssignment> =
            commands.clone().flat_map(|command| &command.assignments).collect();
        dependent.retain(|assignment| uses_variable(&assignment.value, None));
        let builtins: Vec<&RawCommand> = commands.filter(|command| may_set_variables(command)).collect();
        for _ in 0..MAX_ROUNDS {
            let known = self.variables.known_count();
            for assignment in &dependent {
                self.propagate_assignment(assignment);
            }
            for command in &builtins {
                self.propagate_builtin(command);
            }
            if self.variables.known_count() == known {
                return;
            }
        }
        self.variables.overflowed = true;
    }

    fn propagate_assignment(&mut self, assignment: &RawAssignment) {
        if self.variables.has_too_many_values(&assignment.name) {
            return;
        }
        let choices = self.variables.count_alternatives(&assignment.value);
        if !self.budget.spend_values(choices) {
            self.variables.overflowed = true;
            return;
        }
        if uses_variable(&assignment.value, Some(&assignment.name)) {
            self.variables.add_value(&assignment.name, None);
            if choices > MAX_SELF_GROWTH {
                return;
            }
        }
        let text = |choice| {
            let words = expand::expand_word(
                &assignment.value,
                &self.variables,
                ExpansionMode::NthValue(choice),
                &mut Vec::new(),
            );
            let texts: Option<Vec<&str>> = words.iter().map(|word| word.value.as_literal()).collect();
            texts.map(|texts| texts.join(" "))
        };
        // Adding a value reorders the alternatives, so all are computed first.
        for value in (0..choices).map(text).collect::<Vec<_>>() {
            self.variables.add_value(&assignment.name, value);
        }
    }

    /// Records the variables that a builtin sets, with all known values.
    fn propagate_builtin(&mut self, command: &RawCommand) {
        let choices =
            command.words.iter().map(|word| self.variables.count_alternatives(word)).max().unwrap_or(1);
        if !self.budget.spend_values(choices) {
            self.variables.overflowed = true;
            return;
        }
        let words = self.expand_words(&command.words, LAST_VALUE, &mut Vec::new());
        // The effect of `eval` and `trap` texts on variables is not propagated.
        let texts = |word: &Word| matches!(word.value.as_literal(), Some("eval" | "trap"));
        self.variables.has_untracked_changes |= words.iter().take(MAX_PREFIX_WORDS).any(texts);
        let others: Vec<ExpansionMode> = (1..choices).map(ExpansionMode::NthValue).collect();
        self.record_builtin_values(command, &words, &others);
    }
}

/// Returns true if a word uses this variable, or any variable.
fn uses_variable(word: &RawWord, name: Option<&str>) -> bool {
    word.pieces.iter().any(|piece| match piece {
        WordPiece::Variable { name: used, .. } => name.is_none_or(|name| name == used),
        WordPiece::Plain(_) | WordPiece::Quoted(_) | WordPiece::Unknown => false,
    })
}

/// Returns true if a command may be a builtin that sets variables, under any name.
fn may_set_variables(command: &RawCommand) -> bool {
    let may_set =
        |word: &RawWord| word.raw.contains(['$', '\\', '\'', '"']) || builtins::sets_variables(&word.raw);
    command.words.first().is_some_and(may_set)
        || command.words.first().is_some_and(|word| matches!(word.raw.as_str(), "time" | "!"))
            && command.words.iter().take(MAX_PREFIX_WORDS).any(may_set)
}
