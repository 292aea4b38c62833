//! Which instruction files there may be, and in which order: from what is said most generally to what is nearest.

use std::path::{Path, PathBuf};

use whimbrel_wire::options::SettingSource;

use super::Kind;
use crate::files;
use crate::ground::Ground;
use crate::settings::Scope;

/// The files in a folder that are the project's. Where two differ, what is said last and for this engine counts.
const PROJECT: [&str; 3] = ["AGENTS.md", "CLAUDE.md", ".claude/CLAUDE.md"];

/// The file in a folder that is the person's own, for this project.
const LOCAL: &str = "CLAUDE.local.md";

/// The files of the person, in the configuration folder.
const USER: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];

/// A file that may be there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) path: PathBuf,
    /// Where that really is, if that is known already.
    pub(super) real: Option<PathBuf>,
    pub(super) kind: Kind,
    pub(super) scope: Scope,
    /// How far it may reach if it came with an untrusted project.
    pub(super) within: PathBuf,
}

/// The files that a session begins with.
pub(super) fn at_start(ground: &Ground, managed: &[PathBuf]) -> Vec<Place> {
    let mut places: Vec<Place> =
        managed.iter().map(|path| place(path.clone(), Kind::Managed, Scope::Person, path)).collect();
    if let (Some(config), true) = (&ground.config, ground.asks(SettingSource::User)) {
        places.extend(USER.map(|name| place(config.join(name), Kind::User, Scope::Person, config)));
    }
    let other = other_checkout(&ground.root);
    // The root of the whole disk belongs to no project.
    let mut folders: Vec<&Path> =
        ground.root.ancestors().filter(|folder| folder.parent().is_some()).collect();
    folders.reverse();
    for folder in folders {
        let same_project = other.as_ref().is_some_and(|other| other.holds(folder));
        let found = in_folder(ground, folder, Folder::MayBeLinked);
        places.extend(found.filter(|place| !same_project || place.kind != Kind::Project));
    }
    places
}

/// The files between the folder of the session and a file below it.
pub(super) fn above(ground: &Ground, file: &Path) -> Vec<Place> {
    let mut folders: Vec<&Path> =
        file.ancestors().skip(1).take_while(|folder| *folder != ground.root).collect();
    if !file.starts_with(&ground.root) {
        return Vec::new();
    }
    folders.reverse();
    let config = ground.config.as_ref().and_then(|config| files::real_path(config));
    let folder = Folder::Real { config: config.as_deref() };
    folders.into_iter().flat_map(|path| in_folder(ground, path, folder)).collect()
}

/// What is known of a folder.
#[derive(Debug, Clone, Copy)]
enum Folder<'a> {
    /// There may be links on the way to it.
    MayBeLinked,
    /// There are none, and the person's configuration really lies here. To follow every path from the top anew would take
    /// very long in deep folders.
    Real { config: Option<&'a Path> },
}

impl Folder<'_> {
    /// Where a file in it really is, if that is known without following its whole path.
    fn place_of(self, path: &Path) -> Option<PathBuf> {
        let is_linked = |path: &Path| files::link_target(path).is_some();
        let hidden = path.parent().filter(|folder| folder.ends_with(".claude"));
        match self {
            Self::Real { .. } if !is_linked(path) && !hidden.is_some_and(is_linked) => Some(path.to_owned()),
            Self::Real { .. } => files::real_path(path),
            Self::MayBeLinked => None,
        }
    }

    fn is_configuration(self, ground: &Ground, path: &Path, real: Option<&Path>) -> bool {
        match (self, real) {
            (Self::Real { config }, Some(real)) => config.is_some_and(|config| real.starts_with(config)),
            (Self::Real { .. }, None) | (Self::MayBeLinked, _) => ground.is_configuration(path),
        }
    }
}

/// The files that are there. Most folders have none, and are done with after a look at each name.
fn in_folder<'a>(
    ground: &'a Ground,
    folder: &'a Path,
    known: Folder<'a>,
) -> impl Iterator<Item = Place> + 'a {
    // A file above the project may reach as far as its own folder.
    let top = ground.top();
    let within = if folder.starts_with(top) { top } else { folder };
    let project = PROJECT.iter().map(|name| (*name, Kind::Project, SettingSource::Project));
    let names = project.chain([(LOCAL, Kind::Local, SettingSource::Local)]);
    names.filter(|(.., source)| ground.asks(*source)).filter_map(move |(name, kind, source)| {
        let path = folder.join(name);
        let is_there = !matches!(files::kind(&path), Ok(files::Kind::Missing));
        if !is_there {
            return None;
        }
        let real = known.place_of(&path);
        if known.is_configuration(ground, &path, real.as_deref()) {
            return None;
        }
        let scope = ground.scope(source, &path);
        Some(Place { real, ..place(path, kind, scope, within) })
    })
}

fn place(path: PathBuf, kind: Kind, scope: Scope, within: &Path) -> Place {
    Place { path, real: None, kind, scope, within: within.to_owned() }
}

/// A checkout of the same repository that lies around the one we work in.
struct OtherCheckout {
    root: PathBuf,
    ours: PathBuf,
}

impl OtherCheckout {
    /// Whether a folder belongs to it and not to ours. Its shared files are ours in another version; what a person wrote
    /// there for himself is nowhere else.
    fn holds(&self, folder: &Path) -> bool {
        folder.starts_with(&self.root) && !folder.starts_with(&self.ours)
    }
}

/// In a git worktree, the main checkout if the worktree lies inside it.
fn other_checkout(root: &Path) -> Option<OtherCheckout> {
    let ours = root
        .ancestors()
        .find(|folder| !matches!(files::kind(&folder.join(".git")), Ok(files::Kind::Missing)))?;
    let (bytes, _) = files::read(&ours.join(".git"), 64 * 1024).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    let git = files::real_path(&ours.join(text.strip_prefix("gitdir:")?.trim()))?;
    // <main>/.git/worktrees/<name>
    let worktrees = git.parent().filter(|folder| folder.ends_with(".git/worktrees"))?;
    let main = worktrees.parent()?.parent()?;
    ours.starts_with(main).then(|| OtherCheckout { root: main.to_owned(), ours: ours.to_owned() })
}
