//! Gathering instruction files: each once, with what they import, within a limit.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::places::Place;
use super::read::{self, Found, Text};
use super::{Kind, Loaded, Reason};
use crate::context::mentions;
use crate::files;
use crate::ground::Ground;
use crate::settings::Scope;

/// How many imports may follow each other.
const DEEPEST: usize = 5;

/// How much all files together may tell the model.
const MOST: usize = 256 * 1024;

/// A file with its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) file: Loaded,
    pub(super) text: String,
    /// How many bytes the whole file has, if that is more than the text.
    pub(super) cut_from: Option<u64>,
}

/// Gathers files.
pub(super) struct Gatherer<'a> {
    ground: &'a Ground,
    home: Option<&'a Path>,
    /// The files that the model knows already, links followed.
    known: &'a mut HashSet<PathBuf>,
    /// How much room is left.
    room: usize,
    pub(super) told: Vec<Told>,
    pub(super) warnings: Vec<String>,
}

/// How a file was come by.
struct Way<'a> {
    reason: Reason,
    /// The file that made it matter.
    trigger: Option<&'a Path>,
    /// The files that import each other on the way to it, the last one last.
    parents: Vec<PathBuf>,
}

impl<'a> Gatherer<'a> {
    /// Gathers on a ground, given what the model knows already and how much it was told.
    pub(super) fn new(
        ground: &'a Ground,
        home: Option<&'a Path>,
        known: &'a mut HashSet<PathBuf>,
        so_far: usize,
    ) -> Self {
        Self {
            ground,
            home,
            known,
            room: MOST.saturating_sub(so_far),
            told: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// Takes the file at a place, if there is one, and what it imports.
    pub(super) fn take(&mut self, place: &Place, reason: Reason, trigger: Option<&Path>) {
        let Some(real) = place.real.clone().or_else(|| read::real(&place.path)) else { return };
        if self.is_a_strangers(place, &real) {
            return self.unread(place, "it lies above the project and belongs to another user");
        }
        self.take_real(place, &real, &Way { reason, trigger, parents: Vec::new() });
    }

    fn take_real(&mut self, place: &Place, real: &Path, way: &Way<'_>) {
        if self.known.contains(real) {
            return;
        }
        let shown = place.path.display();
        if !self.ground.reaches(place.scope, &place.within, real) {
            self.warnings.push(match way.parents.last() {
                Some(parent) => format!("{} imports {shown}, which is not in the project: it is not read. Trust the project, or import it from an instruction file of your own.", parent.display()),
                None => format!("{shown} is a link to {}, which is not in the project: it is not read. Trust the project, or put a file in its place.", real.display()),
            });
            return;
        }
        let Text { text, cut_from } = match read::read(real) {
            Found::Text(text) => text,
            Found::Nothing => return,
            Found::Folder => return self.unread(place, "it is a folder"),
            Found::Unreadable(why) => return self.unread(place, &why),
        };
        self.known.insert(real.to_owned());
        if text.is_empty() || self.told.iter().any(|told| told.text == text) {
            return;
        }
        let Some(room) = self.room.checked_sub(text.len()) else {
            self.warnings.push(format!("{shown} is left out: the instruction files have more than {MOST} bytes together. Shorten them."));
            return;
        };
        self.room = room;
        if let Some(size) = cut_from {
            self.warnings.push(format!("{shown} is too long for an instruction file: of its {size} bytes only the first {} are used. Shorten it, or move parts to files that are read when needed.", read::LONGEST));
        }
        let file = Loaded {
            path: place.path.clone(),
            kind: place.kind,
            reason: way.reason,
            trigger: way.trigger.map(Path::to_owned),
            parent: way.parents.last().cloned(),
            bytes: text.len(),
        };
        let (imports, more) = mentions::find(&text);
        if more {
            self.warnings.push(format!("{shown} imports more than {} files: those after that are not read. Join some of them, or let one import the others.", mentions::MOST));
        }
        self.told.push(Told { file, text, cut_from });
        for mention in imports {
            self.import(place, &mention, way);
        }
    }

    /// Takes the file that a mention in the file at `place` means, if it means one.
    fn import(&mut self, place: &Place, mention: &mentions::Mention, way: &Way<'_>) {
        let readings = mention.readings().map(|written| self.resolve(&place.path, written));
        let Some((path, real)) = readings.flatten().find_map(|path| Some((path.clone(), read::real(&path)?)))
        else {
            // A name with an @ before it is more often a person or a package.
            if mention.readings().any(|written| written.ends_with(".md")) {
                self.warnings.push(format!(
                    "{} imports {}, which does not exist.",
                    place.path.display(),
                    mention.path
                ));
            }
            return;
        };
        let named = path.extension().is_some_and(|end| end == "md");
        if !named && matches!(files::kind(&real), Ok(files::Kind::Folder)) {
            return;
        }
        let mut parents = way.parents.clone();
        parents.push(place.path.clone());
        if parents.len() > DEEPEST {
            if !self.known.contains(&real) {
                self.warnings
                    .push(format!("{} is not read: it is more than {DEEPEST} imports deep.", path.display()));
            }
            return;
        }
        let place = Place { path, real: None, ..place.clone() };
        self.take_real(&place, &real, &Way { reason: Reason::Include, trigger: way.trigger, parents });
    }

    /// The path that an import means: from the folder of the file that it stands in, or from home.
    fn resolve(&self, file: &Path, written: &str) -> Option<PathBuf> {
        let path = match written.strip_prefix("~/") {
            Some(rest) => self.home?.join(rest),
            None => file.parent()?.join(written),
        };
        Some(files::tidy(&path))
    }

    /// Whether a file above the project was put there by another user: folders like `/tmp` are everybody's.
    fn is_a_strangers(&self, place: &Place, real: &Path) -> bool {
        let Ground { root, .. } = self.ground;
        let ours = [Some(nix::unistd::Uid::effective().as_raw()), Some(0), files::owner(root)];
        matches!(place.kind, Kind::Project | Kind::Local)
            && !place.path.starts_with(self.ground.top())
            && !ours.contains(&files::owner(real))
    }

    fn unread(&mut self, place: &Place, why: &str) {
        let who = if place.scope == Scope::Person { "your" } else { "the project's" };
        self.warnings.push(format!(
            "{} cannot be read as one of {who} instruction files: {why}.",
            place.path.display()
        ));
    }
}
