//! What is known of variables while a command is read, for the wide reading.
//!
//! A variable is known by all the values that the text gives it. As soon as something may have changed it that the text
//! does not show, "not known" is one of them.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};

use super::limits::AnalysisLimits;
use super::definite::DefiniteAssignments;

/// How many values of one variable are followed.
const MAX_VALUES: usize = 128;

/// How many texts are followed that are left of the values of one variable.
const MAX_TEXTS_IF_EMPTY: usize = 128;

/// How many bytes of separators are followed.
const MAX_SEPARATOR_BYTES: usize = 256;

/// How long a value may grow by what is added to it.
const MAX_APPENDED_LENGTH: usize = 256;

/// One way to read the variables of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExpansionMode {
    /// Each by one of its values, counted from the one that it was given last.
    NthValue(usize),
    /// Every variable that the command sets is unknown.
    Unknown,
    /// What is not certain is nothing; of several texts that are left then of a value, one, counted from the last.
    UnknownAsEmpty(usize),
}

/// The reading by what was given last.
pub(super) const LAST_VALUE: ExpansionMode = ExpansionMode::NthValue(0);

/// Variables and the home directory.
#[derive(Debug)]
pub(super) struct VariableEnv<'a> {
    /// What `~` stands for.
    pub(super) home: &'a str,
    /// Whether nothing in the command could change that.
    pub(super) is_home_fixed: bool,
    /// Whether variables may have changed in a way that the text does not show.
    pub(super) has_untracked_changes: bool,
    /// Whether what stands later in the text may run before what stands first.
    pub(super) may_repeat: bool,
    /// The values that each variable was given, the last one last; `None` where it is not literal.
    pub(super) values: HashMap<String, Vec<Option<String>>>,
    /// Which variables surely have a value that the text gave them.
    pub(super) settled: DefiniteAssignments,
    /// What is left of values if what is not known of them is nothing.
    pub(super) texts_if_empty: HashMap<String, Vec<String>>,
    /// How many characters variables and braces may still bring into words.
    text_budget: Cell<usize>,
    /// Where values are split besides at blanks, if the command says so.
    pub(super) separators: Option<String>,
    /// Command names that were given another meaning, with the texts that they stand for.
    alias_texts: HashMap<String, Vec<String>>,
    /// How often something changed.
    change_count: usize,
    /// How many values are known of all variables.
    known: usize,
    /// Whether a variable or a name was given more than is followed.
    pub(super) overflowed: bool,
}

impl<'a> VariableEnv<'a> {
    pub(super) fn new(home: &'a str, text: &str) -> Self {
        Self {
            home,
            is_home_fixed: !modifies_home(text),
            has_untracked_changes: false,
            may_repeat: false,
            values: HashMap::new(),
            settled: DefiniteAssignments::default(),
            texts_if_empty: HashMap::new(),
            text_budget: Cell::new(AnalysisLimits::word_budget(text)),
            separators: None,
            alias_texts: HashMap::new(),
            change_count: 0,
            known: 0,
            overflowed: false,
        }
    }

    /// What is the same as long as every word means the same.
    pub(super) fn version(&self) -> (usize, bool, usize) {
        (self.change_count, self.has_untracked_changes, self.settled.floor())
    }

    /// Notes that a variable may have been given a value; answers whether that value is new.
    pub(super) fn add_value(&mut self, name: &str, value: Option<String>) -> bool {
        self.change_count += 1;
        self.settled.weaken(name);
        if name == "IFS" {
            self.add_separators(value.as_deref());
        }
        if !self.values.contains_key(name) {
            // What it is without the command still counts: who knows whether this is ever run.
            let standing = self.value(name, LAST_VALUE).map(|value| Some(value.to_owned()));
            self.values.insert(name.to_owned(), standing.into_iter().collect());
        }
        let values = self.values.entry(name.to_owned()).or_default();
        if let Some(at) = values.iter().position(|known| *known == value) {
            let known = values.remove(at);
            values.push(known);
            return false;
        }
        self.known += 1;
        if values.len() >= MAX_VALUES {
            // Too many to follow: from now on it is not known. What it was is still tried. Nothing is called by a number.
            self.overflowed |= value.is_some_and(|value| !value.bytes().all(|byte| byte.is_ascii_digit()));
            values.retain(Option::is_some);
            values.truncate(MAX_VALUES - 1);
            values.push(None);
        } else {
            values.push(value);
        }
        true
    }

    /// What grows when a variable is given a value that is new.
    pub(super) fn known_count(&self) -> usize {
        self.known
    }

    /// Notes that from here on a variable has a value that it was given.
    pub(super) fn mark_definite(&mut self, name: &str) {
        self.change_count += 1;
        self.settled.add(name);
    }

    /// Notes the same where several values were given, of which it has one.
    pub(super) fn mark_definite_any(&mut self, name: &str) {
        self.mark_definite(name);
        self.settled.weaken(name);
    }

    /// Notes that a variable may keep the value that it has in the environment, whatever it is given.
    pub(super) fn may_keep_inherited(&mut self, name: &str) {
        self.settled.exclude(name);
    }

    /// Notes that a variable may keep an earlier value, whatever it is given.
    pub(super) fn mark_multi_valued(&mut self, name: &str) {
        self.change_count += 1;
        self.settled.mark_multi_valued(name);
    }

    /// Lets variables count as certain that are given values from here on; answers from where on they did.
    pub(super) fn set_definite_floor(&mut self, floor: usize) -> usize {
        self.settled.set_floor(floor)
    }

    /// Notes that those which were settled after so many may have an earlier value.
    pub(super) fn weaken_since(&mut self, count: usize) {
        self.settled.weaken_since(count);
    }

    /// How many values were given for certain.
    pub(super) fn definite_count(&self) -> usize {
        self.settled.len()
    }

    /// Which variables were given values for certain after so many.
    pub(super) fn definite_since(&self, count: usize) -> HashSet<String> {
        self.settled.since(count)
    }

    /// Notes that of these all but the first so many may not have been given.
    pub(super) fn rollback_definite(&mut self, count: usize) {
        if count < self.settled.len() {
            self.change_count += 1;
            self.settled.truncate(count);
        }
    }

    /// Notes what a variable is if what is not known is nothing.
    pub(super) fn add_text_if_empty(&mut self, name: &str, text: &str) {
        self.change_count += 1;
        let texts = self.texts_if_empty.entry(name.to_owned()).or_default();
        texts.retain(|known| known != text);
        if texts.len() < MAX_TEXTS_IF_EMPTY {
            texts.push(text.to_owned());
        } else {
            self.overflowed = true;
        }
    }

    /// Notes a value that one command alone sees: after it, the variable is what it was.
    pub(super) fn add_temporary_value(&mut self, name: &str, value: Option<String>) {
        let standing = self.value(name, LAST_VALUE).map(str::to_owned);
        self.add_value(name, value);
        self.add_value(name, standing);
    }

    /// Notes that one of these texts was added to a variable's value.
    pub(super) fn append(&mut self, name: &str, added: &[Option<String>]) {
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

    /// Whether a variable has more values than are followed, so that one more changes nothing.
    pub(super) fn has_too_many_values(&self, name: &str) -> bool {
        self.values.get(name).is_some_and(|values| values.len() >= MAX_VALUES && values.contains(&None))
    }

    /// Notes that a variable has a value now that is not known.
    pub(super) fn set_unknown(&mut self, name: &str) {
        if !name.is_empty() {
            self.add_value(name, None);
            self.add_text_if_empty(name, "");
        }
    }

    /// Notes where values are split from now on; nothing if that is not known.
    fn add_separators(&mut self, separators: Option<&str>) {
        self.change_count += 1;
        let known = self.separators.as_ref().map_or(0, String::len);
        match separators.filter(|text| known + text.len() <= MAX_SEPARATOR_BYTES) {
            Some(text) => self.separators.get_or_insert_default().push_str(text),
            None => self.has_untracked_changes = true,
        }
    }

    /// Whether a character out of a value ends a word.
    pub(super) fn is_separator(&self, character: char) -> bool {
        matches!(character, ' ' | '\t' | '\n')
            || self.separators.as_ref().is_some_and(|separators| separators.contains(character))
    }

    /// How many values a variable may have here.
    pub(super) fn value_count(&self, name: &str) -> usize {
        self.values.get(name).map_or(1, Vec::len)
    }

    /// The value of a variable.
    pub(super) fn value(&self, name: &str, reading: ExpansionMode) -> Option<&str> {
        match self.values.get(name) {
            Some(values) => match reading {
                ExpansionMode::NthValue(choice) => values.iter().rev().nth(choice.min(values.len().saturating_sub(1))),
                ExpansionMode::Unknown => None,
                ExpansionMode::UnknownAsEmpty(choice) => {
                    let last = self.values_if_unknown_empty(name).count().saturating_sub(1);
                    return self.values_if_unknown_empty(name).nth(choice.min(last));
                }
            }?
            .as_deref(),
            None if name == "HOME" => Some(self.home),
            // Wherever a command is, there it is.
            None if name == "PWD" => Some("."),
            None if name == "IFS" => Some(" \t\n"),
            None => None,
        }
    }

    /// Whether so many more characters may come into words. Once there is no room, there is none for anything.
    pub(super) fn take_text_budget(&self, length: usize) -> bool {
        self.text_budget.set(self.text_budget.get().saturating_sub(length));
        !self.is_budget_exhausted()
    }

    /// Whether no more may come into words.
    pub(super) fn is_budget_exhausted(&self) -> bool {
        self.text_budget.get() == 0
    }

    /// Notes that a command name stands for a text from now on.
    pub(super) fn add_alias(&mut self, name: &str, text: &str) {
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

    /// Whether any command name was given another meaning.
    pub(super) fn has_aliases(&self) -> bool {
        !self.alias_texts.is_empty()
    }

    /// What a command name stands for besides itself.
    pub(super) fn aliases(&self, name: &str) -> Vec<String> {
        self.alias_texts.get(name).cloned().unwrap_or_default()
    }
}

/// Whether the text speaks of `HOME` other than to read it.
fn modifies_home(text: &str) -> bool {
    text.match_indices("HOME").any(|(at, _)| {
        let before = text.get(..at).unwrap_or_default();
        !(before.ends_with('$') || before.ends_with("${"))
    })
}
