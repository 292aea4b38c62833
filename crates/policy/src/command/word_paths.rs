//! Paths that a word of a command may refer to, found within a search budget.

use std::rc::Rc;

use super::globs::{extract_literal_prefix, has_wildcard_in_directory};
use super::{ShellCommand, extract_literal_directory};
use crate::paths::{ResolvedPath, normalize_lexically};
use crate::shell::WordValue;

/// Budget for disk lookups of one command. Lookups beyond it count as not searched.
#[derive(Debug)]
pub(super) struct SearchBudget {
    paths: usize,
    globs: usize,
    walks: usize,
}

/// Kind of a lookup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LookupKind {
    /// Resolution of one path.
    Path,
    /// Expansion of one glob in one directory.
    Glob,
    /// Walk below one directory.
    Walk,
}

impl Default for SearchBudget {
    fn default() -> Self {
        Self { paths: 10_000, globs: 1_000, walks: 1_000 }
    }
}

impl SearchBudget {
    /// Spends lookups of the budget. Returns false if it is exhausted.
    pub(super) fn spend(&mut self, kind: LookupKind, count: usize) -> bool {
        let left = match kind {
            LookupKind::Path => &mut self.paths,
            LookupKind::Glob => &mut self.globs,
            LookupKind::Walk => &mut self.walks,
        };
        let enough = *left >= count;
        *left = left.saturating_sub(count);
        enough
    }
}

/// Part of the possible paths that could not be determined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Unresolved {
    Nothing,
    /// Any path in the known directories.
    InKnownDirs,
    /// Any path.
    Anything,
}

/// Paths that a word may refer to.
#[derive(Debug)]
pub(super) struct WordPaths {
    /// Known paths, each resolved from every directory that the command may be in.
    paths: Vec<Rc<[ResolvedPath]>>,
    /// Directories that contain the path, if only its start is known.
    pub(super) containing_dirs: Rc<[ResolvedPath]>,
    /// Further paths that are known only when the command runs.
    pub(super) unknown: Unresolved,
    /// Further paths that the budget did not cover.
    pub(super) unsearched: Unresolved,
}

impl WordPaths {
    pub(super) fn paths(&self) -> impl Iterator<Item = &ResolvedPath> {
        self.paths.iter().flat_map(|paths| paths.iter())
    }
}

impl ShellCommand<'_> {
    /// Determines the paths that a word may refer to.
    pub(super) fn find_word_paths(&self, value: &WordValue, budget: &mut SearchBudget) -> WordPaths {
        let mut word_paths = WordPaths {
            paths: Vec::new(),
            containing_dirs: Rc::new([]),
            unknown: Unresolved::Nothing,
            unsearched: Unresolved::Nothing,
        };
        match value {
            WordValue::Literal(text) => {
                word_paths.unknown = self.unresolved_if_relative(text);
                if is_below_descriptor(text) {
                    word_paths.unsearched = Unresolved::Anything;
                }
                self.add_path(text, budget, &mut word_paths);
            }
            WordValue::Glob(glob) => {
                word_paths.unknown = self.unresolved_if_relative(glob);
                self.add_glob(glob, budget, &mut word_paths);
            }
            WordValue::Unknown { before, .. } => {
                word_paths.unknown = Unresolved::Anything;
                if self.dir_targets_truncated {
                    word_paths.unsearched = Unresolved::Anything;
                }
                let directory = extract_literal_directory(before);
                if !directory.is_empty() {
                    word_paths.containing_dirs =
                        self.resolve_within(directory, budget, &mut word_paths.unsearched);
                }
            }
        }
        if self.directories.may_be_elsewhere(value.known_start()) {
            word_paths.unsearched = Unresolved::Anything;
        }
        word_paths
    }

    /// A relative path may be anywhere if the directory of the command is unknown.
    fn unresolved_if_relative(&self, text: &str) -> Unresolved {
        if self.directories.may_be_anywhere && !text.starts_with('/') {
            Unresolved::Anything
        } else {
            Unresolved::Nothing
        }
    }

    fn add_path(&self, text: &str, budget: &mut SearchBudget, word_paths: &mut WordPaths) {
        let mut unsearched = Unresolved::Nothing;
        word_paths.paths.push(self.resolve_within(text, budget, &mut unsearched));
        word_paths.unsearched = word_paths.unsearched.max(unsearched);
    }

    fn add_glob(&self, glob: &str, budget: &mut SearchBudget, word_paths: &mut WordPaths) {
        let prefix = extract_literal_prefix(glob);
        let mut unsearched = Unresolved::Nothing;
        word_paths.containing_dirs = self.resolve_within(&prefix.to_string_lossy(), budget, &mut unsearched);
        if has_wildcard_in_directory(glob) {
            word_paths.unknown = word_paths.unknown.max(Unresolved::InKnownDirs);
        }
        let max_dirs = if glob.starts_with('/') { 1 } else { usize::MAX };
        for directory in self.directories.all().take(max_dirs) {
            if budget.paths == 0 || !budget.spend(LookupKind::Glob, 1) {
                unsearched = Unresolved::Anything;
                break;
            }
            let expansion = self.expand_glob(glob, directory);
            if !expansion.complete {
                // An entry that was not listed may be a link to anywhere.
                let anywhere = has_wildcard_in_directory(glob) || self.disk.context.fs.is_budget_exhausted();
                unsearched =
                    unsearched.max(if anywhere { Unresolved::Anything } else { Unresolved::InKnownDirs });
            }
            for path in &expansion.paths {
                self.add_path(&path.to_string_lossy(), budget, word_paths);
            }
        }
        word_paths.unsearched = word_paths.unsearched.max(unsearched);
    }

    /// Resolves a path; only lexically if the budget is exhausted.
    fn resolve_within(
        &self,
        text: &str,
        budget: &mut SearchBudget,
        unsearched: &mut Unresolved,
    ) -> Rc<[ResolvedPath]> {
        let count = if text.starts_with('/') { 1 } else { self.directories.all().count() };
        if budget.spend(LookupKind::Path, count) {
            return self.resolve(text);
        }
        *unsearched = Unresolved::Anything;
        let by_name = |directory: &std::path::Path| {
            let path = normalize_lexically(&directory.join(text));
            ResolvedPath { physical: path.clone(), lexical: path, hops: Vec::new(), via_proc: false }
        };
        self.directories.all().map(by_name).collect()
    }
}

/// Returns true if a path lies below an open file descriptor, which may be any directory.
fn is_below_descriptor(text: &str) -> bool {
    let inside = text.strip_prefix("/dev/fd/").or_else(|| {
        let rest = text.strip_prefix("/proc/")?;
        rest.split_once("/fd/").map(|(_, inside)| inside)
    });
    inside.is_some_and(|inside| inside.contains('/'))
}
