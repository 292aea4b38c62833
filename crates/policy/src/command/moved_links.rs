//! Links that move while a command runs. Every part is judged by the disk as it is before the command; after
//! `mv dir elsewhere`, a link that was in `dir` leads somewhere else.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::ShellCommand;
use crate::dir_walk::WalkResult;
use crate::paths::ResolvedPath;
use crate::shell::{SimpleCommand, WordValue};

/// The parts after which paths may lead elsewhere than they do now.
#[derive(Debug, Default)]
pub(super) struct MovedLinks {
    /// Which parts, in order.
    movers: Vec<usize>,
    /// Where links may turn up, and by which parts. Paths are kept as text, which is told apart faster.
    targets: HashMap<OsString, MovedBy>,
}

/// Which parts may move something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MovedBy {
    Nothing,
    /// This part alone.
    Command(usize),
    /// Several.
    Several,
}

impl MovedBy {
    pub(super) fn merge(self, other: Self) -> Self {
        match (self, other) {
            (Self::Nothing, shift) | (shift, Self::Nothing) => shift,
            (Self::Command(one), Self::Command(two)) if one == two => self,
            (Self::Command(_) | Self::Several, Self::Command(_) | Self::Several) => Self::Several,
        }
    }
}

impl ShellCommand<'_> {
    /// The parts that put links somewhere.
    pub(super) fn find_moved_links(&self) -> MovedLinks {
        let mut shifts = MovedLinks::default();
        if self.script.commands.len() < 2 {
            return shifts;
        }
        let moving = self.script.commands.iter().enumerate().filter(|(_, part)| self.moves_links(part));
        for (at, part) in moving {
            shifts.movers.push(at);
            for text in part.writes.iter().filter_map(WordValue::as_literal) {
                for path in self.resolve(text).iter() {
                    for target in [&path.lexical, &path.physical] {
                        let by = shifts.targets.entry(target.clone().into()).or_insert(MovedBy::Nothing);
                        *by = by.merge(MovedBy::Command(at));
                    }
                }
            }
        }
        shifts
    }

    fn moves_links(&self, part: &SimpleCommand) -> bool {
        match part.program.as_deref() {
            Some("ln") => true,
            Some("mv") => part.reads.iter().any(|from| self.may_contain_links(from)),
            // Without options only what links lead to is copied.
            Some("cp" | "rsync") => {
                has_options(part) && part.reads.iter().any(|from| self.may_contain_links(from))
            }
            _ => false,
        }
    }

    /// Whether there is a link at or below this path, or may be.
    fn may_contain_links(&self, from: &WordValue) -> bool {
        let linked = |path: PathBuf| self.walked.find_links(&path, self.path_context.fs) != WalkResult::NotFound;
        match from.as_literal() {
            Some(text) => self.directories.all().map(|at| at.join(text)).any(linked),
            None => true,
        }
    }

    /// Which parts may make a path lead elsewhere.
    pub(super) fn moved_by(&self, path: &ResolvedPath) -> MovedBy {
        let all = match self.moved_links.movers.as_slice() {
            [] => return MovedBy::Nothing,
            [one] => MovedBy::Command(*one),
            _ => MovedBy::Several,
        };
        if path.is_linked() {
            return all;
        }
        let mut shift = MovedBy::Nothing;
        for above in path.spellings().flat_map(Path::ancestors) {
            if let Some(put) = self.moved_links.targets.get(above.as_os_str()) {
                shift = shift.merge(*put);
            }
            if shift == all {
                break;
            }
        }
        shift
    }

    /// Whether a part other than this one makes such a shift.
    pub(super) fn is_moved_by_other(&self, shift: MovedBy, part: &SimpleCommand) -> bool {
        match shift {
            MovedBy::Nothing => false,
            MovedBy::Command(one) => !self.script.commands.get(one).is_some_and(|by| std::ptr::eq(by, part)),
            MovedBy::Several => true,
        }
    }

    /// Whether a path of this part may lead elsewhere by the time that the part runs.
    pub(super) fn may_be_moved(&self, path: &ResolvedPath, part: &SimpleCommand) -> bool {
        self.is_moved_by_other(self.moved_by(path), part)
    }
}

fn has_options(part: &SimpleCommand) -> bool {
    part.words.iter().any(|word| word.value.as_literal().is_none_or(|text| text.starts_with('-')))
}
