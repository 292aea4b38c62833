//! Links that move while a command runs. Every part is judged by the disk as it is before the command; after
//! `mv dir elsewhere`, a link that was in `dir` leads somewhere else.

use std::path::{Path, PathBuf};

use super::Command;
use super::expand::{Below, look_below};
use crate::fs::EntryKind;
use crate::paths::Spellings;
use crate::shell::{Part, Value};

/// A part after which paths may lead elsewhere than they do now.
#[derive(Debug)]
pub(super) struct Shift {
    /// Which part.
    part: usize,
    /// Where links may turn up.
    targets: Vec<PathBuf>,
}

impl Command<'_> {
    /// The parts that put links somewhere.
    pub(super) fn find_shifts(&self) -> Vec<Shift> {
        if self.script.parts.len() < 2 {
            return Vec::new();
        }
        let moving = self.script.parts.iter().enumerate().filter(|(_, part)| self.moves_links(part));
        moving
            .map(|(at, part)| {
                let literal = part.writes.iter().filter_map(Value::literal);
                let targets = literal.flat_map(|text| self.spell(text).to_vec()).flat_map(|path| {
                    let Spellings { lexical, physical, .. } = path;
                    [lexical, physical]
                });
                Shift { part: at, targets: targets.collect() }
            })
            .collect()
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
            Some(text) => self
                .directories
                .all()
                .any(|at| look_below(&at.join(text), fs, |_| true, is_link) != Below::Nothing),
            None => true,
        }
    }

    /// Whether a path of this part may lead elsewhere by the time that the part runs.
    pub(super) fn is_shifted(&self, path: &Spellings, part: &Part) -> bool {
        let by_others = self
            .shifts
            .iter()
            .filter(|shift| self.script.parts.get(shift.part).is_none_or(|other| !std::ptr::eq(other, part)));
        by_others.into_iter().any(|shift| {
            path.is_linked()
                || path.all().any(|path| shift.targets.iter().any(|target| path.starts_with(target)))
        })
    }
}

fn has_options(part: &Part) -> bool {
    part.words.iter().any(|word| word.value.literal().is_none_or(|text| text.starts_with('-')))
}
