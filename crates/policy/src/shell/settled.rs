//! Which variables have their values for certain where the text is read: by assignments that have run by then, and in the
//! same shell.

use std::collections::{HashMap, HashSet};

/// Variables that the shell sets by itself, whatever they are given.
const ITS_OWN: &[&str] =
    &["_", "COPROC", "DIRSTACK", "FUNCNAME", "GROUPS", "MAPFILE", "OLDPWD", "OPTARG", "PWD", "REPLY"];

/// How much is certain of a variable that was given values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sure {
    /// That it has one of them.
    OfSome,
    /// That it has the last one.
    OfLast,
}

/// The variables.
#[derive(Debug, Default)]
pub(super) struct Settled {
    names: HashMap<String, Sure>,
    /// Which were given values, in order, and whether that settled them.
    given: Vec<(String, bool)>,
    /// Those that keep the value that they had before the command.
    kept: HashSet<String>,
}

impl Settled {
    /// Notes that a variable was given a value.
    pub(super) fn add(&mut self, name: &str) {
        if ITS_OWN.contains(&name) || name.starts_with("BASH_") || self.kept.contains(name) {
            return;
        }
        let new = self.names.insert(name.to_owned(), Sure::OfLast).is_none();
        self.given.push((name.to_owned(), new));
    }

    /// Notes that a variable may have another value than the last one.
    pub(super) fn doubt(&mut self, name: &str) {
        self.be(name, Sure::OfSome);
    }

    /// Notes that a variable has the last one after all.
    pub(super) fn be_sure(&mut self, name: &str) {
        self.be(name, Sure::OfLast);
    }

    fn be(&mut self, name: &str, sure: Sure) {
        if let Some(known) = self.names.get_mut(name) {
            *known = sure;
        }
    }

    /// Notes that a variable may keep the value that it had before the command.
    pub(super) fn never(&mut self, name: &str) {
        if !self.names.contains_key(name) {
            self.kept.insert(name.to_owned());
        }
    }

    /// Whether a variable has some value that it was given.
    pub(super) fn contains(&self, name: &str) -> bool {
        self.names.contains_key(name)
    }

    /// Whether it has the last one.
    pub(super) fn has_last(&self, name: &str) -> bool {
        self.names.get(name) == Some(&Sure::OfLast)
    }

    /// How many values were given.
    pub(super) fn len(&self) -> usize {
        self.given.len()
    }

    /// Notes that all but the first so many may not have been given.
    pub(super) fn truncate(&mut self, count: usize) {
        for (name, new) in self.given.split_off(count.min(self.given.len())) {
            if new {
                self.names.remove(&name);
            } else {
                self.doubt(&name);
            }
        }
    }
}
