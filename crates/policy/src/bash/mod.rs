//! Commands: what the shell's facts mean under the rules, in the working directories, on this disk.
//!
//! Rooms: `directories` (where the parts may run), `landing` (what is put into directories), `search` (deny and ask rules,
//! wide), `allow` (grants part by part, narrow) with `scope` (paths that stand in the way) and `shift` (links that move
//! while the command runs), `critical` (removals that are always asked), `danger` (protected paths), `expand` (globs and
//! walks on disk), `globbed` (globs as command names), `reach` (what a word may mean on disk), `links` (commands that go
//! through links), `repository` (which git repository is meant).

mod allow;
mod critical;
mod danger;
mod directories;
mod expand;
mod globbed;
mod landing;
mod links;
mod reach;
mod repository;
mod scope;
mod search;
mod shift;

pub(crate) use allow::Verdict;
pub(crate) use expand::{Below, look_below};
pub(crate) use scope::Obstacle;

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::command_pattern::tidy_blanks;
use crate::decide::Case;
use crate::paths::{Spellings, Surroundings, resolve_absolute};
use crate::shell::{self, Part, Script, Value};
use directories::Directories;
use expand::{Expansion, expand};
use shift::Shifts;

/// How many spellings of paths are remembered.
const MOST_SPELLED: usize = 20_000;

/// A command and where its parts may run.
#[derive(Debug)]
pub(crate) struct Command<'a> {
    pub(crate) script: Script,
    /// The whole text with single blanks, for rules that name the whole command.
    tidy_text: String,
    directories: Directories,
    /// Parts after which paths may lead elsewhere.
    shifts: Shifts,
    /// What globs became, each looked up once.
    expansions: RefCell<HashMap<(PathBuf, String), Rc<Expansion>>>,
    /// Where paths lead, each looked up once while there is room.
    spelled: RefCell<HashMap<String, Rc<[Spellings]>>>,
    /// Which paths have links at or below them, each looked at once.
    linked: RefCell<HashMap<PathBuf, bool>>,
    around: Surroundings<'a>,
}

impl<'a> Command<'a> {
    pub(crate) fn new(text: &str, case: &Case<'a>) -> Self {
        let around = case.facts.surroundings();
        let home = around.home.to_string_lossy();
        let script = shell::analyse(text, &shell::Surroundings { home: &home });
        let tidy_text = tidy_blanks(&script.text);
        let directories = Directories::of(&script, &around);
        let mut command = Self {
            script,
            tidy_text,
            directories,
            shifts: Shifts::default(),
            expansions: RefCell::default(),
            spelled: RefCell::default(),
            linked: RefCell::default(),
            around,
        };
        command.note_landings();
        command.shifts = command.find_shifts();
        command.follow_globs();
        command
    }

    /// What a glob becomes in a directory.
    fn expand(&self, glob: &str, from: &Path) -> Rc<Expansion> {
        let key = (if glob.starts_with('/') { PathBuf::new() } else { from.to_owned() }, glob.to_owned());
        let mut known = self.expansions.borrow_mut();
        let expansion = known.entry(key).or_insert_with(|| Rc::new(expand(glob, from, self.around.fs)));
        Rc::clone(expansion)
    }

    /// A path that a command names, from each directory that it may be in.
    fn spell(&self, text: &str) -> Rc<[Spellings]> {
        if let Some(known) = self.spelled.borrow().get(text) {
            return Rc::clone(known);
        }
        let spelled: Rc<[Spellings]> = self.spell_from(text, self.directories.all()).into();
        let mut known = self.spelled.borrow_mut();
        if known.len() * spelled.len() < MOST_SPELLED {
            known.insert(text.to_owned(), Rc::clone(&spelled));
        }
        spelled
    }

    /// A path from each directory that the shell itself may be in.
    fn spell_plainly(&self, text: &str) -> Vec<Spellings> {
        self.spell_from(text, self.directories.known.iter().map(PathBuf::as_path))
    }

    fn spell_from<'d>(&self, text: &str, from: impl Iterator<Item = &'d Path>) -> Vec<Spellings> {
        let path = Path::new(text);
        if path.is_absolute() {
            return vec![resolve_absolute(path, &self.around)];
        }
        let spelled = |at: &Path| {
            let around = Surroundings { cwd: at, ..self.around };
            resolve_absolute(&at.join(path), &around)
        };
        from.map(spelled).collect()
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
