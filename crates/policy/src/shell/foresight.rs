//! Which values variables may have before the text gets to them: in loops and functions, what stands later may run first.

use std::collections::HashSet;

use super::inspect::Inspector;
use super::scope::{LAST, Reading};
use super::syntax::{Harvest, Piece, RawAssignment, RawWord};
use super::{Value, builtins, word};

/// How often values are followed from variable to variable.
const MOST_ROUNDS: usize = 64;

/// How many words are looked at for a builtin behind `command` and its like.
const MOST_PREFIXES: usize = 4;

impl Inspector<'_> {
    /// Gives the variables of loops their words.
    pub(super) fn give_loops(&mut self, harvest: &Harvest) {
        for (name, words) in &harvest.loops {
            for raw in words {
                for choice in 0..word::choices(raw, &self.scope) {
                    if self.scope.is_full() {
                        self.scope.give(name, None);
                        break;
                    }
                    let expanded = word::expand(raw, &self.scope, Reading::Nth(choice), &mut Vec::new());
                    for word in expanded {
                        if let Value::Glob(glob) = &word.value {
                            // One of its files; the pattern stands for them.
                            self.scope.give(name, Some(glob.clone()));
                        }
                        self.scope.give(name, word.value.literal().map(str::to_owned));
                    }
                }
                if self.scope.doubts(raw) {
                    self.scope.give(name, None);
                }
                self.suppose_of(name, raw);
            }
            self.scope.keep_earlier(name);
        }
    }

    /// Gives functions what they are called with. Somebody else may call them, or set what they see: that comes last.
    fn give_arguments(&mut self, harvest: &Harvest) {
        let names: HashSet<&str> = harvest.functions.iter().map(|(name, _)| name.as_str()).collect();
        for command in &harvest.commands {
            let Some((_, arguments)) =
                command.words.split_first().filter(|(name, _)| names.contains(name.raw.as_str()))
            else {
                continue;
            };
            let words = self.words(arguments, LAST, &mut Vec::new());
            for (number, word) in (1..10).zip(&words) {
                self.scope.give(&number.to_string(), word.value.literal().map(str::to_owned));
                self.scope.give(&number.to_string(), None);
            }
            let all: Vec<String> = words.iter().map(|word| word::text_of(&word.value)).collect();
            for name in ["@", "*"] {
                self.scope.give(name, Some(all.join(" ")));
                self.scope.give(name, None);
            }
        }
    }

    /// Where something may run more than once, a value that is given later may be there already.
    pub(super) fn foresee(&mut self, harvest: &Harvest) {
        let settled = self.scope.settled();
        for command in &harvest.commands {
            for given in &command.assignments {
                let values = self.values_of(&given.value);
                self.keep(command, given, values);
            }
            // What a text does to variables is not foreseen.
            let texts = |word: &RawWord| matches!(word.raw.as_str(), "eval" | "trap");
            self.scope.unsure |= command.words.iter().take(MOST_PREFIXES).any(texts);
            let sets = command.words.first().is_some_and(|word| builtins::sets_variables(&word.raw));
            if sets && let Some(others) = self.other_readings(command) {
                let words = self.words(&command.words, LAST, &mut Vec::new());
                self.note_all_values(command, &words, &others);
            }
        }
        // Nothing of it has run yet.
        self.scope.unsettle(settled);
        self.give_loops(harvest);
        self.give_arguments(harvest);
        self.spread(harvest);
    }

    /// Gives variables what comes of the values of others, as often as that says something new. What grows out of itself is
    /// not known.
    fn spread(&mut self, harvest: &Harvest) {
        let names = |given: &RawAssignment, name: Option<&str>| {
            given.value.pieces.iter().any(|piece| match piece {
                Piece::Variable { name: used, .. } => name.is_none_or(|name| name == used),
                Piece::Plain(_) | Piece::Quoted(_) | Piece::Unknown => false,
            })
        };
        let mut varying: Vec<&RawAssignment> =
            harvest.commands.iter().flat_map(|command| &command.assignments).collect();
        varying.retain(|given| names(given, None));
        for _ in 0..MOST_ROUNDS {
            let mut new = false;
            for given in &varying {
                if self.scope.is_lost(&given.name) {
                    continue;
                }
                let choices = word::choices(&given.value, &self.scope);
                if !self.limits.take_values(choices) {
                    self.scope.overflows = true;
                    return;
                }
                let text = |choice| {
                    let reading = Reading::Nth(choice);
                    let words = word::expand(&given.value, &self.scope, reading, &mut Vec::new());
                    let texts: Option<Vec<&str>> = words.iter().map(|word| word.value.literal()).collect();
                    texts.map(|texts| texts.join(" "))
                };
                // Giving them changes which is which, so all are made first.
                for value in (0..choices).map(text).collect::<Vec<_>>() {
                    let given_new = self.scope.give(&given.name, value);
                    if given_new && names(given, Some(&given.name)) {
                        self.scope.give(&given.name, None);
                    } else {
                        new |= given_new;
                    }
                }
            }
            if !new {
                return;
            }
        }
        self.scope.overflows = true;
    }
}
