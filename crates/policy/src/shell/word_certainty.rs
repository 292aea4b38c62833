//! How much is certain of the words of a command, by what is known of their variables.

use super::env::{LAST_VALUE, VariableEnv};
use super::syntax::{WordPiece, RawWord};

impl VariableEnv<'_> {
    /// The variables of a word. `~` is one if the home may be another.
    fn variable_uses<'w>(&self, word: &'w RawWord) -> impl Iterator<Item = VariableUse<'w>> {
        let home_varies = !self.is_home_fixed;
        word.pieces.iter().filter_map(move |piece| match piece {
            WordPiece::Variable { name, quoted, nonempty: guarded } => {
                Some(VariableUse { name, quoted: *quoted, nonempty: *guarded })
            }
            WordPiece::Plain(text) if home_varies && text.contains('~') => {
                Some(VariableUse { name: "HOME", quoted: true, nonempty: false })
            }
            WordPiece::Plain(_) | WordPiece::Quoted(_) | WordPiece::Unknown => None,
        })
    }

    /// Whether the variables of a word are what they were given last.
    pub(super) fn has_only_last_values(&self, word: &RawWord) -> bool {
        self.variable_uses(word).all(|used| !self.values.contains_key(used.name) || self.is_last_value_definite(used.name))
    }

    /// Whether a word can be nothing but what it is by the first reading.
    pub(super) fn is_definite(&self, word: &RawWord) -> bool {
        let sure = |used: VariableUse<'_>| {
            self.is_fully_known(used.name) && (self.value_count(used.name) == 1 || self.is_last_value_definite(used.name))
        };
        !word.pieces.iter().any(|piece| matches!(piece, WordPiece::Unknown)) && self.variable_uses(word).all(sure)
    }

    /// Whether a variable is what it was given last, for all that the order of the text says.
    fn is_last_value_definite(&self, name: &str) -> bool {
        !self.has_untracked_changes && !self.may_repeat && self.settled.is_last_value(name)
    }

    /// Whether nothing but the values that are known can be meant.
    fn is_fully_known(&self, name: &str) -> bool {
        match self.values.get(name) {
            Some(values) if self.is_last_value_definite(name) => values.last().is_some_and(Option::is_some),
            Some(values) => !self.has_untracked_changes && !values.contains(&None) && self.settled.contains(name),
            None => self.value(name, LAST_VALUE).is_some(),
        }
    }

    /// Whether the values that are known may not be all that the word can become.
    pub(super) fn may_have_other_values(&self, word: &RawWord) -> bool {
        let mut several = 0;
        for VariableUse { name, quoted, .. } in self.variable_uses(word) {
            let Some(values) = self.values.get(name) else { continue };
            let mut known = values.iter().flatten();
            let elsewhere = self.separators.is_some() && !quoted;
            let perhaps_not = !values.contains(&None) && !self.is_fully_known(name);
            if perhaps_not || elsewhere && known.any(|value| value.contains(|c| self.is_separator(c))) {
                return true;
            }
            several += usize::from(values.len() > 1);
        }
        // Not all ways to combine them are tried.
        several > 1
    }

    /// In how many ways something in these words may be nothing.
    pub(super) fn count_empty_alternatives<'w>(&self, words: impl Iterator<Item = &'w RawWord> + Clone) -> usize {
        // What functions are called with is there.
        let is_called = |name: &str| is_positional_parameter(name) && self.values.contains_key(name);
        let vanishes = |used: VariableUse<'_>| !used.nonempty && !self.is_fully_known(used.name) && !is_called(used.name);
        let may_vanish = |word: &RawWord| {
            word.pieces.iter().any(|piece| matches!(piece, WordPiece::Unknown))
                || self.variable_uses(word).any(vanishes)
        };
        if !words.clone().any(may_vanish) {
            return 0;
        }
        let used = words.flat_map(|word| self.variable_uses(word));
        used.map(|used| self.values_if_unknown_empty(used.name).count()).max().unwrap_or(1).max(1)
    }

    /// What may be left of a variable if what is not known is nothing, from the last value on.
    pub(super) fn values_if_unknown_empty(&self, name: &str) -> impl Iterator<Item = &str> {
        let values = self.values.get(name).into_iter().flatten().rev().flatten();
        let supposed = self.texts_if_empty.get(name).into_iter().flatten().rev();
        let nothing = (!self.is_fully_known(name)).then_some("");
        values.chain(supposed).map(String::as_str).chain(nothing)
    }

    /// In how many ways a word can be read by the values of its variables.
    pub(super) fn count_alternatives(&self, word: &RawWord) -> usize {
        self.variable_uses(word).map(|used| self.value_count(used.name)).max().unwrap_or(1)
    }
}

/// A variable in a word.
#[derive(Debug, Clone, Copy)]
struct VariableUse<'a> {
    name: &'a str,
    /// Whether its value is not split.
    quoted: bool,
    /// Whether the shell stops if it is empty.
    nonempty: bool,
}

/// Whether a variable is what a function or a script is called with.
fn is_positional_parameter(name: &str) -> bool {
    matches!(name, "@" | "*") || name.bytes().all(|byte| byte.is_ascii_digit())
}
