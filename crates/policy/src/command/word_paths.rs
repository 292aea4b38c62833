//! What a word of a command may mean on disk, and how much of the disk is looked at to know it.

use std::rc::Rc;

use super::glob_expansion::{has_wildcard_in_directory, literal_prefix};
use super::{ShellCommand, literal_directory};
use crate::paths::{ResolvedPath, lexical_path};
use crate::shell::WordValue;

/// How much of the disk is looked at for one command. What is left out for lack of it counts as not searched.
#[derive(Debug)]
pub(super) struct SearchBudget {
    paths: usize,
    globs: usize,
    walks: usize,
}

/// What is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LookupKind {
    /// Where one path leads.
    Path,
    /// What one glob becomes in one directory.
    Glob,
    /// What lies below one directory.
    Walk,
}

impl Default for SearchBudget {
    fn default() -> Self {
        Self { paths: 10_000, globs: 1_000, walks: 1_000 }
    }
}

impl SearchBudget {
    /// Whether there is enough left for so many more looks.
    pub(super) fn take(&mut self, look: LookupKind, count: usize) -> bool {
        let left = match look {
            LookupKind::Path => &mut self.paths,
            LookupKind::Glob => &mut self.globs,
            LookupKind::Walk => &mut self.walks,
        };
        let enough = *left >= count;
        *left = left.saturating_sub(count);
        enough
    }
}

/// What is left open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Unresolved {
    Nothing,
    /// Something in the directories that are known.
    InKnownDirs,
    /// Anything anywhere.
    Anything,
}

/// What a word may mean.
#[derive(Debug)]
pub(super) struct WordPaths {
    /// These paths, each from every directory that the command may be in.
    paths: Vec<Rc<[ResolvedPath]>>,
    /// Something in these directories.
    pub(super) containing_dirs: Rc<[ResolvedPath]>,
    /// What it may mean besides, because that is not known before the command runs.
    pub(super) unknown: Unresolved,
    /// What it may mean besides, because there was too much to look at.
    pub(super) unsearched: Unresolved,
}

impl WordPaths {
    /// The paths that it may mean.
    pub(super) fn paths(&self) -> impl Iterator<Item = &ResolvedPath> {
        self.paths.iter().flat_map(|paths| paths.iter())
    }
}

impl ShellCommand<'_> {
    /// What a word may mean.
    pub(super) fn word_paths(&self, value: &WordValue, budget: &mut SearchBudget) -> WordPaths {
        let mut reached = WordPaths {
            paths: Vec::new(),
            containing_dirs: Rc::new([]),
            unknown: Unresolved::Nothing,
            unsearched: Unresolved::Nothing,
        };
        match value {
            WordValue::Literal(text) => {
                reached.unknown = self.unresolved_if_relative(text);
                if is_below_descriptor(text) {
                    reached.unsearched = Unresolved::Anything;
                }
                self.add_path(text, budget, &mut reached);
            }
            WordValue::Glob(glob) => {
                reached.unknown = self.unresolved_if_relative(glob);
                self.add_glob(glob, budget, &mut reached);
            }
            WordValue::Unknown { before, .. } => {
                reached.unknown = Unresolved::Anything;
                if self.dir_targets_truncated {
                    reached.unsearched = Unresolved::Anything;
                }
                let directory = literal_directory(before);
                if !directory.is_empty() {
                    reached.containing_dirs = self.resolve_within(directory, budget, &mut reached.unsearched);
                }
            }
        }
        if self.directories.may_be_elsewhere(leading_text(value)) {
            reached.unsearched = Unresolved::Anything;
        }
        reached
    }

    /// A relative path may be anywhere if nobody knows where the command is by then.
    fn unresolved_if_relative(&self, text: &str) -> Unresolved {
        if self.directories.may_be_anywhere && !text.starts_with('/') { Unresolved::Anything } else { Unresolved::Nothing }
    }

    fn add_path(&self, text: &str, budget: &mut SearchBudget, reached: &mut WordPaths) {
        let mut unsearched = Unresolved::Nothing;
        reached.paths.push(self.resolve_within(text, budget, &mut unsearched));
        reached.unsearched = reached.unsearched.max(unsearched);
    }

    fn add_glob(&self, glob: &str, budget: &mut SearchBudget, reached: &mut WordPaths) {
        let prefix = literal_prefix(glob);
        let mut unsearched = Unresolved::Nothing;
        reached.containing_dirs = self.resolve_within(&prefix.to_string_lossy(), budget, &mut unsearched);
        if has_wildcard_in_directory(glob) {
            reached.unknown = reached.unknown.max(Unresolved::InKnownDirs);
        }
        let everywhere = if glob.starts_with('/') { 1 } else { usize::MAX };
        for directory in self.directories.all().take(everywhere) {
            if budget.paths == 0 || !budget.take(LookupKind::Glob, 1) {
                unsearched = Unresolved::Anything;
                break;
            }
            let expansion = self.expand_glob(glob, directory);
            if !expansion.complete {
                // A link among what was not seen may lead anywhere.
                let anywhere = has_wildcard_in_directory(glob) || self.path_context.fs.is_budget_exhausted();
                unsearched = unsearched.max(if anywhere { Unresolved::Anything } else { Unresolved::InKnownDirs });
            }
            for path in &expansion.paths {
                self.add_path(&path.to_string_lossy(), budget, reached);
            }
        }
        reached.unsearched = reached.unsearched.max(unsearched);
    }

    /// The spellings of a path; by name alone once there was enough looking.
    fn resolve_within(&self, text: &str, budget: &mut SearchBudget, unsearched: &mut Unresolved) -> Rc<[ResolvedPath]> {
        let count = if text.starts_with('/') { 1 } else { self.directories.all().count() };
        if budget.take(LookupKind::Path, count) {
            return self.resolve(text);
        }
        *unsearched = Unresolved::Anything;
        let by_name = |at: &std::path::Path| {
            let path = lexical_path(&at.join(text));
            ResolvedPath { physical: path.clone(), lexical: path, hops: Vec::new(), via_proc: false }
        };
        self.directories.all().map(by_name).collect()
    }
}

/// Whether a path begins at something that is open, which may be any directory.
fn is_below_descriptor(text: &str) -> bool {
    let inside = text.strip_prefix("/dev/fd/").or_else(|| {
        let own = text.strip_prefix("/proc/")?;
        own.split_once("/fd/").map(|(_, inside)| inside)
    });
    inside.is_some_and(|inside| inside.contains('/'))
}

/// The text that a word begins with.
fn leading_text(value: &WordValue) -> &str {
    match value {
        WordValue::Literal(text) | WordValue::Glob(text) => text,
        WordValue::Unknown { before, .. } => before,
    }
}
