//! Commands: what the shell's facts mean under the rules, in the working directories, on this disk.
//!
//! Rooms: `directories` (where the parts may run), `landing` (what is put into directories), `search` (deny and ask rules,
//! wide) with `path_search` (those about files), `allow` (grants part by part, narrow) with `scope` (paths that stand in
//! the way) and `shift` (links that move while the command runs), `critical` (removals that are always asked), `danger`
//! (protected paths), `expand` (globs on disk) with `names` (what they stand for), `globbed` (globs as command names),
//! `reach` (what a word may mean on disk), `spelled` (where paths lead), `walked` (what lies below directories), `links`
//! (commands that go through links), `repository` (which git repository is meant).

mod allow;
mod critical;
mod danger;
mod directories;
mod expand;
mod globbed;
mod landing;
mod links;
mod names;
mod path_search;
mod reach;
mod repository;
mod scope;
mod search;
mod shift;
mod spelled;
mod walked;

pub(crate) use allow::Verdict;
pub(crate) use scope::Obstacle;

use std::path::Path;
use std::rc::Rc;

use crate::command_pattern::tidy_blanks;
use crate::decide::Case;
use crate::paths::Surroundings;
use crate::shell::{self, Part, Script, Value};
use directories::Directories;
use expand::{Expansion, Expansions};
use names::Reading;
use shift::Shifts;
use spelled::Spelled;
use walked::Walked;

/// A command and where its parts may run.
#[derive(Debug)]
pub(crate) struct Command<'a> {
    pub(crate) script: Script,
    /// The whole text with single blanks, for rules that name the whole command.
    tidy_text: String,
    directories: Directories,
    /// Parts after which paths may lead elsewhere.
    shifts: Shifts,
    /// What globs became.
    expansions: Expansions,
    /// Where paths lead.
    spelled: Spelled,
    /// What was found below directories.
    walked: Walked,
    /// Whether more files are put into directories than were told apart.
    lands_uncounted: bool,
    around: Surroundings<'a>,
}

impl<'a> Command<'a> {
    pub(crate) fn new(text: &str, case: &Case<'a>) -> Self {
        let around = case.facts.surroundings();
        let home = around.home.to_string_lossy();
        let script = shell::analyse(text, &shell::Surroundings { home: &home });
        let tidy_text = tidy_blanks(&script.text);
        let expansions = Expansions::read_by(Reading::of(&script));
        let directories = Directories::of(&script, &expansions, &around);
        let mut command = Self {
            script,
            tidy_text,
            directories,
            shifts: Shifts::default(),
            expansions,
            spelled: Spelled::default(),
            walked: Walked::default(),
            lands_uncounted: false,
            around,
        };
        command.note_landings();
        command.shifts = command.find_shifts();
        command.follow_globs();
        command
    }

    /// What a glob becomes in a directory.
    fn expand(&self, glob: &str, from: &Path) -> Rc<Expansion> {
        self.expansions.expand(glob, from, self.around.fs)
    }
}

/// The directory that a command is in.
static HERE: Value = Value::Literal(String::new());

/// What a part reads; a command that lists directories or looks below them without naming one does so where it is.
fn reads(part: &Part) -> impl Iterator<Item = &Value> {
    let lists = part.recursive || part.program.as_deref() == Some("ls");
    let here = (lists && part.reads.is_empty()).then_some(&HERE);
    part.reads.iter().chain(here)
}

/// The directory that stands before the first component with a wildcard or an unknown stretch.
fn static_directory(before: &str) -> &str {
    before.rfind('/').map_or("", |at| before.get(..=at).unwrap_or_default())
}

#[cfg(test)]
mod tests;
