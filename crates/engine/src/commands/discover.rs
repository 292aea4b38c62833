//! Finds command files and skills in the user's config directory, the project (enabled sources only) and plugins.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use whimbrel_config::locations::ConfigLocations;
use whimbrel_config::locations::file_search::{self, FileAuthor, FileSearch, FoundFile, markdown_stem};
use whimbrel_config::plugins::Plugins;
use whimbrel_config::settings::LayerScope;
use whimbrel_os::files::{self, FileKind};
use whimbrel_wire::options::SettingSource;

use super::file::{CommandDescription, CommandFile, CommandOwner};
use super::parse::{self, ParsedCommand};

/// Maximum number of commands and skills.
const MAX_COMMANDS: usize = 1_000;

/// File that makes a directory a skill.
const SKILL_FILE: &str = "SKILL.md";

/// Finds the command files of a session, by name. Also returns warnings.
pub(super) fn find_commands(
    ground: &ConfigLocations,
    plugins: &Plugins,
) -> (Vec<Arc<CommandFile>>, Vec<String>) {
    let mut finds = Discovery { search: FileSearch::new(ground, "commands"), found: BTreeMap::new() };
    for place in command_locations(ground, plugins) {
        match place.contents {
            LocationContents::Commands => finds.add_commands(&place),
            LocationContents::Skills => finds.add_skills(&place),
        }
    }
    (finds.found.into_values().map(Arc::new).collect(), finds.search.warnings)
}

/// Location to search.
struct CommandLocation {
    owner: CommandOwner,
    contents: LocationContents,
    path: PathBuf,
}

impl CommandLocation {
    fn author(&self) -> FileAuthor<'static> {
        match self.owner {
            CommandOwner::User => FileAuthor::Source(SettingSource::User),
            CommandOwner::Project => FileAuthor::Source(SettingSource::Project),
            // The host named the plugin by its path.
            CommandOwner::Plugin(_) => FileAuthor::Host,
        }
    }
}

#[derive(Clone, Copy)]
enum LocationContents {
    Commands,
    Skills,
}

/// Locations to search, strongest first: of two commands with the same name the first wins. Skills come before
/// commands, the user's skills before the project's; among commands the nearest wins.
fn command_locations(ground: &ConfigLocations, plugins: &Plugins) -> Vec<CommandLocation> {
    let user = |holds, name: &str| {
        let config = ground.user_dir.as_ref().filter(|_| ground.includes(SettingSource::User));
        config.map(|config| CommandLocation {
            owner: CommandOwner::User,
            contents: holds,
            path: config.join(name),
        })
    };
    let project = |holds, name: &str| {
        let place = |path| CommandLocation { owner: CommandOwner::Project, contents: holds, path };
        ground.project_dirs(name).into_iter().map(place).collect::<Vec<_>>()
    };
    let mut places: Vec<CommandLocation> = user(LocationContents::Skills, "skills").into_iter().collect();
    places.extend(project(LocationContents::Skills, ".claude/skills"));
    places.extend(project(LocationContents::Commands, ".claude/commands"));
    places.extend(user(LocationContents::Commands, "commands"));
    for plugin in plugins.all() {
        let place = |holds| {
            move |path: &PathBuf| CommandLocation {
                owner: CommandOwner::Plugin(Arc::clone(plugin)),
                contents: holds,
                path: path.clone(),
            }
        };
        places.extend(plugin.commands.iter().map(place(LocationContents::Commands)));
        places.extend(plugin.skills.iter().map(place(LocationContents::Skills)));
    }
    places
}

struct Discovery<'a> {
    search: FileSearch<'a>,
    found: BTreeMap<String, CommandFile>,
}

impl Discovery<'_> {
    /// Adds the commands of a directory, or of a single file.
    fn add_commands(&mut self, place: &CommandLocation) {
        let path = &place.path;
        let found = match (files::file_kind(path), markdown_stem(path)) {
            (Ok(FileKind::Directory), _) => self.search.find_markdown(place.author(), path),
            (Ok(FileKind::File(_)), Some(stem)) => vec![FoundFile { path: path.clone(), parts: vec![stem] }],
            _ => Vec::new(),
        };
        for found in found {
            self.add_file(place, &found, None);
        }
    }

    /// Adds the skills in a directory, or the one that the directory itself is.
    fn add_skills(&mut self, place: &CommandLocation) {
        if !self.search.enter(place.author(), &place.path) {
            return;
        }
        if is_skill(&place.path) {
            return self.add_skill(place, &place.path);
        }
        for name in file_search::sorted_names(&place.path) {
            let folder = place.path.join(&name);
            if is_skill(&folder) && self.search.enter(place.author(), &folder) {
                self.add_skill(place, &folder);
            }
        }
    }

    fn add_skill(&mut self, place: &CommandLocation, folder: &Path) {
        let name = folder.file_name().map(|name| name.to_string_lossy().into_owned());
        if let Some(name) = name {
            let found = FoundFile { path: folder.join(SKILL_FILE), parts: vec![name] };
            self.add_file(place, &found, Some(folder));
        }
    }

    fn add_file(
        &mut self,
        place: &CommandLocation,
        FoundFile { path, parts }: &FoundFile,
        folder: Option<&Path>,
    ) {
        let plugin = match &place.owner {
            CommandOwner::Plugin(plugin) => Some(plugin.name.as_str()),
            CommandOwner::User | CommandOwner::Project => None,
        };
        let parts = parts.iter().map(String::as_str);
        let name = plugin.into_iter().chain(parts).collect::<Vec<_>>().join(":");
        if self.found.contains_key(&name) {
            return;
        }
        let Some(real) = self.search.resolve(place.author(), path) else { return };
        if let Some(why) = self.rejection(&name) {
            return self.search.warnings.push(format!("{} {why}", path.display()));
        }
        match parse::parse_file(&real) {
            Ok(recipe) => self.insert(place, real, name, folder, recipe),
            Err(warning) => self.search.warnings.push(warning),
        }
    }

    /// Why the name cannot be used.
    fn rejection(&self, name: &str) -> Option<String> {
        if name.contains(char::is_whitespace) {
            return Some("is no command: a name cannot have blanks. Rename it.".into());
        }
        if super::BUILTINS.iter().any(|command| command.name == name) {
            return Some(format!("is not used: /{name} is a command of the engine. Rename it."));
        }
        (self.found.len() == MAX_COMMANDS).then(|| {
            format!("and others are not used: there are more than {MAX_COMMANDS} commands and skills.")
        })
    }

    fn insert(
        &mut self,
        place: &CommandLocation,
        path: PathBuf,
        name: String,
        folder: Option<&Path>,
        recipe: ParsedCommand,
    ) {
        let description = recipe.description();
        let callers = recipe.front_matter.callers();
        if folder.is_some()
            && callers.includes_model()
            && matches!(description, CommandDescription::FirstLine(_))
        {
            self.search.warnings.push(format!(
                "{}: the model is not told of this skill. Give it a description in its head.",
                path.display()
            ));
        }
        self.search.warnings.extend(recipe.warning.clone());
        let head = recipe.front_matter;
        let grants = head.grants_permissions();
        let alias = match (folder, name.rsplit_once(':')) {
            (Some(_), Some((_, bare))) => Some(bare.to_owned()),
            (Some(_), None) => head.name.map(|name| name.trim().to_owned()),
            (None, _) => None,
        };
        let command = CommandFile {
            alias: alias
                .filter(|alias| *alias != name && !alias.is_empty() && !alias.contains(char::is_whitespace)),
            scope: match place.author() {
                FileAuthor::Source(source) => self.search.locations.scope(source, &path),
                FileAuthor::Within(_) | FileAuthor::Host => LayerScope::User,
            },
            path,
            skill_dir: folder.map(Into::into),
            owner: place.owner.clone(),
            description,
            argument_hint: head.argument_hint.unwrap_or_default(),
            callers,
            grants_permissions: grants,
            warning: recipe.warning,
            name: name.clone(),
        };
        self.found.insert(name, command);
    }
}

fn is_skill(folder: &Path) -> bool {
    !matches!(files::file_kind(&folder.join(SKILL_FILE)), Ok(FileKind::Missing) | Err(_))
}

#[cfg(test)]
mod tests;
