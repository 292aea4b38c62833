//! Finding command files and skills: in the person's configuration folder and in the project, from asked-for sources
//! only, and in plugins.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use whimbrel_wire::options::SettingSource;

use super::file::{CommandFile, Description, Owner};
use super::head::{self, Recipe};
use crate::files::{self, Kind};
use crate::ground::Ground;
use crate::ground::search::{self, Author, Found, Search, stem};
use crate::plugins::Plugins;
use crate::settings::Scope;

/// How many commands there may be.
const MOST: usize = 1_000;

/// The file that makes a folder a skill.
const SKILL: &str = "SKILL.md";

/// The command files of a session by name, and what the host should know about them.
pub(super) fn find(ground: &Ground, plugins: &Plugins) -> (Vec<Arc<CommandFile>>, Vec<String>) {
    let mut finds = Finds { search: Search::new(ground, "commands"), kept: BTreeMap::new() };
    for place in places(ground, plugins) {
        match place.holds {
            Holds::Commands => finds.commands(&place),
            Holds::Skills => finds.skills(&place),
        }
    }
    (finds.kept.into_values().map(Arc::new).collect(), finds.search.warnings)
}

/// A place where something is looked for.
struct Place {
    owner: Owner,
    holds: Holds,
    path: PathBuf,
}

impl Place {
    fn author(&self) -> Author<'static> {
        match self.owner {
            Owner::User => Author::Source(SettingSource::User),
            Owner::Project => Author::Source(SettingSource::Project),
            // The host asked for it by its path.
            Owner::Plugin(_) => Author::Host,
        }
    }
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

/// What was found so far.
struct Finds<'a> {
    search: Search<'a>,
    kept: BTreeMap<String, CommandFile>,
}

impl Finds<'_> {
    /// Commands in a folder, or one in a file.
    fn commands(&mut self, place: &Place) {
        let path = &place.path;
        let found = match (files::kind(path), stem(path)) {
            (Ok(Kind::Folder), _) => self.search.below(place.author(), path),
            (Ok(Kind::File(_)), Some(stem)) => vec![Found { path: path.clone(), parts: vec![stem] }],
            _ => Vec::new(),
        };
        for found in found {
            self.file(place, &found, None);
        }
    }

    /// Skills in the folders of a folder, or one that the folder itself is.
    fn skills(&mut self, place: &Place) {
        if !self.search.opens(place.author(), &place.path) {
            return;
        }
        if is_skill(&place.path) {
            return self.skill(place, &place.path);
        }
        for name in search::names(&place.path) {
            let folder = place.path.join(&name);
            if is_skill(&folder) && self.search.opens(place.author(), &folder) {
                self.skill(place, &folder);
            }
        }
    }

    fn skill(&mut self, place: &Place, folder: &Path) {
        let name = folder.file_name().map(|name| name.to_string_lossy().into_owned());
        if let Some(name) = name {
            let found = Found { path: folder.join(SKILL), parts: vec![name] };
            self.file(place, &found, Some(folder));
        }
    }

    fn file(&mut self, place: &Place, Found { path, parts }: &Found, folder: Option<&Path>) {
        let plugin = match &place.owner {
            Owner::Plugin(plugin) => Some(plugin.name.as_str()),
            Owner::User | Owner::Project => None,
        };
        let parts = parts.iter().map(String::as_str);
        let name = plugin.into_iter().chain(parts).collect::<Vec<_>>().join(":");
        if self.kept.contains_key(&name) {
            return;
        }
        let Some(real) = self.search.reached(place.author(), path) else { return };
        if let Some(why) = self.refusal(&name) {
            return self.search.warnings.push(format!("{} {why}", path.display()));
        }
        match head::read(&real) {
            Ok(recipe) => self.keep(place, real, name, folder, recipe),
            Err(warning) => self.search.warnings.push(warning),
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
        (self.kept.len() == MOST)
            .then(|| format!("and others are not used: there are more than {MOST} commands and skills."))
    }

    fn keep(&mut self, place: &Place, path: PathBuf, name: String, folder: Option<&Path>, recipe: Recipe) {
        let description = recipe.description();
        let callers = recipe.head.callers();
        if folder.is_some() && callers.has_model() && matches!(description, Description::Guessed(_)) {
            self.search.warnings.push(format!(
                "{}: the model is not told of this skill. Give it a description in its head.",
                path.display()
            ));
        }
        self.search.warnings.extend(recipe.flaw.clone());
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
            scope: match place.author() {
                Author::Source(source) => self.search.ground.scope(source, &path),
                Author::Within(_) | Author::Host => Scope::Person,
            },
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
        self.kept.insert(name, command);
    }
}

fn is_skill(folder: &Path) -> bool {
    !matches!(files::kind(&folder.join(SKILL)), Ok(Kind::Missing) | Err(_))
}

#[cfg(test)]
mod tests;
