//! Certainty of words, derived from what is known of their variables.

use super::env::{LAST_VALUE, VariableEnv};
use crate::shell::parser::syntax::{RawWord, WordPiece};

impl VariableEnv<'_> {
    /// Variables used in a word. `~` counts as `HOME` if that may change.
    fn variable_uses<'w>(&self, word: &'w RawWord) -> impl Iterator<Item = VariableUse<'w>> {
        let home_varies = !self.is_home_fixed;
        word.pieces.iter().filter_map(move |piece| match piece {
            WordPiece::Variable { name, quoted, nonempty } => {
                Some(VariableUse { name, quoted: *quoted, nonempty: *nonempty })
            }
            WordPiece::Plain(text) if home_varies && text.contains('~') => {
                Some(VariableUse { name: "HOME", quoted: true, nonempty: false })
            }
            WordPiece::Plain(_) | WordPiece::Quoted(_) | WordPiece::Unknown => None,
        })
    }

    /// Returns true if every variable of a word has its last assigned value.
    pub(crate) fn has_only_last_values(&self, word: &RawWord) -> bool {
        self.variable_uses(word)
            .all(|used| !self.values.contains_key(used.name) || self.is_last_value_definite(used.name))
    }

    /// Returns true if a word has exactly one possible expansion.
    pub(crate) fn is_definite(&self, word: &RawWord) -> bool {
        let is_certain = |used: VariableUse<'_>| {
            self.is_fully_known(used.name)
                && (self.value_count(used.name) == 1 || self.is_last_value_definite(used.name))
        };
        !word.pieces.iter().any(|piece| matches!(piece, WordPiece::Unknown))
            && self.variable_uses(word).all(is_certain)
    }

    /// Returns true if a variable certainly has its last assigned value, by the order of the text.
    fn is_last_value_definite(&self, name: &str) -> bool {
        !self.has_untracked_changes && !self.may_repeat && self.definite.is_last_value(name)
    }

    /// Returns true if a variable can only have its known values.
    fn is_fully_known(&self, name: &str) -> bool {
        match self.values.get(name) {
            Some(values) if self.is_last_value_definite(name) => values.last().is_some_and(Option::is_some),
            Some(values) => {
                !self.has_untracked_changes && !values.contains(&None) && self.definite.contains(name)
            }
            None => self.value(name, LAST_VALUE).is_some(),
        }
    }

    /// Returns true if a word may expand to something else than the known values suggest.
    pub(crate) fn may_have_other_values(&self, word: &RawWord) -> bool {
        let mut several = 0;
        for VariableUse { name, quoted, .. } in self.variable_uses(word) {
            let Some(values) = self.values.get(name) else { continue };
            let mut known = values.iter().flatten();
            let may_split = self.separators.is_some() && !quoted;
            let may_be_other = !values.contains(&None) && !self.is_fully_known(name);
            if may_be_other || may_split && known.any(|value| value.contains(|c| self.is_separator(c))) {
                return true;
            }
            several += usize::from(values.len() > 1);
        }
        // Not all combinations of values are tried.
        several > 1
    }

    /// Number of alternatives in which unknown parts of these words are empty.
    pub(crate) fn count_empty_alternatives<'w>(
        &self,
        words: impl Iterator<Item = &'w RawWord> + Clone,
    ) -> usize {
        // Positional parameters of a called function are set.
        let is_argument = |name: &str| is_positional_parameter(name) && self.values.contains_key(name);
        let may_be_empty = |used: VariableUse<'_>| {
            !used.nonempty && !self.is_fully_known(used.name) && !is_argument(used.name)
        };
        let word_may_be_empty = |word: &RawWord| {
            word.pieces.iter().any(|piece| matches!(piece, WordPiece::Unknown))
                || self.variable_uses(word).any(may_be_empty)
        };
        if !words.clone().any(word_may_be_empty) {
            return 0;
        }
        let used = words.flat_map(|word| self.variable_uses(word));
        used.map(|used| self.values_if_unknown_empty(used.name).count()).max().unwrap_or(1).max(1)
    }

    /// Values that a variable may have if its unknown parts are empty, newest first.
    pub(crate) fn values_if_unknown_empty(&self, name: &str) -> impl Iterator<Item = &str> {
        let values = self.values.get(name).into_iter().flatten().rev().flatten();
        let if_empty = self.texts_if_empty.get(name).into_iter().flatten().rev();
        let empty = (!self.is_fully_known(name)).then_some("");
        values.chain(if_empty).map(String::as_str).chain(empty)
    }

    /// Number of alternative expansions of a word by the values of its variables.
    pub(crate) fn count_alternatives(&self, word: &RawWord) -> usize {
        self.variable_uses(word).map(|used| self.value_count(used.name)).max().unwrap_or(1)
    }
}

/// Use of a variable in a word.
#[derive(Debug, Clone, Copy)]
struct VariableUse<'a> {
    name: &'a str,
    /// True if its value is not split.
    quoted: bool,
    /// True if the shell stops when it is empty.
    nonempty: bool,
}

/// Returns true for parameters of functions and scripts: `$1`, `$@`, `$*`.
fn is_positional_parameter(name: &str) -> bool {
    matches!(name, "@" | "*") || name.bytes().all(|byte| byte.is_ascii_digit())
}
