//! Variable environment of the deny analysis.
//!
//! A variable is represented by all values that the text assigns to it. As soon as it may have been changed in a way
//! that the text does not show, "unknown" is one of them.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};

use super::definite::DefiniteAssignments;
use crate::shell::analyzer::budget::AnalysisBudget;

/// Values tracked per variable.
const MAX_VALUES: usize = 128;

/// Texts tracked per variable for the case that unknown parts are empty.
const MAX_TEXTS_IF_EMPTY: usize = 128;

/// Bytes of `IFS` separators tracked.
const MAX_SEPARATOR_BYTES: usize = 256;

/// Length up to which appended values are tracked.
const MAX_APPENDED_LENGTH: usize = 256;

/// Mode of expanding the variables of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExpansionMode {
    /// Each variable has its n-th value, newest first.
    NthValue(usize),
    /// Every variable that the command sets is unknown.
    Unknown,
    /// Unknown variables expand to the empty string; the index selects among the resulting values, newest first.
    UnknownAsEmpty(usize),
}

/// Expansion with the last assigned values.
pub(crate) const LAST_VALUE: ExpansionMode = ExpansionMode::NthValue(0);

/// Variables and the home directory.
#[derive(Debug)]
pub(crate) struct VariableEnv<'a> {
    /// Value of `~`.
    pub(crate) home: &'a str,
    /// True if nothing in the command can change the home directory.
    pub(crate) is_home_fixed: bool,
    /// True if variables may have changed in a way that the text does not show.
    pub(crate) has_untracked_changes: bool,
    /// True if commands later in the text may run before earlier ones.
    pub(crate) may_repeat: bool,
    /// Values assigned to each variable, the last one last; `None` if not literal.
    pub(crate) values: HashMap<String, Vec<Option<String>>>,
    /// Variables that definitely have a value assigned by the text.
    pub(crate) definite: DefiniteAssignments,
    /// Values of variables if their unknown parts are empty.
    pub(crate) texts_if_empty: HashMap<String, Vec<String>>,
    /// Characters that variables and braces may still add to words.
    text_budget: Cell<usize>,
    /// `IFS` separators set by the command, besides blanks.
    pub(crate) separators: Option<String>,
    /// Command names with another meaning (aliases and the like), and the texts they stand for.
    alias_texts: HashMap<String, Vec<String>>,
    /// Number of changes, as a version.
    change_count: usize,
    /// Number of distinct values of all variables.
    known: usize,
    /// True if a variable or name had more values than are tracked.
    pub(crate) overflowed: bool,
}

impl<'a> VariableEnv<'a> {
    pub(crate) fn new(home: &'a str, text: &str) -> Self {
        Self {
            home,
            is_home_fixed: !modifies_home(text),
            has_untracked_changes: false,
            may_repeat: false,
            values: HashMap::new(),
            definite: DefiniteAssignments::default(),
            texts_if_empty: HashMap::new(),
            text_budget: Cell::new(AnalysisBudget::compute_word_budget(text)),
            separators: None,
            alias_texts: HashMap::new(),
            change_count: 0,
            known: 0,
            overflowed: false,
        }
    }

    /// Version of the environment: equal as long as every word expands the same.
    pub(crate) fn version(&self) -> (usize, bool, usize) {
        (self.change_count, self.has_untracked_changes, self.definite.floor())
    }

    /// Adds a possible value of a variable. Returns true if it is new.
    pub(crate) fn add_value(&mut self, name: &str, value: Option<String>) -> bool {
        self.change_count += 1;
        self.definite.weaken(name);
        if name == "IFS" {
            self.add_separators(value.as_deref());
        }
        if !self.values.contains_key(name) {
            // The inherited value stays possible, because the assignment may never run.
            let previous = self.value(name, LAST_VALUE).map(|value| Some(value.to_owned()));
            self.values.insert(name.to_owned(), previous.into_iter().collect());
        }
        let values = self.values.entry(name.to_owned()).or_default();
        if let Some(at) = values.iter().position(|known| *known == value) {
            let known = values.remove(at);
            values.push(known);
            return false;
        }
        self.known += 1;
        if values.len() >= MAX_VALUES {
            // Too many values: from now on the variable may be unknown. Known values are still tried. Numbers are
            // ignored because no command is called by a number.
            self.overflowed |= value.is_some_and(|value| !value.bytes().all(|byte| byte.is_ascii_digit()));
            values.retain(Option::is_some);
            values.truncate(MAX_VALUES - 1);
            values.push(None);
        } else {
            values.push(value);
        }
        true
    }

    /// Grows whenever a variable gets a new value.
    pub(crate) fn known_count(&self) -> usize {
        self.known
    }

    /// Marks a variable as definitely assigned from here on.
    pub(crate) fn mark_definite(&mut self, name: &str) {
        self.change_count += 1;
        self.definite.add(name);
    }

    /// Marks a variable as definitely having one of several values.
    pub(crate) fn mark_definite_any(&mut self, name: &str) {
        self.mark_definite(name);
        self.definite.weaken(name);
    }

    /// Records that a variable may keep its inherited value whatever is assigned.
    pub(crate) fn may_keep_inherited(&mut self, name: &str) {
        self.definite.exclude(name);
    }

    /// Records that a variable may keep an earlier value whatever is assigned.
    pub(crate) fn mark_multi_valued(&mut self, name: &str) {
        self.change_count += 1;
        self.definite.mark_multi_valued(name);
    }

    /// Sets the index from which assignments count as definite. Returns the previous index.
    pub(crate) fn set_definite_floor(&mut self, floor: usize) -> usize {
        self.definite.set_floor(floor)
    }

    /// Weakens the definite assignments after the first `count`: an earlier value is possible.
    pub(crate) fn weaken_since(&mut self, count: usize) {
        self.definite.weaken_since(count);
    }

    /// Number of definite assignments.
    pub(crate) fn definite_count(&self) -> usize {
        self.definite.len()
    }

    /// Variables definitely assigned after the first `count` assignments.
    pub(crate) fn definite_since(&self, count: usize) -> HashSet<String> {
        self.definite.since(count)
    }

    /// Removes the definite assignments after the first `count`.
    pub(crate) fn rollback_definite(&mut self, count: usize) {
        if count < self.definite.len() {
            self.change_count += 1;
            self.definite.truncate(count);
        }
    }

    /// Records the value of a variable if its unknown parts are empty.
    pub(crate) fn add_text_if_empty(&mut self, name: &str, text: &str) {
        self.change_count += 1;
        let texts = self.texts_if_empty.entry(name.to_owned()).or_default();
        texts.retain(|known| known != text);
        if texts.len() < MAX_TEXTS_IF_EMPTY {
            texts.push(text.to_owned());
        } else {
            self.overflowed = true;
        }
    }

    /// Adds a value that only one command sees; the variable keeps its previous value afterwards.
    pub(crate) fn add_temporary_value(&mut self, name: &str, value: Option<String>) {
        let previous = self.value(name, LAST_VALUE).map(str::to_owned);
        self.add_value(name, value);
        self.add_value(name, previous);
    }

    /// Appends one of these texts to the values of a variable.
    pub(crate) fn append(&mut self, name: &str, added: &[Option<String>]) {
        if self.has_too_many_values(name) {
            self.add_value(name, None);
            return;
        }
        let values = self.values.get(name).cloned().unwrap_or_default();
        if values.is_empty() {
            self.add_value(name, None);
            for added in added {
                self.add_value(name, added.clone());
            }
        }
        let mut joined: Vec<Option<String>> = Vec::new();
        for added in added {
            joined.extend(values.iter().map(|value| {
                let joined = value.clone().zip(added.as_deref()).map(|(value, added)| value + added);
                joined.filter(|joined| joined.len() <= MAX_APPENDED_LENGTH)
            }));
        }
        joined.dedup();
        for value in joined {
            self.add_value(name, value);
        }
    }

    /// Returns true if a variable exceeds the tracked values, so that another one changes nothing.
    pub(crate) fn has_too_many_values(&self, name: &str) -> bool {
        self.values.get(name).is_some_and(|values| values.len() >= MAX_VALUES && values.contains(&None))
    }

    /// Records that a variable has an unknown value.
    pub(crate) fn set_unknown(&mut self, name: &str) {
        if !name.is_empty() {
            self.add_value(name, None);
            self.add_text_if_empty(name, "");
        }
    }

    /// Adds separators for splitting values; `None` if they are unknown.
    fn add_separators(&mut self, separators: Option<&str>) {
        self.change_count += 1;
        let known = self.separators.as_ref().map_or(0, String::len);
        match separators.filter(|text| known + text.len() <= MAX_SEPARATOR_BYTES) {
            Some(text) => self.separators.get_or_insert_default().push_str(text),
            None => self.has_untracked_changes = true,
        }
    }

    /// Returns true if a character of a value splits words.
    pub(crate) fn is_separator(&self, character: char) -> bool {
        matches!(character, ' ' | '\t' | '\n')
            || self.separators.as_ref().is_some_and(|separators| separators.contains(character))
    }

    /// Number of values that a variable may have.
    pub(crate) fn value_count(&self, name: &str) -> usize {
        self.values.get(name).map_or(1, Vec::len)
    }

    /// Value of a variable in an expansion mode.
    pub(crate) fn value(&self, name: &str, mode: ExpansionMode) -> Option<&str> {
        match self.values.get(name) {
            Some(values) => match mode {
                ExpansionMode::NthValue(choice) => {
                    values.iter().rev().nth(choice.min(values.len().saturating_sub(1)))
                }
                ExpansionMode::Unknown => None,
                ExpansionMode::UnknownAsEmpty(choice) => {
                    let last = self.values_if_unknown_empty(name).count().saturating_sub(1);
                    return self.values_if_unknown_empty(name).nth(choice.min(last));
                }
            }?
            .as_deref(),
            None if name == "HOME" => Some(self.home),
            // `PWD` is the current directory, whichever that is.
            None if name == "PWD" => Some("."),
            None if name == "IFS" => Some(" \t\n"),
            None => None,
        }
    }

    /// Spends characters of the text budget. Returns false once the budget is exhausted.
    pub(crate) fn spend_text(&self, length: usize) -> bool {
        self.text_budget.set(self.text_budget.get().saturating_sub(length));
        !self.is_budget_exhausted()
    }

    pub(crate) fn is_budget_exhausted(&self) -> bool {
        self.text_budget.get() == 0
    }

    /// Records that a command name stands for a text from now on.
    pub(crate) fn add_alias(&mut self, name: &str, text: &str) {
        let texts = self.alias_texts.entry(name.to_owned()).or_default();
        if texts.iter().any(|known| known == text) {
            return;
        }
        self.change_count += 1;
        if texts.len() < MAX_VALUES {
            texts.push(text.to_owned());
        } else {
            self.overflowed = true;
        }
    }

    /// Returns true if any command name has another meaning.
    pub(crate) fn has_aliases(&self) -> bool {
        !self.alias_texts.is_empty()
    }

    /// Texts that a command name stands for besides itself.
    pub(crate) fn aliases(&self, name: &str) -> Vec<String> {
        self.alias_texts.get(name).cloned().unwrap_or_default()
    }
}

/// Returns true if the text uses `HOME` other than by reading it.
fn modifies_home(text: &str) -> bool {
    text.match_indices("HOME").any(|(at, _)| {
        let before = text.get(..at).unwrap_or_default();
        !(before.ends_with('$') || before.ends_with("${"))
    })
}
