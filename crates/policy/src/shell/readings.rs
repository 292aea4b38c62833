//! A command by other readings than the first: other values of its variables, none that is known, or nothing at all.

use super::inspect::Inspector;
use super::lexer::leading_name;
use super::scope::Reading;
use super::syntax::{Fed, RawWord, Simple};
use super::{Part, Reach, Value, Word, builtins, part, word};

impl Inspector<'_> {
    /// In which other ways a command is to be read; none if there are more than are followed.
    pub(super) fn other_readings(&mut self, command: &Simple) -> Option<Vec<Reading>> {
        let words = || command.words.iter().chain(command.redirects.iter().map(|redirect| &redirect.target));
        let choices = words().map(|word| word::choices(word, &self.scope)).max().unwrap_or(1);
        let doubtful = words().any(|word| self.scope.doubts(word));
        let vanishing = words().any(|word| self.scope.may_vanish(word));
        if !self.limits.take_readings(choices - 1, command.words.len()) {
            return None;
        }
        let nth = (1..choices).map(Reading::Nth);
        let unknown = doubtful.then_some(Reading::Unknown);
        let nothing = vanishing.then_some(Reading::Nothing);
        Some(nth.chain(unknown).chain(nothing).collect())
    }

    /// Whether a command may have other words, or be given something else to read, than by the first reading.
    pub(super) fn varies(&self, command: &Simple) -> bool {
        let fed = command.input.iter().filter_map(|fed| match fed {
            Fed::Word(word) => Some(word),
            Fed::Document(_) => None,
        });
        command.words.iter().chain(fed).any(|word| !self.scope.is_sure(word))
    }

    /// Searches a command by another reading.
    pub(super) fn read_again(&mut self, command: &Simple, reading: Reading) {
        if reading == Reading::Nothing {
            self.without_the_unknown(command);
            return;
        }
        let words = self.words(&command.words, reading, &mut Vec::new());
        self.searched_again(command, &words, reading);
    }

    /// A command goes where one of its readings goes: drops the places that it had already by earlier ones.
    pub(super) fn keep_new_places(&mut self, start: usize, known: usize) {
        let added = self.script.directories.split_off(known);
        let mut earlier: Vec<&Value> = self.script.directories.iter().skip(start).collect();
        let mut new = Vec::new();
        for place in added {
            match earlier.iter().position(|known| **known == place) {
                Some(at) => {
                    earlier.swap_remove(at);
                }
                None => new.push(place),
            }
        }
        self.script.directories.extend(new);
    }

    fn searched_again(&mut self, command: &Simple, words: &[Word], reading: Reading) {
        let at = self.script.parts.len();
        self.searched(words, 0);
        if command.redirects.is_empty() {
            return;
        }
        if self.script.parts.len() == at {
            self.script.parts.push(part::searched(&[]));
        }
        let redirects = self.redirects(command, reading, &mut Vec::new());
        if let Some(part) = self.script.parts.get_mut(at) {
            part.redirects = redirects;
        }
    }

    /// Searches a command as if what is not known of it were nothing: `git $none push` pushes. What it says then is
    /// compared with rules; how much it would touch or remove is not judged by a guess.
    fn without_the_unknown(&mut self, command: &Simple) {
        let words = self.words(&command.words, Reading::Nothing, &mut Vec::new());
        self.suppose_declared(&words);
        let start = self.script.parts.len();
        let (turns, places) = (self.script.changes_dir.len(), self.script.directories.len());
        let (elsewhere, paths) = (self.script.elsewhere.len(), self.script.cd_path.len());
        let paused = std::mem::replace(&mut self.repeats.paused, true);
        self.searched_again(command, &words, Reading::Nothing);
        self.repeats.paused = paused;
        self.script.changes_dir.truncate(turns);
        if words.len() < command.words.len() {
            // `cd` without a directory is another command.
            self.script.directories.truncate(places);
        }
        self.script.elsewhere.truncate(elsewhere);
        self.script.cd_path.truncate(paths);
        let parts = self.script.parts.drain(start..).map(named_only);
        self.script.supposed.extend(parts);
    }

    fn suppose_declared(&mut self, words: &[Word]) {
        let Some((first, arguments)) = words.split_first() else { return };
        if !first.value.literal().is_some_and(builtins::declares) {
            return;
        }
        for text in arguments.iter().filter_map(|word| word.value.literal()) {
            if let Some((name, value)) = text.split_once('=').filter(|(name, _)| leading_name(name) == *name)
            {
                self.scope.suppose(name, value);
            }
        }
    }

    /// Notes which variables a builtin sets, by every reading, the first at last.
    pub(super) fn note_all_values(&mut self, command: &Simple, words: &[Word], others: &[Reading]) {
        let sets = |word: &RawWord| builtins::sets_variables(&word.raw);
        if command.words.first().is_some_and(sets) {
            let others = others.iter().filter(|reading| **reading != Reading::Nothing);
            for reading in others.rev() {
                let words = self.words(&command.words, *reading, &mut Vec::new());
                self.note_values(&words);
            }
        }
        self.note_values(words);
    }
}

/// What rules are compared with in a part: its texts, and the files that it names.
fn named_only(part: Part) -> Part {
    let literal = |values: Vec<Value>| -> Vec<Value> {
        values.into_iter().filter(|value| value.literal().is_some_and(|text| !text.is_empty())).collect()
    };
    Part {
        reach: Reach::Guessed,
        reads: literal(part.reads),
        writes: literal(part.writes),
        redirects: part.redirects.into_iter().filter(|to| to.target.literal().is_some()).collect(),
        lands: Vec::new(),
        sweeps: Vec::new(),
        critical: Vec::new(),
        recursive: false,
        changes_below: false,
        opaque: false,
        ..part
    }
}
