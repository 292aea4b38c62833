//! What is known of variables while a command is read, for the wide reading.
//!
//! A variable is known by all the values that the text gives it. As soon as something may have changed it that the text
//! does not show, "not known" is one of them.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};

use super::limits::Limits;
use super::settled::Settled;

/// How many values of one variable are followed.
const MOST_VALUES: usize = 128;

/// How many texts are followed that are left of the values of one variable.
const MOST_SUPPOSED: usize = 128;

/// How many bytes of separators are followed.
const MOST_SEPARATORS: usize = 256;

/// How long a value may grow by what is added to it.
const LONGEST_JOINED: usize = 256;

/// One way to read the variables of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    /// Each by one of its values, counted from the one that it was given last.
    Nth(usize),
    /// Every variable that the command sets is unknown.
    Unknown,
    /// What is not certain is nothing; of several texts that are left then of a value, one, counted from the last.
    Nothing(usize),
}

/// The reading by what was given last.
pub(super) const LAST: Reading = Reading::Nth(0);

/// Variables and the home directory.
#[derive(Debug)]
pub(super) struct Scope<'a> {
    /// What `~` stands for.
    pub(super) home: &'a str,
    /// Whether nothing in the command could change that.
    pub(super) home_certain: bool,
    /// Whether variables may have changed in a way that the text does not show.
    pub(super) unsure: bool,
    /// Whether what stands later in the text may run before what stands first.
    pub(super) repeats: bool,
    /// The values that each variable was given, the last one last; `None` where it is not literal.
    pub(super) values: HashMap<String, Vec<Option<String>>>,
    /// Which variables surely have a value that the text gave them.
    pub(super) settled: Settled,
    /// What is left of values if what is not known of them is nothing.
    pub(super) supposed: HashMap<String, Vec<String>>,
    /// How many characters variables and braces may still bring into words.
    room: Cell<usize>,
    /// Where values are split besides at blanks, if the command says so.
    pub(super) separators: Option<String>,
    /// Command names that were given another meaning, with the texts that they stand for.
    renamed: HashMap<String, Vec<String>>,
    /// How often something changed.
    changes: usize,
    /// How many values are known of all variables.
    known: usize,
    /// Whether a variable or a name was given more than is followed.
    pub(super) overflows: bool,
}

impl<'a> Scope<'a> {
    pub(super) fn new(home: &'a str, text: &str) -> Self {
        Self {
            home,
            home_certain: !names_home(text),
            unsure: false,
            repeats: false,
            values: HashMap::new(),
            settled: Settled::default(),
            supposed: HashMap::new(),
            room: Cell::new(Limits::room(text)),
            separators: None,
            renamed: HashMap::new(),
            changes: 0,
            known: 0,
            overflows: false,
        }
    }

    /// What is the same as long as every word means the same.
    pub(super) fn state(&self) -> (usize, bool, usize) {
        (self.changes, self.unsure, self.settled.floor())
    }

    /// Notes that a variable may have been given a value; answers whether that value is new.
    pub(super) fn give(&mut self, name: &str, value: Option<String>) -> bool {
        self.changes += 1;
        self.settled.doubt(name);
        if name == "IFS" {
            self.split_at(value.as_deref());
        }
        if !self.values.contains_key(name) {
            // What it is without the command still counts: who knows whether this is ever run.
            let standing = self.value(name, LAST).map(|value| Some(value.to_owned()));
            self.values.insert(name.to_owned(), standing.into_iter().collect());
        }
        let values = self.values.entry(name.to_owned()).or_default();
        if let Some(at) = values.iter().position(|known| *known == value) {
            let known = values.remove(at);
            values.push(known);
            return false;
        }
        self.known += 1;
        if values.len() >= MOST_VALUES {
            // Too many to follow: from now on it is not known. What it was is still tried. Nothing is called by a number.
            self.overflows |= value.is_some_and(|value| !value.bytes().all(|byte| byte.is_ascii_digit()));
            values.retain(Option::is_some);
            values.truncate(MOST_VALUES - 1);
            values.push(None);
        } else {
            values.push(value);
        }
        true
    }

    /// What grows when a variable is given a value that is new.
    pub(super) fn known(&self) -> usize {
        self.known
    }

    /// Notes that from here on a variable has a value that it was given.
    pub(super) fn settle(&mut self, name: &str) {
        self.changes += 1;
        self.settled.add(name);
    }

    /// Notes the same where several values were given, of which it has one.
    pub(super) fn settle_some(&mut self, name: &str) {
        self.settle(name);
        self.settled.doubt(name);
    }

    /// Notes that a variable may keep the value that it has in the environment, whatever it is given.
    pub(super) fn keep_standing(&mut self, name: &str) {
        self.settled.never(name);
    }

    /// Notes that a variable may keep an earlier value, whatever it is given.
    pub(super) fn keep_earlier(&mut self, name: &str) {
        self.changes += 1;
        self.settled.be_plural(name);
    }

    /// Lets variables count as certain that are given values from here on; answers from where on they did.
    pub(super) fn count_from(&mut self, floor: usize) -> usize {
        self.settled.count_from(floor)
    }

    /// Notes that those which were settled after so many may have an earlier value.
    pub(super) fn doubt_since(&mut self, count: usize) {
        self.settled.doubt_since(count);
    }

    /// How many values were given for certain.
    pub(super) fn settled(&self) -> usize {
        self.settled.len()
    }

    /// Which variables were given values for certain after so many.
    pub(super) fn settled_since(&self, count: usize) -> HashSet<String> {
        self.settled.since(count)
    }

    /// Notes that of these all but the first so many may not have been given.
    pub(super) fn unsettle(&mut self, count: usize) {
        if count < self.settled.len() {
            self.changes += 1;
            self.settled.truncate(count);
        }
    }

    /// Notes what a variable is if what is not known is nothing.
    pub(super) fn suppose(&mut self, name: &str, text: &str) {
        self.changes += 1;
        let texts = self.supposed.entry(name.to_owned()).or_default();
        texts.retain(|known| known != text);
        if texts.len() < MOST_SUPPOSED {
            texts.push(text.to_owned());
        } else {
            self.overflows = true;
        }
    }

    /// Notes a value that one command alone sees: after it, the variable is what it was.
    pub(super) fn lend(&mut self, name: &str, value: Option<String>) {
        let standing = self.value(name, LAST).map(str::to_owned);
        self.give(name, value);
        self.give(name, standing);
    }

    /// Notes that one of these texts was added to a variable's value.
    pub(super) fn append(&mut self, name: &str, added: &[Option<String>]) {
        if self.is_lost(name) {
            self.give(name, None);
            return;
        }
        let values = self.values.get(name).cloned().unwrap_or_default();
        if values.is_empty() {
            self.give(name, None);
            for added in added {
                self.give(name, added.clone());
            }
        }
        let mut joined: Vec<Option<String>> = Vec::new();
        for added in added {
            joined.extend(values.iter().map(|value| {
                let joined = value.clone().zip(added.as_deref()).map(|(value, added)| value + added);
                joined.filter(|joined| joined.len() <= LONGEST_JOINED)
            }));
        }
        joined.dedup();
        for value in joined {
            self.give(name, value);
        }
    }

    /// Whether a variable has more values than are followed, so that one more changes nothing.
    pub(super) fn is_lost(&self, name: &str) -> bool {
        self.values.get(name).is_some_and(|values| values.len() >= MOST_VALUES && values.contains(&None))
    }

    /// Notes that a variable has a value now that is not known.
    pub(super) fn forget(&mut self, name: &str) {
        if !name.is_empty() {
            self.give(name, None);
            self.suppose(name, "");
        }
    }

    /// Notes where values are split from now on; nothing if that is not known.
    fn split_at(&mut self, separators: Option<&str>) {
        self.changes += 1;
        let known = self.separators.as_ref().map_or(0, String::len);
        match separators.filter(|text| known + text.len() <= MOST_SEPARATORS) {
            Some(text) => self.separators.get_or_insert_default().push_str(text),
            None => self.unsure = true,
        }
    }

    /// Whether a character out of a value ends a word.
    pub(super) fn splits(&self, character: char) -> bool {
        matches!(character, ' ' | '\t' | '\n')
            || self.separators.as_ref().is_some_and(|separators| separators.contains(character))
    }

    /// How many values a variable may have here.
    pub(super) fn choices(&self, name: &str) -> usize {
        self.values.get(name).map_or(1, Vec::len)
    }

    /// The value of a variable.
    pub(super) fn value(&self, name: &str, reading: Reading) -> Option<&str> {
        match self.values.get(name) {
            Some(values) => match reading {
                Reading::Nth(choice) => values.iter().rev().nth(choice.min(values.len().saturating_sub(1))),
                Reading::Unknown => None,
                Reading::Nothing(choice) => {
                    let last = self.left_of(name).count().saturating_sub(1);
                    return self.left_of(name).nth(choice.min(last));
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
    pub(super) fn has_room(&self, length: usize) -> bool {
        self.room.set(self.room.get().saturating_sub(length));
        !self.is_full()
    }

    /// Whether no more may come into words.
    pub(super) fn is_full(&self) -> bool {
        self.room.get() == 0
    }

    /// Notes that a command name stands for a text from now on.
    pub(super) fn rename(&mut self, name: &str, text: &str) {
        let texts = self.renamed.entry(name.to_owned()).or_default();
        if texts.iter().any(|known| known == text) {
            return;
        }
        self.changes += 1;
        if texts.len() < MOST_VALUES {
            texts.push(text.to_owned());
        } else {
            self.overflows = true;
        }
    }

    /// Whether any command name was given another meaning.
    pub(super) fn renames(&self) -> bool {
        !self.renamed.is_empty()
    }

    /// What a command name stands for besides itself.
    pub(super) fn meanings(&self, name: &str) -> Vec<String> {
        self.renamed.get(name).cloned().unwrap_or_default()
    }
}

/// Whether the text speaks of `HOME` other than to read it.
fn names_home(text: &str) -> bool {
    text.match_indices("HOME").any(|(at, _)| {
        let before = text.get(..at).unwrap_or_default();
        !(before.ends_with('$') || before.ends_with("${"))
    })
}
