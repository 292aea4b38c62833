//! What a word of a command may mean on disk, and how much of the disk is looked at to know it.

use std::rc::Rc;

use super::expand::{is_wild_in_directory, static_prefix};
use super::{Command, static_directory};
use crate::paths::{Spellings, lexical};
use crate::shell::Value;

/// How much of the disk is looked at for one command. What is left out for lack of it counts as not searched.
#[derive(Debug)]
pub(super) struct Budget {
    paths: usize,
    globs: usize,
    walks: usize,
}

/// What is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    /// Where one path leads.
    Path,
    /// What one glob becomes in one directory.
    Glob,
    /// What lies below one directory.
    Walk,
}

impl Default for Budget {
    fn default() -> Self {
        Self { paths: 10_000, globs: 1_000, walks: 1_000 }
    }
}

impl Budget {
    /// Whether there is enough left for so many more looks.
    pub(super) fn take(&mut self, look: Look, count: usize) -> bool {
        let left = match look {
            Look::Path => &mut self.paths,
            Look::Glob => &mut self.globs,
            Look::Walk => &mut self.walks,
        };
        let enough = *left >= count;
        *left = left.saturating_sub(count);
        enough
    }
}

/// What is left open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Missing {
    Nothing,
    /// Something in the directories that are known.
    Below,
    /// Anything anywhere.
    Anything,
}

/// What a word may mean.
#[derive(Debug)]
pub(super) struct Reached {
    /// These paths, each from every directory that the command may be in.
    paths: Vec<Rc<[Spellings]>>,
    /// Something in these directories.
    pub(super) inside: Rc<[Spellings]>,
    /// What it may mean besides, because that is not known before the command runs.
    pub(super) possible: Missing,
    /// What it may mean besides, because there was too much to look at.
    pub(super) unsearched: Missing,
}

impl Reached {
    /// The paths that it may mean.
    pub(super) fn paths(&self) -> impl Iterator<Item = &Spellings> {
        self.paths.iter().flat_map(|paths| paths.iter())
    }
}

impl Command<'_> {
    /// What a word may mean.
    pub(super) fn reach(&self, value: &Value, budget: &mut Budget) -> Reached {
        let mut reached = Reached {
            paths: Vec::new(),
            inside: Rc::new([]),
            possible: Missing::Nothing,
            unsearched: Missing::Nothing,
        };
        match value {
            Value::Literal(text) => {
                reached.possible = self.elsewhere(text);
                if lies_below_descriptor(text) {
                    reached.unsearched = Missing::Anything;
                }
                self.reach_path(text, budget, &mut reached);
            }
            Value::Glob(glob) => {
                reached.possible = self.elsewhere(glob);
                self.reach_glob(glob, budget, &mut reached);
            }
            Value::Unknown { before, .. } => {
                reached.possible = Missing::Anything;
                if self.lands_uncounted {
                    reached.unsearched = Missing::Anything;
                }
                let directory = static_directory(before);
                if !directory.is_empty() {
                    reached.inside = self.spell_within(directory, budget, &mut reached.unsearched);
                }
            }
        }
        if self.directories.leave_open(text(value)) {
            reached.unsearched = Missing::Anything;
        }
        reached
    }

    /// A relative path may be anywhere if nobody knows where the command is by then.
    fn elsewhere(&self, text: &str) -> Missing {
        if self.directories.lost && !text.starts_with('/') { Missing::Anything } else { Missing::Nothing }
    }

    fn reach_path(&self, text: &str, budget: &mut Budget, reached: &mut Reached) {
        let mut unsearched = Missing::Nothing;
        reached.paths.push(self.spell_within(text, budget, &mut unsearched));
        reached.unsearched = reached.unsearched.max(unsearched);
    }

    fn reach_glob(&self, glob: &str, budget: &mut Budget, reached: &mut Reached) {
        let prefix = static_prefix(glob);
        let mut unsearched = Missing::Nothing;
        reached.inside = self.spell_within(&prefix.to_string_lossy(), budget, &mut unsearched);
        if is_wild_in_directory(glob) {
            reached.possible = reached.possible.max(Missing::Below);
        }
        let everywhere = if glob.starts_with('/') { 1 } else { usize::MAX };
        for directory in self.directories.all().take(everywhere) {
            if budget.paths == 0 || !budget.take(Look::Glob, 1) {
                unsearched = Missing::Anything;
                break;
            }
            let expansion = self.expand(glob, directory);
            if !expansion.complete {
                // A link among what was not seen may lead anywhere.
                let anywhere = is_wild_in_directory(glob) || self.around.fs.gives_up();
                unsearched = unsearched.max(if anywhere { Missing::Anything } else { Missing::Below });
            }
            for path in &expansion.paths {
                self.reach_path(&path.to_string_lossy(), budget, reached);
            }
        }
        reached.unsearched = reached.unsearched.max(unsearched);
    }

    /// The spellings of a path; by name alone once there was enough looking.
    fn spell_within(&self, text: &str, budget: &mut Budget, unsearched: &mut Missing) -> Rc<[Spellings]> {
        let count = if text.starts_with('/') { 1 } else { self.directories.all().count() };
        if budget.take(Look::Path, count) {
            return self.spell(text);
        }
        *unsearched = Missing::Anything;
        let by_name = |at: &std::path::Path| {
            let path = lexical(&at.join(text));
            Spellings { physical: path.clone(), lexical: path, hops: Vec::new(), through_process: false }
        };
        self.directories.all().map(by_name).collect()
    }
}

/// Whether a path begins at something that is open, which may be any directory.
fn lies_below_descriptor(text: &str) -> bool {
    let inside = text.strip_prefix("/dev/fd/").or_else(|| {
        let own = text.strip_prefix("/proc/")?;
        own.split_once("/fd/").map(|(_, inside)| inside)
    });
    inside.is_some_and(|inside| inside.contains('/'))
}

/// The text that a word begins with.
fn text(value: &Value) -> &str {
    match value {
        Value::Literal(text) | Value::Glob(text) => text,
        Value::Unknown { before, .. } => before,
    }
}
