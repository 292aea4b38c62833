//! Finding command files and skills: in the person's configuration folder and in the project, from asked-for sources
//! only, and in plugins.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use whimbrel_wire::options::SettingSource;

use super::file::{CommandFile, Description, Owner};
use super::head::{self, Recipe};
use crate::files::{self, Kind};
use crate::ground::Ground;
use crate::plugins::Plugins;
use crate::settings::Scope;

/// How many commands there may be.
const MOST: usize = 1_000;

/// How many names of one folder are looked at.
const MOST_NAMES: usize = 10_000;

/// How deep folders may lie in each other.
const DEEPEST: usize = 8;

/// The file that makes a folder a skill.
const SKILL: &str = "SKILL.md";

/// The command files of a session by name, and what the host should know about them.
pub(super) fn find(ground: &Ground, plugins: &Plugins) -> (Vec<Arc<CommandFile>>, Vec<String>) {
    let mut search = Search { ground, found: BTreeMap::new(), warnings: Vec::new(), visited: HashSet::new() };
    for place in places(ground, plugins) {
        match place.holds {
            Holds::Commands => search.commands(&place),
            Holds::Skills => search.skills(&place),
        }
    }
    (search.found.into_values().map(Arc::new).collect(), search.warnings)
}

/// A place where something is looked for.
struct Place {
    owner: Owner,
    holds: Holds,
    path: PathBuf,
}

/// What lies in a place.
#[derive(Clone, Copy)]
enum Holds {
    Commands,
    Skills,
}

/// Where commands and skills are looked for, the strongest first: of two with one name the first counts. A skill comes
/// before a command, the person's skills before the project's, and of commands the nearest.
fn places(ground: &Ground, plugins: &Plugins) -> Vec<Place> {
    let user = |holds, name: &str| {
        let config = ground.config.as_ref().filter(|_| ground.asks(SettingSource::User));
        config.map(|config| Place { owner: Owner::User, holds, path: config.join(name) })
    };
    let project = |holds, name: &str| {
        let place = |path| Place { owner: Owner::Project, holds, path };
        ground.project_folders(name).into_iter().map(place).collect::<Vec<_>>()
    };
    let mut places: Vec<Place> = user(Holds::Skills, "skills").into_iter().collect();
    places.extend(project(Holds::Skills, ".claude/skills"));
    places.extend(project(Holds::Commands, ".claude/commands"));
    places.extend(user(Holds::Commands, "commands"));
    for plugin in plugins.all() {
        let place = |holds| {
            move |path: &PathBuf| Place {
                owner: Owner::Plugin(Arc::clone(plugin)),
                holds,
                path: path.clone(),
            }
        };
        places.extend(plugin.commands.iter().map(place(Holds::Commands)));
        places.extend(plugin.skills.iter().map(place(Holds::Skills)));
    }
    places
}

struct Search<'a> {
    ground: &'a Ground,
    found: BTreeMap<String, CommandFile>,
    warnings: Vec<String>,
    /// Folders that were looked at, links followed: a link may lead in a circle.
    visited: HashSet<PathBuf>,
}

impl Search<'_> {
    /// Commands in a folder, or one in a file.
    fn commands(&mut self, place: &Place) {
        match (files::kind(&place.path), stem(&place.path)) {
            (Ok(Kind::Folder), _) => self.folder(place, &place.path, &[]),
            (Ok(Kind::File(_)), Some(stem)) => self.file(place, &place.path, &[stem], None),
            _ => {}
        }
    }

    fn folder(&mut self, place: &Place, folder: &Path, above: &[String]) {
        if above.len() > DEEPEST || !self.opens(place, folder) {
            return;
        }
        for name in sorted(folder) {
            let path = folder.join(&name);
            let parts = |last: &str| [above, &[last.to_owned()]].concat();
            match (stem(&path), files::kind(&path)) {
                (None, Ok(Kind::Folder)) if !name.ends_with(".md") => {
                    self.folder(place, &path, &parts(&name));
                }
                (Some(stem), Ok(_)) => self.file(place, &path, &parts(&stem), None),
                _ => {}
            }
        }
    }

    /// Skills in the folders of a folder, or one that the folder itself is.
    fn skills(&mut self, place: &Place) {
        if !self.opens(place, &place.path) {
            return;
        }
        if is_skill(&place.path) {
            return self.skill(place, &place.path);
        }
        for name in sorted(&place.path) {
            let folder = place.path.join(&name);
            if is_skill(&folder) && self.opens(place, &folder) {
                self.skill(place, &folder);
            }
        }
    }

    fn skill(&mut self, place: &Place, folder: &Path) {
        let name = folder.file_name().map(|name| name.to_string_lossy().into_owned());
        if let Some(name) = name {
            self.file(place, &folder.join(SKILL), &[name], Some(folder));
        }
    }

    fn file(&mut self, place: &Place, path: &Path, parts: &[String], folder: Option<&Path>) {
        let plugin = match &place.owner {
            Owner::Plugin(plugin) => Some(plugin.name.as_str()),
            Owner::User | Owner::Project => None,
        };
        let parts = parts.iter().map(String::as_str);
        let name = plugin.into_iter().chain(parts).collect::<Vec<_>>().join(":");
        let Some(real) = files::real_path(path) else { return };
        if self.found.contains_key(&name) || !self.reaches(place, path, &real) {
            return;
        }
        if let Some(why) = self.refusal(&name) {
            return self.warnings.push(format!("{} {why}", path.display()));
        }
        match head::read(&real) {
            Ok(recipe) => self.keep(place, real, name, folder, recipe),
            Err(warning) => self.warnings.push(warning),
        }
    }

    /// Why there is no command with this name.
    fn refusal(&self, name: &str) -> Option<String> {
        if name.contains(char::is_whitespace) {
            return Some("is no command: a name cannot have blanks. Rename it.".into());
        }
        if super::ALL.iter().any(|command| command.name == name) {
            return Some(format!("is not used: /{name} is a command of the engine. Rename it."));
        }
        (self.found.len() == MOST)
            .then(|| format!("and others are not used: there are more than {MOST} commands and skills."))
    }

    fn keep(&mut self, place: &Place, path: PathBuf, name: String, folder: Option<&Path>, recipe: Recipe) {
        let description = recipe.description();
        let callers = recipe.head.callers();
        if folder.is_some() && callers.has_model() && matches!(description, Description::Guessed(_)) {
            self.warnings.push(format!(
                "{}: the model is not told of this skill. Give it a description in its head.",
                path.display()
            ));
        }
        self.warnings.extend(recipe.flaw.clone());
        let head = recipe.head;
        let grants = head.grants();
        let alias = match (folder, name.rsplit_once(':')) {
            (Some(_), Some((_, bare))) => Some(bare.to_owned()),
            (Some(_), None) => head.name.map(|name| name.trim().to_owned()),
            (None, _) => None,
        };
        let command = CommandFile {
            alias: alias
                .filter(|alias| *alias != name && !alias.is_empty() && !alias.contains(char::is_whitespace)),
            scope: self.scope(place, &path),
            path,
            folder: folder.map(Into::into),
            owner: place.owner.clone(),
            description,
            argument_hint: head.argument_hint.unwrap_or_default(),
            callers,
            grants,
            flaw: recipe.flaw,
            name: name.clone(),
        };
        self.found.insert(name, command);
    }

    /// Whether a folder can be looked at, and has not been yet.
    fn opens(&mut self, place: &Place, folder: &Path) -> bool {
        let Some(real) = files::real_path(folder) else { return false };
        let is_folder = matches!(files::kind(&real), Ok(Kind::Folder));
        is_folder && self.reaches(place, folder, &real) && self.visited.insert(real)
    }

    fn scope(&self, place: &Place, path: &Path) -> Scope {
        match place.owner {
            Owner::User => self.ground.scope(SettingSource::User, path),
            Owner::Project => self.ground.scope(SettingSource::Project, path),
            // The host asked for it by its path.
            Owner::Plugin(_) => Scope::Person,
        }
    }

    /// Whether a file or folder may be looked at, wherever links lead; if not, that is said.
    fn reaches(&mut self, place: &Place, path: &Path, real: &Path) -> bool {
        let reaches = self.ground.reaches(self.scope(place, path), self.ground.top(), real)
            || real.starts_with(&self.ground.project);
        if !reaches {
            self.warnings.push(format!(
                "{} leads to {}, which is not in the project: no commands are taken from there. Trust the project, or put a file in its place.",
                path.display(),
                real.display()
            ));
        }
        reaches
    }
}

/// The name of a command by its file.
fn stem(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    name.strip_suffix(".md").filter(|stem| !stem.is_empty()).map(str::to_owned)
}

fn is_skill(folder: &Path) -> bool {
    !matches!(files::kind(&folder.join(SKILL)), Ok(Kind::Missing) | Err(_))
}

fn sorted(folder: &Path) -> Vec<String> {
    let mut names = files::names(folder, MOST_NAMES);
    names.sort();
    names
}

#[cfg(test)]
mod tests;
