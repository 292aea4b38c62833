//! How much is certain of the words of a command, by what is known of their variables.

use super::scope::{LAST, Scope};
use super::syntax::{Piece, RawWord};

impl Scope<'_> {
    /// The variables of a word. `~` is one if the home may be another.
    fn variables<'w>(&self, word: &'w RawWord) -> impl Iterator<Item = Used<'w>> {
        let home_varies = !self.home_certain;
        word.pieces.iter().filter_map(move |piece| match piece {
            Piece::Variable { name, quoted, guarded } => {
                Some(Used { name, quoted: *quoted, guarded: *guarded })
            }
            Piece::Plain(text) if home_varies && text.contains('~') => {
                Some(Used { name: "HOME", quoted: true, guarded: false })
            }
            Piece::Plain(_) | Piece::Quoted(_) | Piece::Unknown => None,
        })
    }

    /// Whether the variables of a word are what they were given last.
    pub(super) fn is_last(&self, word: &RawWord) -> bool {
        self.variables(word).all(|used| !self.values.contains_key(used.name) || self.has_last(used.name))
    }

    /// Whether a word can be nothing but what it is by the first reading.
    pub(super) fn is_sure(&self, word: &RawWord) -> bool {
        let sure = |used: Used<'_>| {
            self.is_certain(used.name) && (self.choices(used.name) == 1 || self.has_last(used.name))
        };
        !word.pieces.iter().any(|piece| matches!(piece, Piece::Unknown)) && self.variables(word).all(sure)
    }

    /// Whether a variable is what it was given last, for all that the order of the text says.
    fn has_last(&self, name: &str) -> bool {
        !self.unsure && !self.repeats && self.settled.has_last(name)
    }

    /// Whether nothing but the values that are known can be meant.
    fn is_certain(&self, name: &str) -> bool {
        match self.values.get(name) {
            Some(values) if self.has_last(name) => values.last().is_some_and(Option::is_some),
            Some(values) => !self.unsure && !values.contains(&None) && self.settled.contains(name),
            None => self.value(name, LAST).is_some(),
        }
    }

    /// Whether the values that are known may not be all that the word can become.
    pub(super) fn doubts(&self, word: &RawWord) -> bool {
        let mut several = 0;
        for Used { name, quoted, .. } in self.variables(word) {
            let Some(values) = self.values.get(name) else { continue };
            let mut known = values.iter().flatten();
            let elsewhere = self.separators.is_some() && !quoted;
            let perhaps_not = !values.contains(&None) && !self.is_certain(name);
            if perhaps_not || elsewhere && known.any(|value| value.contains(|c| self.splits(c))) {
                return true;
            }
            several += usize::from(values.len() > 1);
        }
        // Not all ways to combine them are tried.
        several > 1
    }

    /// In how many ways something in these words may be nothing.
    pub(super) fn vanishing<'w>(&self, words: impl Iterator<Item = &'w RawWord> + Clone) -> usize {
        // What functions are called with is there.
        let is_called = |name: &str| is_argument(name) && self.values.contains_key(name);
        let vanishes = |used: Used<'_>| !used.guarded && !self.is_certain(used.name) && !is_called(used.name);
        let may_vanish = |word: &RawWord| {
            word.pieces.iter().any(|piece| matches!(piece, Piece::Unknown))
                || self.variables(word).any(vanishes)
        };
        if !words.clone().any(may_vanish) {
            return 0;
        }
        let used = words.flat_map(|word| self.variables(word));
        used.map(|used| self.left_of(used.name).count()).max().unwrap_or(1).max(1)
    }

    /// What may be left of a variable if what is not known is nothing, from the last value on.
    pub(super) fn left_of(&self, name: &str) -> impl Iterator<Item = &str> {
        let values = self.values.get(name).into_iter().flatten().rev().flatten();
        let supposed = self.supposed.get(name).into_iter().flatten().rev();
        let nothing = (!self.is_certain(name)).then_some("");
        values.chain(supposed).map(String::as_str).chain(nothing)
    }

    /// In how many ways a word can be read by the values of its variables.
    pub(super) fn ways(&self, word: &RawWord) -> usize {
        self.variables(word).map(|used| self.choices(used.name)).max().unwrap_or(1)
    }
}

/// A variable in a word.
#[derive(Debug, Clone, Copy)]
struct Used<'a> {
    name: &'a str,
    /// Whether its value is not split.
    quoted: bool,
    /// Whether the shell stops if it is empty.
    guarded: bool,
}

/// Whether a variable is what a function or a script is called with.
fn is_argument(name: &str) -> bool {
    matches!(name, "@" | "*") || name.bytes().all(|byte| byte.is_ascii_digit())
}
