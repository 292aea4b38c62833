//! Definite assignment: the variables whose values are certain at the current point of the text, because the
//! assignment has run in the same shell.

use std::collections::{HashMap, HashSet};

/// Variables that the shell sets itself, whatever is assigned.
const SHELL_MANAGED: &[&str] =
    &["_", "COPROC", "DIRSTACK", "FUNCNAME", "GROUPS", "MAPFILE", "OLDPWD", "OPTARG", "PWD", "REPLY"];

/// Certainty about a variable with assigned values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ValueCertainty {
    /// It has one of them.
    AnyValue,
    /// It has the last one.
    LastValue,
}

/// A definitely assigned variable.
#[derive(Debug, Clone, Copy)]
struct DefiniteEntry {
    certainty: ValueCertainty,
    /// Number of assignments before it.
    index: usize,
}

/// Definitely assigned variables.
#[derive(Debug, Default)]
pub(crate) struct DefiniteAssignments {
    entries: HashMap<String, DefiniteEntry>,
    /// Assigned variables in order, each with its previous entry.
    history: Vec<(String, Option<DefiniteEntry>)>,
    /// Variables that keep the value from before the command.
    inherited: HashSet<String>,
    /// Variables that may have an earlier value, whatever is assigned.
    multi_valued: HashSet<String>,
    /// Index from which assignments count: a nested text may run in a shell without the earlier ones.
    floor: usize,
}

impl DefiniteAssignments {
    /// Adds a definite assignment.
    pub(crate) fn add(&mut self, name: &str) {
        if SHELL_MANAGED.contains(&name) || name.starts_with("BASH_") || self.inherited.contains(name) {
            return;
        }
        let certainty = if self.multi_valued.contains(name) {
            ValueCertainty::AnyValue
        } else {
            ValueCertainty::LastValue
        };
        let before =
            self.entries.insert(name.to_owned(), DefiniteEntry { certainty, index: self.history.len() });
        self.history.push((name.to_owned(), before));
    }

    /// Weakens a variable: it may have another value than the last one.
    pub(crate) fn weaken(&mut self, name: &str) {
        if let Some(entry) = self.entries.get_mut(name) {
            entry.certainty = ValueCertainty::AnyValue;
        }
    }

    /// Weakens all variables assigned after the first `count`.
    pub(crate) fn weaken_since(&mut self, count: usize) {
        for (name, _) in self.history.get(count..).unwrap_or_default() {
            if let Some(entry) = self.entries.get_mut(name) {
                entry.certainty = ValueCertainty::AnyValue;
            }
        }
    }

    /// Weakens a variable now and after later assignments.
    pub(crate) fn mark_multi_valued(&mut self, name: &str) {
        self.weaken(name);
        self.multi_valued.insert(name.to_owned());
    }

    /// Records that a variable may keep its value from before the command.
    pub(crate) fn exclude(&mut self, name: &str) {
        if !self.contains(name) {
            self.inherited.insert(name.to_owned());
        }
    }

    /// Returns true if a variable definitely has an assigned value.
    pub(crate) fn contains(&self, name: &str) -> bool {
        self.entries.get(name).is_some_and(|entry| entry.index >= self.floor)
    }

    /// Returns true if a variable definitely has its last value.
    pub(crate) fn is_last_value(&self, name: &str) -> bool {
        self.entries
            .get(name)
            .is_some_and(|entry| entry.index >= self.floor && entry.certainty == ValueCertainty::LastValue)
    }

    /// Variables assigned after the first `count`.
    pub(crate) fn since(&self, count: usize) -> HashSet<String> {
        self.history.get(count..).unwrap_or_default().iter().map(|(name, _)| name.clone()).collect()
    }

    pub(crate) fn floor(&self) -> usize {
        self.floor
    }

    /// Number of assignments.
    pub(crate) fn len(&self) -> usize {
        self.history.len()
    }

    /// Sets the index from which assignments count. Returns the previous index.
    pub(crate) fn set_floor(&mut self, floor: usize) -> usize {
        std::mem::replace(&mut self.floor, floor)
    }

    /// Removes the assignments after the first `count`.
    pub(crate) fn truncate(&mut self, count: usize) {
        for (name, before) in self.history.split_off(count.min(self.history.len())).into_iter().rev() {
            match before {
                Some(before) => {
                    self.entries.insert(name, DefiniteEntry { certainty: ValueCertainty::AnyValue, ..before })
                }
                None => self.entries.remove(&name),
            };
        }
    }
}
