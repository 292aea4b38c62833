//! Which variables have their values for certain where the text is read: by assignments that have run by then, and in the
//! same shell.

use std::collections::{HashMap, HashSet};

/// Variables that the shell sets by itself, whatever they are given.
const SHELL_MANAGED: &[&str] =
    &["_", "COPROC", "DIRSTACK", "FUNCNAME", "GROUPS", "MAPFILE", "OLDPWD", "OPTARG", "PWD", "REPLY"];

/// How much is certain of a variable that was given values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ValueCertainty {
    /// That it has one of them.
    AnyValue,
    /// That it has the last one.
    LastValue,
}

/// A variable that was given values.
#[derive(Debug, Clone, Copy)]
struct DefiniteEntry {
    certainty: ValueCertainty,
    /// How many values had been given before.
    index: usize,
}

/// The variables.
#[derive(Debug, Default)]
pub(super) struct DefiniteAssignments {
    entries: HashMap<String, DefiniteEntry>,
    /// Which were given values, in order, and what was known of them before.
    history: Vec<(String, Option<DefiniteEntry>)>,
    /// Those that keep the value that they had before the command.
    inherited: HashSet<String>,
    /// Those that may have an earlier value than the last one, whatever they are given.
    multi_valued: HashSet<String>,
    /// From which on they count: a text of its own may be read by a shell that does not have those before.
    floor: usize,
}

impl DefiniteAssignments {
    /// Notes that a variable was given a value.
    pub(super) fn add(&mut self, name: &str) {
        if SHELL_MANAGED.contains(&name) || name.starts_with("BASH_") || self.inherited.contains(name) {
            return;
        }
        let sure = if self.multi_valued.contains(name) { ValueCertainty::AnyValue } else { ValueCertainty::LastValue };
        let before = self.entries.insert(name.to_owned(), DefiniteEntry { certainty: sure, index: self.history.len() });
        self.history.push((name.to_owned(), before));
    }

    /// Notes that a variable may have another value than the last one.
    pub(super) fn weaken(&mut self, name: &str) {
        if let Some(given) = self.entries.get_mut(name) {
            given.certainty = ValueCertainty::AnyValue;
        }
    }

    /// Notes the same of all but the first so many that were given values.
    pub(super) fn weaken_since(&mut self, count: usize) {
        for (name, _) in self.history.get(count..).unwrap_or_default() {
            if let Some(given) = self.entries.get_mut(name) {
                given.certainty = ValueCertainty::AnyValue;
            }
        }
    }

    /// Notes that a variable may have another value than the last one, now and later.
    pub(super) fn mark_multi_valued(&mut self, name: &str) {
        self.weaken(name);
        self.multi_valued.insert(name.to_owned());
    }

    /// Notes that a variable may keep the value that it had before the command.
    pub(super) fn exclude(&mut self, name: &str) {
        if !self.contains(name) {
            self.inherited.insert(name.to_owned());
        }
    }

    /// Whether a variable has some value that it was given.
    pub(super) fn contains(&self, name: &str) -> bool {
        self.entries.get(name).is_some_and(|given| given.index >= self.floor)
    }

    /// Whether it has the last one.
    pub(super) fn is_last_value(&self, name: &str) -> bool {
        self.entries.get(name).is_some_and(|given| given.index >= self.floor && given.certainty == ValueCertainty::LastValue)
    }

    /// Which were given values after so many.
    pub(super) fn since(&self, count: usize) -> HashSet<String> {
        self.history.get(count..).unwrap_or_default().iter().map(|(name, _)| name.clone()).collect()
    }

    /// From which on they count.
    pub(super) fn floor(&self) -> usize {
        self.floor
    }

    /// How many values were given.
    pub(super) fn len(&self) -> usize {
        self.history.len()
    }

    /// Lets those count from now on that are given values from some place on; answers from which on they did.
    pub(super) fn set_floor(&mut self, floor: usize) -> usize {
        std::mem::replace(&mut self.floor, floor)
    }

    /// Notes that all but the first so many may not have been given.
    pub(super) fn truncate(&mut self, count: usize) {
        for (name, before) in self.history.split_off(count.min(self.history.len())).into_iter().rev() {
            match before {
                Some(before) => self.entries.insert(name, DefiniteEntry { certainty: ValueCertainty::AnyValue, ..before }),
                None => self.entries.remove(&name),
            };
        }
    }
}
