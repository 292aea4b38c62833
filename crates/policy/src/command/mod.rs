//! Shell commands: the text analysis of `shell` checked against rules, working directories and the disk.
//!
//! * `allow`: allow analysis of each simple command, with `path_obstacles` (paths outside the working directories)
//!   and `git_repository` (repositories that git may read);
//! * `deny`: deny and ask rules for command text, with `deny_paths` (those for files);
//! * `critical_removal`, `dangerous_write`: removals and protected paths that always ask;
//! * `directories`: directories the command may be in; `dir_targets`: files that `cp` and its like write into a
//!   directory;
//! * `moved_links`, `symlinks`: commands that move or follow symbolic links;
//! * `glob_expansion`, `glob_names`, `glob_program`: globs on disk, and globs as program names;
//! * `word_paths`, `resolve`, `walk_cache`: paths of a word, path resolution, cached directory walks.

mod allow;
mod critical_removal;
mod dangerous_write;
mod deny;
mod deny_paths;
mod dir_targets;
mod directories;
mod git_repository;
mod glob_expansion;
mod glob_names;
mod glob_program;
mod moved_links;
mod path_obstacles;
mod resolve;
mod symlinks;
mod walk_cache;
mod word_paths;

use std::path::Path;
use std::rc::Rc;

use crate::decision_input::DecisionInput;
use crate::paths::PathContext;
use crate::rules::command_pattern::normalize_blanks;
use crate::shell::{self, Script, SimpleCommand, WordValue};
pub(crate) use allow::Approval;
use directories::PossibleDirs;
use glob_expansion::{GlobCache, GlobExpansion};
use glob_names::GlobOptions;
use moved_links::MovedLinks;
pub(crate) use path_obstacles::PathObstacle;
use resolve::ResolutionCache;
use walk_cache::WalkCache;

/// A shell command, its analysis, and the directories it may run in.
#[derive(Debug)]
pub(crate) struct ShellCommand<'a> {
    pub(crate) script: Script,
    /// The whole text with normalized blanks, for rules that name the whole command.
    normalized_text: String,
    directories: PossibleDirs,
    /// Simple commands after which paths may resolve differently.
    moved_links: MovedLinks,
    glob_cache: GlobCache,
    spelled: ResolutionCache,
    walked: WalkCache,
    /// True if more files are written into directories than were recorded.
    dir_targets_truncated: bool,
    path_context: PathContext<'a>,
}

impl<'a> ShellCommand<'a> {
    pub(crate) fn new(text: &str, case: &DecisionInput<'a>) -> Self {
        let around = case.context.path_context();
        let home = around.home.to_string_lossy();
        let script = shell::analyze(text, &shell::ShellContext { home: &home });
        let tidy_text = normalize_blanks(&script.text);
        let expansions = GlobCache::with_options(GlobOptions::from_script(&script));
        let directories = PossibleDirs::from_script(&script, &expansions, &around);
        let mut command = Self {
            script,
            normalized_text: tidy_text,
            directories,
            moved_links: MovedLinks::default(),
            glob_cache: expansions,
            spelled: ResolutionCache::default(),
            walked: WalkCache::default(),
            dir_targets_truncated: false,
            path_context: around,
        };
        command.add_dir_targets();
        command.moved_links = command.find_moved_links();
        command.add_glob_programs();
        command
    }

    /// Expands a glob in a directory.
    fn expand_glob(&self, glob: &str, from: &Path) -> Rc<GlobExpansion> {
        self.glob_cache.expand(glob, from, self.path_context.fs)
    }
}

/// The current directory of a command.
static CURRENT_DIR: WordValue = WordValue::Literal(String::new());

/// Values that a simple command reads. One that lists or searches directories without naming any reads the current
/// directory.
fn read_operands(part: &SimpleCommand) -> impl Iterator<Item = &WordValue> {
    let lists = part.recursive || part.program.as_deref() == Some("ls");
    let here = (lists && part.reads.is_empty()).then_some(&CURRENT_DIR);
    part.reads.iter().chain(here)
}

/// The directory before the first component with a wildcard or an unknown part.
fn literal_directory(before: &str) -> &str {
    before.rfind('/').map_or("", |at| before.get(..=at).unwrap_or_default())
}

#[cfg(test)]
mod tests;
