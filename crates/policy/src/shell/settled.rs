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

/// A variable that was given values.
#[derive(Debug, Clone, Copy)]
struct Given {
    sure: Sure,
    /// How many values had been given before.
    at: usize,
}

/// The variables.
#[derive(Debug, Default)]
pub(super) struct Settled {
    names: HashMap<String, Given>,
    /// Which were given values, in order, and what was known of them before.
    order: Vec<(String, Option<Given>)>,
    /// Those that keep the value that they had before the command.
    kept: HashSet<String>,
    /// Those that may have an earlier value than the last one, whatever they are given.
    plural: HashSet<String>,
    /// From which on they count: a text of its own may be read by a shell that does not have those before.
    floor: usize,
}

impl Settled {
    /// Notes that a variable was given a value.
    pub(super) fn add(&mut self, name: &str) {
        if ITS_OWN.contains(&name) || name.starts_with("BASH_") || self.kept.contains(name) {
            return;
        }
        let sure = if self.plural.contains(name) { Sure::OfSome } else { Sure::OfLast };
        let before = self.names.insert(name.to_owned(), Given { sure, at: self.order.len() });
        self.order.push((name.to_owned(), before));
    }

    /// Notes that a variable may have another value than the last one.
    pub(super) fn doubt(&mut self, name: &str) {
        if let Some(given) = self.names.get_mut(name) {
            given.sure = Sure::OfSome;
        }
    }

    /// Notes the same of all but the first so many that were given values.
    pub(super) fn doubt_since(&mut self, count: usize) {
        for (name, _) in self.order.get(count..).unwrap_or_default() {
            if let Some(given) = self.names.get_mut(name) {
                given.sure = Sure::OfSome;
            }
        }
    }

    /// Notes that a variable may have another value than the last one, now and later.
    pub(super) fn be_plural(&mut self, name: &str) {
        self.doubt(name);
        self.plural.insert(name.to_owned());
    }

    /// Notes that a variable may keep the value that it had before the command.
    pub(super) fn never(&mut self, name: &str) {
        if !self.contains(name) {
            self.kept.insert(name.to_owned());
        }
    }

    /// Whether a variable has some value that it was given.
    pub(super) fn contains(&self, name: &str) -> bool {
        self.names.get(name).is_some_and(|given| given.at >= self.floor)
    }

    /// Whether it has the last one.
    pub(super) fn has_last(&self, name: &str) -> bool {
        self.names.get(name).is_some_and(|given| given.at >= self.floor && given.sure == Sure::OfLast)
    }

    /// Which were given values after so many.
    pub(super) fn since(&self, count: usize) -> HashSet<String> {
        self.order.get(count..).unwrap_or_default().iter().map(|(name, _)| name.clone()).collect()
    }

    /// From which on they count.
    pub(super) fn floor(&self) -> usize {
        self.floor
    }

    /// How many values were given.
    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    /// Lets those count from now on that are given values from some place on; answers from which on they did.
    pub(super) fn count_from(&mut self, floor: usize) -> usize {
        std::mem::replace(&mut self.floor, floor)
    }

    /// Notes that all but the first so many may not have been given.
    pub(super) fn truncate(&mut self, count: usize) {
        for (name, before) in self.order.split_off(count.min(self.order.len())).into_iter().rev() {
            match before {
                Some(before) => self.names.insert(name, Given { sure: Sure::OfSome, ..before }),
                None => self.names.remove(&name),
            };
        }
    }
}
