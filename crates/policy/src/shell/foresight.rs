//! Which values variables may have before the text gets to them: in loops and functions, what stands later may run first.

use std::collections::HashSet;

use super::inspect::Inspector;
use super::readings::MOST_PREFIXES;
use super::scope::{LAST, Reading};
use super::syntax::{Harvest, Piece, RawAssignment, RawWord, Simple};
use super::{Value, Word, builtins, word};

/// How often values are followed from variable to variable.
const MOST_ROUNDS: usize = 64;

/// How many values of a variable are followed that grow out of themselves.
const FEW: usize = 8;

impl Inspector<'_> {
    /// Gives the variables of loops their words.
    pub(super) fn give_loops(&mut self, harvest: &Harvest) {
        for (name, words) in &harvest.loops {
            for raw in words {
                for choice in 0..self.scope.ways(raw) {
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

    /// Gives functions what they are called with. Somebody else may call them, or set what they see: that comes last. They
    /// may move their arguments to the front.
    fn give_arguments(&mut self, harvest: &Harvest) {
        let names: HashSet<&str> = harvest.functions.iter().map(|(name, _)| name.as_str()).collect();
        if names.is_empty() {
            return;
        }
        for command in &harvest.commands {
            let words = self.words(&command.words, LAST, &mut Vec::new());
            let Some((_, arguments)) = words
                .split_first()
                .filter(|(name, _)| name.value.literal().is_some_and(|name| names.contains(name)))
            else {
                continue;
            };
            let texts: Vec<String> = arguments.iter().map(|word| word::text_of(&word.value)).collect();
            for number in 1..10 {
                for word in arguments.iter().skip(number - 1).take(9) {
                    self.scope.give(&number.to_string(), word.value.literal().map(str::to_owned));
                }
                self.scope.give(&number.to_string(), None);
            }
            for name in ["@", "*"] {
                self.scope.give(name, Some(texts.join(" ")));
                self.scope.give(name, None);
            }
        }
    }

    /// Where something may run more than once, a value that is given later may be there already.
    pub(super) fn foresee(&mut self, harvest: &Harvest) {
        let settled = self.scope.settled();
        // Nothing of it has run yet.
        let floor = self.scope.count_from(usize::MAX);
        for command in &harvest.commands {
            for given in &command.assignments {
                let values = self.values_of(&given.value);
                self.suppose_of(&given.name, &given.value);
                self.keep(command, given, values);
            }
        }
        self.give_arguments(harvest);
        self.give_loops(harvest);
        self.spread(harvest);
        self.scope.unsettle(settled);
        self.scope.count_from(floor);
    }

    /// Gives variables what comes of the values of others, as often as that says something new. What grows out of itself is
    /// not known.
    fn spread(&mut self, harvest: &Harvest) {
        let commands = harvest.commands.iter();
        let mut varying: Vec<&RawAssignment> =
            commands.clone().flat_map(|command| &command.assignments).collect();
        varying.retain(|given| names(&given.value, None));
        let builtins: Vec<&Simple> = commands.filter(|command| may_set_variables(command)).collect();
        for _ in 0..MOST_ROUNDS {
            let known = self.scope.known();
            for given in &varying {
                self.spread_one(given);
            }
            for command in &builtins {
                self.foresee_builtin(command);
            }
            if self.scope.known() == known {
                return;
            }
        }
        self.scope.overflows = true;
    }

    fn spread_one(&mut self, given: &RawAssignment) {
        if self.scope.is_lost(&given.name) {
            return;
        }
        let choices = self.scope.ways(&given.value);
        if !self.limits.take_values(choices) {
            self.scope.overflows = true;
            return;
        }
        if names(&given.value, Some(&given.name)) {
            self.scope.give(&given.name, None);
            if choices > FEW {
                return;
            }
        }
        let text = |choice| {
            let words = word::expand(&given.value, &self.scope, Reading::Nth(choice), &mut Vec::new());
            let texts: Option<Vec<&str>> = words.iter().map(|word| word.value.literal()).collect();
            texts.map(|texts| texts.join(" "))
        };
        // Giving them changes which is which, so all are made first.
        for value in (0..choices).map(text).collect::<Vec<_>>() {
            self.scope.give(&given.name, value);
        }
    }

    /// Notes what a builtin sets, by all values that are known.
    fn foresee_builtin(&mut self, command: &Simple) {
        let choices = command.words.iter().map(|word| self.scope.ways(word)).max().unwrap_or(1);
        if !self.limits.take_values(choices) {
            self.scope.overflows = true;
            return;
        }
        let words = self.words(&command.words, LAST, &mut Vec::new());
        // What a text does to variables is not foreseen.
        let texts = |word: &Word| matches!(word.value.literal(), Some("eval" | "trap"));
        self.scope.unsure |= words.iter().take(MOST_PREFIXES).any(texts);
        let others: Vec<Reading> = (1..choices).map(Reading::Nth).collect();
        self.note_all_values(command, &words, &others);
    }
}

/// Whether a word uses this variable, or any.
fn names(word: &RawWord, name: Option<&str>) -> bool {
    word.pieces.iter().any(|piece| match piece {
        Piece::Variable { name: used, .. } => name.is_none_or(|name| name == used),
        Piece::Plain(_) | Piece::Quoted(_) | Piece::Unknown => false,
    })
}

/// Whether a command may be a builtin that sets variables, however it is written.
fn may_set_variables(command: &Simple) -> bool {
    let may =
        |word: &RawWord| word.raw.contains(['$', '\\', '\'', '"']) || builtins::sets_variables(&word.raw);
    command.words.first().is_some_and(may)
        || command.words.first().is_some_and(|word| matches!(word.raw.as_str(), "time" | "!"))
            && command.words.iter().take(MOST_PREFIXES).any(may)
}
