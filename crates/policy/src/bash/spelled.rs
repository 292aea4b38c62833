//! Where the paths of a command lead. Many paths lie in few directories, so each directory is followed once.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::Command;
use crate::fs::EntryKind;
use crate::paths::{Spellings, Surroundings, lexical, resolve_absolute};

/// How many spellings of paths are remembered.
const MOST_SPELLED: usize = 20_000;

/// What was looked up.
#[derive(Debug, Default)]
pub(super) struct Spelled {
    /// Where paths lead, while there is room.
    texts: RefCell<HashMap<String, Rc<[Spellings]>>>,
    /// What the directories are like that paths lie in.
    directories: RefCell<HashMap<OsString, Way>>,
}

/// What is on the way to a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Nothing but directories.
    Plain,
    /// There is no such directory, and no link on the way to where it would be.
    Missing,
    /// Links, or a place that each process sees differently.
    Winding,
}

impl Command<'_> {
    /// A path that a command names, from each directory that it may be in.
    pub(super) fn spell(&self, text: &str) -> Rc<[Spellings]> {
        if let Some(known) = self.spelled.texts.borrow().get(text) {
            return Rc::clone(known);
        }
        let spelled: Rc<[Spellings]> = self.spell_from(text, self.directories.all()).into();
        let mut known = self.spelled.texts.borrow_mut();
        if known.len() * spelled.len() < MOST_SPELLED {
            known.insert(text.to_owned(), Rc::clone(&spelled));
        }
        spelled
    }

    /// A path from each directory that the shell itself may be in.
    pub(super) fn spell_plainly(&self, text: &str) -> Rc<[Spellings]> {
        if text.starts_with('/') || self.directories.elsewhere.is_empty() {
            return self.spell(text);
        }
        self.spell_from(text, self.directories.known.iter().map(PathBuf::as_path)).into()
    }

    fn spell_from<'d>(&self, text: &str, from: impl Iterator<Item = &'d Path>) -> Vec<Spellings> {
        let path = Path::new(text);
        if path.is_absolute() {
            return vec![self.follow(path, self.around.cwd)];
        }
        from.map(|at| self.follow(&at.join(path), at)).collect()
    }

    /// Where an absolute path leads for a command that is in some directory.
    fn follow(&self, path: &Path, at: &Path) -> Spellings {
        let around = Surroundings { cwd: at, ..self.around };
        match split(path) {
            Some((directory, path)) if self.leads_plainly(path, directory, &around) => Spellings {
                lexical: path.to_owned(),
                hops: Vec::new(),
                physical: path.to_owned(),
                through_process: false,
            },
            _ => resolve_absolute(path, &around),
        }
    }

    /// Whether a path lies where it says.
    fn leads_plainly(&self, path: &Path, directory: &Path, around: &Surroundings<'_>) -> bool {
        let known = self.spelled.directories.borrow().get(directory.as_os_str()).copied();
        let way = known.unwrap_or_else(|| {
            let way = way_to(directory, around);
            self.spelled.directories.borrow_mut().insert(directory.as_os_str().to_owned(), way);
            way
        });
        match way {
            Way::Plain => around.fs.lstat(path) != Some(EntryKind::Link),
            Way::Missing => true,
            Way::Winding => false,
        }
    }
}

/// The directory that a path lies in, and the path without a slash at its end, if there is nothing in it but names.
fn split(path: &Path) -> Option<(&Path, &Path)> {
    let text = path.to_str()?.trim_end_matches('/');
    let named = text.strip_prefix('/')?.split('/').all(|name| !matches!(name, "" | "." | ".."));
    // What processes see of themselves is not for us to remember.
    let own = text.starts_with("/proc/") || text.starts_with("/dev/");
    let (directory, _) =
        text.rsplit_once('/').filter(|(directory, _)| named && !own && !directory.is_empty())?;
    Some((Path::new(directory), Path::new(text)))
}

fn way_to(directory: &Path, around: &Surroundings<'_>) -> Way {
    let spelled = resolve_absolute(directory, around);
    if spelled.is_linked() || spelled.through_process || !spelled.hops.is_empty() {
        return Way::Winding;
    }
    debug_assert_eq!(spelled.lexical, lexical(directory));
    match around.fs.lstat(directory) {
        Some(EntryKind::Directory) => Way::Plain,
        None => Way::Missing,
        Some(EntryKind::File | EntryKind::Link | EntryKind::Special) => Way::Winding,
    }
}
