//! A command by other readings than the first: other values of its variables, none that is known, or nothing at all.

use std::collections::HashMap;

use super::inspect::Inspector;
use super::lexer::leading_name;
use super::printed::{Printed, printed};
use super::scope::Reading;
use super::syntax::{Fed, RawWord, Simple};
use super::{Part, Reach, Value, Word, builtins, part, word};

/// How many words are looked at for the name of a builtin.
pub(super) const MOST_PREFIXES: usize = 4;

/// Texts of a part besides its words.
#[derive(Debug)]
pub(super) struct Texts {
    /// Whether its words or what it reads may be something else than by the first reading.
    varies: bool,
    pub(super) texts: Vec<String>,
}

impl Inspector<'_> {
    /// In which other ways a command is to be read; none if there are more than are followed.
    pub(super) fn other_readings(&mut self, command: &Simple) -> Option<Vec<Reading>> {
        let words = || command.words.iter().chain(command.redirects.iter().map(|redirect| &redirect.target));
        let choices = words().map(|word| self.scope.ways(word)).max().unwrap_or(1);
        let doubtful = words().any(|word| self.scope.doubts(word));
        let vanishing = self.scope.vanishing(words());
        let more = choices - 1 + vanishing.saturating_sub(1);
        if !self.limits.take_readings(more, command.words.len() + command.redirects.len()) {
            return None;
        }
        let nth = (1..choices).map(Reading::Nth);
        let unknown = doubtful.then_some(Reading::Unknown);
        let nothing = (0..vanishing).map(Reading::Nothing);
        Some(nth.chain(unknown).chain(nothing).collect())
    }

    /// Notes what a command, which is the part at some place, is given to read by here-strings, and prints by other readings.
    pub(super) fn note_texts(&mut self, at: usize, command: &Simple, others: &[Reading]) {
        let fed: Vec<&RawWord> = command.input.iter().filter_map(Fed::word).collect();
        let mut texts: Vec<String> = fed.iter().flat_map(|word| self.texts_of(word)).collect();
        let count = others.len() * (1 + command.words.len() / 32);
        let varies = command.words.iter().chain(fed).any(|word| !self.scope.is_sure(word));
        if varies && self.limits.take_values(count) {
            for reading in others {
                if let Printed::Text(printed) =
                    printed(&self.words(&command.words, *reading, &mut Vec::new()))
                {
                    texts.extend(printed);
                }
            }
        } else if varies {
            self.cut_short();
        }
        if varies || !texts.is_empty() {
            self.texts.insert(at, Texts { varies, texts });
        }
    }

    /// The texts that a word may be where it is not split.
    fn texts_of(&mut self, word: &RawWord) -> Vec<String> {
        let (choices, vanishing) = (self.scope.ways(word), self.scope.vanishing(std::iter::once(word)));
        if !self.limits.take_values(choices + vanishing) {
            self.cut_short();
            return Vec::new();
        }
        let readings = (0..choices).map(Reading::Nth).chain((0..vanishing).map(Reading::Nothing));
        let text = |reading| word::text_of(&word::single_by(word, &self.scope, reading, &mut Vec::new()));
        readings.map(text).collect()
    }

    /// Whether a part may have other words, or be given something else to read, than by the first reading.
    pub(super) fn may_vary(&self, at: usize) -> bool {
        self.texts.get(&at).is_some_and(|texts| texts.varies)
    }

    /// Searches a command by another reading.
    pub(super) fn read_again(&mut self, command: &Simple, reading: Reading) {
        if matches!(reading, Reading::Nothing(_)) {
            self.without_the_unknown(command, reading);
            return;
        }
        let words = self.words(&command.words, reading, &mut Vec::new());
        self.searched_again(command, &words, reading);
    }

    /// A command goes where one of its readings goes: drops the places that it had already by earlier ones.
    pub(super) fn keep_new_places(&mut self, start: usize, known: usize) {
        let added = self.script.directories.split_off(known);
        if added.is_empty() {
            return;
        }
        let mut earlier: HashMap<&Value, usize> = HashMap::new();
        for place in self.script.directories.iter().skip(start) {
            *earlier.entry(place).or_default() += 1;
        }
        let is_new = |place: &Value| match earlier.get_mut(place) {
            Some(count) if *count > 0 => {
                *count -= 1;
                false
            }
            _ => true,
        };
        let new: Vec<Value> = added.into_iter().filter(is_new).collect();
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
    fn without_the_unknown(&mut self, command: &Simple, reading: Reading) {
        let words = self.words(&command.words, reading, &mut Vec::new());
        self.suppose_declared(&words);
        let start = self.script.parts.len();
        let (turns, paths) = (self.script.changes_dir.len(), self.script.cd_path.len());
        let (places, elsewhere) = (self.script.directories.len(), self.script.elsewhere.len());
        let paused = std::mem::replace(&mut self.repeats.paused, true);
        self.searched_again(command, &words, reading);
        self.repeats.paused = paused;
        self.script.changes_dir.truncate(turns);
        self.script.cd_path.truncate(paths);
        keep_literal(&mut self.script.directories, places);
        keep_literal(&mut self.script.elsewhere, elsewhere);
        self.script.supposed.extend(self.script.parts.drain(start..).map(named_only));
        self.texts.split_off(&start);
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

    /// Notes which variables a builtin sets, by every reading, the first at last. By which it is called must be certain.
    pub(super) fn note_all_values(&mut self, command: &Simple, words: &[Word], others: &[Reading]) {
        let settled = self.scope.settled();
        let sets = |word: &Word| word.value.literal().is_some_and(builtins::sets_variables);
        let mut several = false;
        if words.iter().take(MOST_PREFIXES).any(sets) {
            for reading in others.iter().filter(|reading| !matches!(reading, Reading::Nothing(_))).rev() {
                let words = self.words(&command.words, *reading, &mut Vec::new());
                self.note_values(&words);
                several = true;
            }
        }
        self.note_values(words);
        if several {
            self.scope.doubt_since(settled);
        }
        if command.words.first().is_some_and(|word| !self.scope.is_sure(word)) {
            self.scope.unsettle(settled);
        }
    }
}

/// Drops what was added after so many and is not literal.
fn keep_literal(places: &mut Vec<Value>, count: usize) {
    let added = places.split_off(count);
    places.extend(added.into_iter().filter(is_named));
}

fn is_named(value: &Value) -> bool {
    value.literal().is_some_and(|text| !text.is_empty())
}

/// What rules are compared with in a part: its texts, and the files that it names.
fn named_only(mut part: Part) -> Part {
    part.reads.retain(is_named);
    part.writes.retain(is_named);
    part.redirects.retain(|redirect| is_named(&redirect.target));
    Part {
        reach: Reach::Guessed,
        lands: Vec::new(),
        sweeps: Vec::new(),
        critical: Vec::new(),
        recursive: false,
        changes_below: false,
        opaque: false,
        ..part
    }
}
