//! Commands: what the shell's facts mean under the rules, in the working directories, on this disk.
//!
//! Rooms: `directories` (where the parts may run), `landing` (what is put into directories), `search` (deny and ask rules,
//! wide) with `path_search` (those about files), `allow` (grants part by part, narrow) with `scope` (paths that stand in
//! the way) and `shift` (links that move while the command runs), `critical` (removals that are always asked), `danger`
//! (protected paths), `expand` (globs on disk) with `names` (what they stand for), `globbed` (globs as command names),
//! `reach` (what a word may mean on disk), `spelled` (where paths lead), `walked` (what lies below directories), `links`
//! (commands that go through links), `repository` (which git repository is meant).

mod allow;
mod critical_removal;
mod dangerous_write;
mod directories;
mod glob_expansion;
mod glob_program;
mod dir_targets;
mod symlinks;
mod glob_names;
mod deny_paths;
mod word_paths;
mod git_repository;
mod path_obstacles;
mod deny;
mod moved_links;
mod resolve;
mod walk_cache;

pub(crate) use allow::Approval;
pub(crate) use path_obstacles::PathObstacle;

use std::path::Path;
use std::rc::Rc;

use crate::command_pattern::normalize_blanks;
use crate::decide::DecisionInput;
use crate::paths::PathContext;
use crate::shell::{self, SimpleCommand, Script, WordValue};
use directories::PossibleDirs;
use glob_expansion::{GlobExpansion, GlobCache};
use glob_names::GlobOptions;
use moved_links::MovedLinks;
use resolve::ResolutionCache;
use walk_cache::WalkCache;

/// A command and where its parts may run.
#[derive(Debug)]
pub(crate) struct ShellCommand<'a> {
    pub(crate) script: Script,
    /// The whole text with single blanks, for rules that name the whole command.
    normalized_text: String,
    directories: PossibleDirs,
    /// Parts after which paths may lead elsewhere.
    moved_links: MovedLinks,
    /// What globs became.
    glob_cache: GlobCache,
    /// Where paths lead.
    spelled: ResolutionCache,
    /// What was found below directories.
    walked: WalkCache,
    /// Whether more files are put into directories than were told apart.
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

    /// What a glob becomes in a directory.
    fn expand_glob(&self, glob: &str, from: &Path) -> Rc<GlobExpansion> {
        self.glob_cache.expand(glob, from, self.path_context.fs)
    }
}

/// The directory that a command is in.
static CURRENT_DIR: WordValue = WordValue::Literal(String::new());

/// What a part reads; a command that lists directories or looks below them without naming one does so where it is.
fn read_operands(part: &SimpleCommand) -> impl Iterator<Item = &WordValue> {
    let lists = part.recursive || part.program.as_deref() == Some("ls");
    let here = (lists && part.reads.is_empty()).then_some(&CURRENT_DIR);
    part.reads.iter().chain(here)
}

/// The directory that stands before the first component with a wildcard or an unknown stretch.
fn literal_directory(before: &str) -> &str {
    before.rfind('/').map_or("", |at| before.get(..=at).unwrap_or_default())
}

#[cfg(test)]
mod tests;
