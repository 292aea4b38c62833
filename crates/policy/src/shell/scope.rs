//! What is known of variables while a command is read, for the wide reading.

use std::collections::HashMap;

/// How many values of one variable are followed.
const MOST_VALUES: usize = 32;

/// Variables and the home directory.
#[derive(Debug)]
pub(super) struct Scope<'a> {
    /// What `~` stands for.
    pub(super) home: &'a str,
    /// Whether nothing in the command could change that.
    pub(super) home_certain: bool,
    /// The values that each variable was given, the last one last; `None` where it is not literal.
    values: HashMap<String, Vec<Option<String>>>,
}

impl<'a> Scope<'a> {
    pub(super) fn new(home: &'a str, text: &str) -> Self {
        Self { home, home_certain: !names_home(text), values: HashMap::new() }
    }

    /// Notes that a variable was given a value.
    pub(super) fn give(&mut self, name: &str, value: Option<String>) {
        let values = self.values.entry(name.to_owned()).or_default();
        if values.last() == Some(&value) {
            return;
        }
        if values.len() >= MOST_VALUES {
            // Too many to follow: from now on it is not known.
            values.insert(0, None);
            values.truncate(MOST_VALUES);
            return;
        }
        values.push(value);
    }

    /// Notes that a variable, if it is one that was given a value, has one now that is not known.
    pub(super) fn forget(&mut self, name: &str) {
        if self.values.contains_key(name) {
            self.give(name, None);
        }
    }

    /// How many values a variable may have here.
    pub(super) fn choices(&self, name: &str) -> usize {
        self.values.get(name).map_or(1, Vec::len)
    }

    /// The value of a variable; choice 0 is the one given last.
    pub(super) fn value(&self, name: &str, choice: usize) -> Option<&str> {
        match self.values.get(name) {
            Some(values) => values.iter().rev().nth(choice.min(values.len().saturating_sub(1)))?.as_deref(),
            None if name == "HOME" => Some(self.home),
            // Wherever a command is, there it is.
            None if name == "PWD" => Some("."),
            None if name == "IFS" => Some(" \t\n"),
            None => None,
        }
    }
}

/// Whether the text speaks of `HOME` other than to read it.
fn names_home(text: &str) -> bool {
    text.match_indices("HOME").any(|(at, _)| {
        let before = text.get(..at).unwrap_or_default();
        !(before.ends_with('$') || before.ends_with("${"))
    })
}
