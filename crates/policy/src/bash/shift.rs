//! Links that move while a command runs. Every part is judged by the disk as it is before the command; after
//! `mv dir elsewhere`, a link that was in `dir` leads somewhere else.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::Command;
use crate::below::Below;
use crate::paths::Spellings;
use crate::shell::{Part, Value};

/// The parts after which paths may lead elsewhere than they do now.
#[derive(Debug, Default)]
pub(super) struct Shifts {
    /// Which parts, in order.
    parts: Vec<usize>,
    /// Where links may turn up, and by which parts. Paths are kept as text, which is told apart faster.
    targets: HashMap<OsString, Shift>,
}

/// Which parts may move something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shift {
    Never,
    /// This part alone.
    By(usize),
    /// Several.
    Often,
}

impl Shift {
    pub(super) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Never, shift) | (shift, Self::Never) => shift,
            (Self::By(one), Self::By(two)) if one == two => self,
            (Self::By(_) | Self::Often, Self::By(_) | Self::Often) => Self::Often,
        }
    }
}

impl Command<'_> {
    /// The parts that put links somewhere.
    pub(super) fn find_shifts(&self) -> Shifts {
        let mut shifts = Shifts::default();
        if self.script.parts.len() < 2 {
            return shifts;
        }
        let moving = self.script.parts.iter().enumerate().filter(|(_, part)| self.moves_links(part));
        for (at, part) in moving {
            shifts.parts.push(at);
            for text in part.writes.iter().filter_map(Value::literal) {
                for path in self.spell(text).iter() {
                    for target in [&path.lexical, &path.physical] {
                        let by = shifts.targets.entry(target.clone().into()).or_insert(Shift::Never);
                        *by = by.and(Shift::By(at));
                    }
                }
            }
        }
        shifts
    }

    fn moves_links(&self, part: &Part) -> bool {
        match part.program.as_deref() {
            Some("ln") => true,
            Some("mv") => part.reads.iter().any(|from| self.carries_links(from)),
            // Without options only what links lead to is copied.
            Some("cp" | "rsync") => {
                has_options(part) && part.reads.iter().any(|from| self.carries_links(from))
            }
            _ => false,
        }
    }

    /// Whether there is a link at or below this path, or may be.
    fn carries_links(&self, from: &Value) -> bool {
        let linked = |path: PathBuf| self.walked.links(&path, self.around.fs) != Below::Nothing;
        match from.literal() {
            Some(text) => self.directories.all().map(|at| at.join(text)).any(linked),
            None => true,
        }
    }

    /// Which parts may make a path lead elsewhere.
    pub(super) fn shift_of(&self, path: &Spellings) -> Shift {
        let all = match self.shifts.parts.as_slice() {
            [] => return Shift::Never,
            [one] => Shift::By(*one),
            _ => Shift::Often,
        };
        if path.is_linked() {
            return all;
        }
        let mut shift = Shift::Never;
        for above in path.all().flat_map(Path::ancestors) {
            if let Some(put) = self.shifts.targets.get(above.as_os_str()) {
                shift = shift.and(*put);
            }
            if shift == all {
                break;
            }
        }
        shift
    }

    /// Whether a part other than this one makes such a shift.
    pub(super) fn moves_before(&self, shift: Shift, part: &Part) -> bool {
        match shift {
            Shift::Never => false,
            Shift::By(one) => !self.script.parts.get(one).is_some_and(|by| std::ptr::eq(by, part)),
            Shift::Often => true,
        }
    }

    /// Whether a path of this part may lead elsewhere by the time that the part runs.
    pub(super) fn is_shifted(&self, path: &Spellings, part: &Part) -> bool {
        self.moves_before(self.shift_of(path), part)
    }
}

fn has_options(part: &Part) -> bool {
    part.words.iter().any(|word| word.value.literal().is_none_or(|text| text.starts_with('-')))
}
