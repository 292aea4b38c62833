//! What was inspected before. The same command or text says the same again, as long as variables mean the same and it
//! moves nothing.

use std::collections::HashMap;
use std::ops::Range;

use super::Part;
use super::inspect::Inspector;
use super::syntax::Simple;

/// So many parts are told one by one, whether they repeat each other or not.
const FEW: usize = 200;

/// Programs that may make paths lead elsewhere, so that it matters how often they run.
const MOVING: &[&str] = &["ln", "mv", "cp", "rsync"];

/// What was inspected.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    seen: HashMap<String, Seen>,
    /// Whether nothing is to be remembered, because it is taken for less than it says.
    pub(super) paused: bool,
}

/// One that was inspected.
#[derive(Debug)]
struct Seen {
    parts: Range<usize>,
    before: Standing,
}

/// What an inspection depends on and may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Standing {
    /// What variables mean.
    scope: (usize, bool, usize),
    /// How often the directory was or may have been changed.
    places: usize,
    level: usize,
}

impl Inspector<'_> {
    pub(super) fn standing(&self) -> Standing {
        let places = self.script.changes_dir.len() + self.script.directories.len();
        Standing { scope: self.scope.state(), places, level: self.level }
    }

    /// The parts that came of the same before.
    pub(super) fn repeated(&self, key: &str) -> Option<Range<usize>> {
        let now = self.standing();
        let same = |seen: &&Seen| seen.before.scope == now.scope && seen.before.level <= now.level;
        let seen = self.repeats.seen.get(key).filter(same)?;
        (self.script.parts.len() > FEW).then(|| seen.parts.clone())
    }

    /// Notes what came of an inspection, if it comes of it every time.
    pub(super) fn remember(&mut self, key: String, before: Standing, start: usize) {
        let parts = start..self.script.parts.len();
        let moves = |part: &Part| {
            !part.lands.is_empty() || part.program.as_deref().is_some_and(|program| MOVING.contains(&program))
        };
        let made = self.script.parts.get(parts.clone()).unwrap_or_default();
        let lasting = self.standing() == before && !self.script.cut_short && !made.iter().any(moves);
        if lasting && !self.repeats.paused {
            self.repeats.seen.insert(key, Seen { parts, before });
        }
    }

    /// The name that a text is remembered by.
    pub(super) fn key_of_text(&self, text: &str) -> String {
        format!("{}\0{text}", if self.guessing { 'g' } else { 't' })
    }

    /// The name that a command is remembered by; none if there is more to it than its words.
    pub(super) fn key_of_command(&self, command: &Simple) -> Option<String> {
        let bare = command.assignments.is_empty() && command.redirects.is_empty() && command.input.is_empty();
        if !bare || command.words.is_empty() {
            return None;
        }
        let flags = [
            command.condition,
            command.hidden,
            command.after_pipe,
            command.before_pipe,
            self.level == 0,
            self.guessing,
        ];
        let mut key = String::from("c");
        key.extend(flags.map(|flag| if flag { '1' } else { '0' }));
        for word in &command.words {
            key.push('\0');
            key.push_str(&word.raw);
        }
        Some(key)
    }
}
