//! Shell commands: the text analysis of `shell` checked against rules, working directories and the disk.
//!
//! * `allow`: allow analysis of each simple command, with `blocking_paths` (paths outside the working directories),
//!   `directory_change` (`cd` together with git or writes) and `git_repository` (repositories that git may read);
//! * `deny`: deny and ask rules for command text, with `deny_paths` (those for files);
//! * `critical_removal`, `risky_write`: removals and protected paths that always require permission;
//! * `directories`: directories the command may be in; `dir_targets`: files that `cp` and its like write into a
//!   directory;
//! * `symlinks`: commands that move or follow symbolic links;
//! * `globs`: glob expansion on disk, and globs as program names;
//! * `word_paths`, `resolve`, `walk_cache`: paths of a word, path resolution, cached directory walks.

mod allow;
mod blocking_paths;
mod critical_removal;
mod deny;
mod deny_paths;
mod dir_targets;
mod directories;
mod directory_change;
mod git_repository;
mod globs;
mod resolve;
mod risky_write;
mod symlinks;
mod walk_cache;
mod word_paths;

use std::path::Path;
use std::rc::Rc;

use crate::decision_input::DecisionInput;
use crate::paths::PathContext;
use crate::rules::command_pattern::normalize_blanks;
use crate::shell::{self, CommandAnalysis, SimpleCommand, WordValue};
pub(crate) use allow::Approval;
pub(crate) use blocking_paths::BlockingPath;
use directories::PossibleDirs;
use globs::names::GlobOptions;
use globs::{GlobCache, GlobExpansion};
use resolve::ResolutionCache;
use symlinks::MovedLinks;
use walk_cache::WalkCache;

/// A shell command, its analysis, and the directories it may run in.
#[derive(Debug)]
pub(crate) struct ShellCommand<'a> {
    pub(crate) analysis: CommandAnalysis,
    /// The whole text with normalized blanks, for rules that name the whole command.
    normalized_text: String,
    directories: PossibleDirs,
    /// Simple commands after which paths may resolve differently.
    moved_links: MovedLinks,
    /// True if more files are written into directories than were recorded.
    dir_targets_truncated: bool,
    disk: DiskLookup<'a>,
}

/// Access to the disk while a command is decided, with caches for repeated lookups.
#[derive(Debug)]
struct DiskLookup<'a> {
    context: PathContext<'a>,
    glob_cache: GlobCache,
    resolution_cache: ResolutionCache,
    walk_cache: WalkCache,
}

impl<'a> ShellCommand<'a> {
    pub(crate) fn new(text: &str, input: &DecisionInput<'a>) -> Self {
        let context = input.context.path_context();
        let home = context.home.to_string_lossy();
        let analysis = shell::analyze(text, &shell::ShellContext { home: &home });
        let normalized_text = normalize_blanks(&analysis.text);
        let glob_cache = GlobCache::with_options(GlobOptions::from_analysis(&analysis));
        let directories = PossibleDirs::from_analysis(&analysis, &glob_cache, &context);
        let mut command = Self {
            analysis,
            normalized_text,
            directories,
            moved_links: MovedLinks::default(),
            dir_targets_truncated: false,
            disk: DiskLookup {
                context,
                glob_cache,
                resolution_cache: ResolutionCache::default(),
                walk_cache: WalkCache::default(),
            },
        };
        command.add_dir_targets();
        command.moved_links = command.find_moved_links();
        command.add_glob_programs();
        command
    }

    /// Expands a glob in a directory.
    fn expand_glob(&self, glob: &str, from: &Path) -> Rc<GlobExpansion> {
        self.disk.glob_cache.expand(glob, from, self.disk.context.fs)
    }
}

/// The current directory of a command.
static CURRENT_DIR: WordValue = WordValue::Literal(String::new());

/// Values that a simple command reads. One that lists or searches directories without naming any reads the current
/// directory.
fn read_operands(simple_command: &SimpleCommand) -> impl Iterator<Item = &WordValue> {
    let lists = simple_command.recursive || simple_command.program.as_deref() == Some("ls");
    let current = (lists && simple_command.reads.is_empty()).then_some(&CURRENT_DIR);
    simple_command.reads.iter().chain(current)
}

/// Extracts the directory before the first component with a wildcard or an unknown part.
fn extract_literal_directory(before: &str) -> &str {
    before.rfind('/').map_or("", |at| before.get(..=at).unwrap_or_default())
}

#[cfg(test)]
mod tests;
