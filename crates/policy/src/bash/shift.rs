//! Links that move while a command runs. Every part is judged by the disk as it is before the command; after
//! `mv dir elsewhere`, a link that was in `dir` leads somewhere else.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::Command;
use super::expand::{Below, look_below};
use crate::fs::EntryKind;
use crate::paths::Spellings;
use crate::shell::{Part, Value};

/// The parts after which paths may lead elsewhere than they do now.
#[derive(Debug, Default)]
pub(super) struct Shifts {
    /// Which parts, in order.
    parts: Vec<usize>,
    /// Where links may turn up, and by which part if it is only one.
    targets: HashMap<PathBuf, Option<usize>>,
}

impl Shifts {
    pub(super) fn is_empty(&self) -> bool {
        self.parts.is_empty()
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
                        let by = shifts.targets.entry(target.clone()).or_insert(Some(at));
                        *by = by.filter(|by| *by == at);
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
        let fs = self.around.fs;
        let is_link = |path: &Path| fs.lstat(path) == Some(EntryKind::Link);
        match from.literal() {
            Some(text) => self.directories.all().map(|at| at.join(text)).any(|path| {
                let looked = |path: &PathBuf| look_below(path, fs, |_| true, is_link) != Below::Nothing;
                let mut linked = self.linked.borrow_mut();
                *linked.entry(path).or_insert_with_key(looked)
            }),
            None => true,
        }
    }

    /// Whether a path of this part may lead elsewhere by the time that the part runs.
    pub(super) fn is_shifted(&self, path: &Spellings, part: &Part) -> bool {
        let put = || path.all().flat_map(Path::ancestors).filter_map(|above| self.shifts.targets.get(above));
        if self.shifts.is_empty() || !path.is_linked() && put().next().is_none() {
            return false;
        }
        let at = self.script.parts.iter().position(|other| std::ptr::eq(other, part));
        let by_another = self.shifts.parts.iter().any(|by| Some(*by) != at);
        by_another && (path.is_linked() || put().any(|by| by.is_none() || *by != at))
    }
}

fn has_options(part: &Part) -> bool {
    part.words.iter().any(|word| word.value.literal().is_none_or(|text| text.starts_with('-')))
}
