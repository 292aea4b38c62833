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
use super::parse_file::{self, ParsedCommand};

/// Maximum number of commands and skills.
const MAX_COMMANDS: usize = 1_000;

/// File that makes a directory a skill.
const SKILL_FILE: &str = "SKILL.md";

/// Finds the command files of a session, by name. Also returns warnings.
pub(super) fn find_commands(
    locations: &ConfigLocations,
    plugins: &Plugins,
) -> (Vec<Arc<CommandFile>>, Vec<String>) {
    let mut discovery = Discovery { search: FileSearch::new(locations, "commands"), found: BTreeMap::new() };
    for location in command_locations(locations, plugins) {
        match location.contents {
            LocationContents::Commands => discovery.add_commands(&location),
            LocationContents::Skills => discovery.add_skills(&location),
        }
    }
    (discovery.found.into_values().map(Arc::new).collect(), discovery.search.warnings)
}

/// Location to search.
struct CommandLocation {
    owner: CommandOwner,
    contents: LocationContents,
    path: PathBuf,
    /// Directory that the host has added, if the location is in one.
    added_dir: Option<PathBuf>,
    /// The host has named the location itself.
    is_named_by_host: bool,
}

impl CommandLocation {
    fn author(&self) -> FileAuthor<'_> {
        match self.owner {
            _ if self.is_named_by_host => FileAuthor::Host,
            _ if let Some(dir) = &self.added_dir => FileAuthor::Within(dir),
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
/// commands, the user's skills before the project's; among commands the nearest wins. Skill directories that the host has
/// named take the place of both.
fn command_locations(locations: &ConfigLocations, plugins: &Plugins) -> Vec<CommandLocation> {
    let user = |contents, name: &str| {
        let config = locations.user_dir.as_ref().filter(|_| locations.includes(SettingSource::User));
        config.map(|config| {
            let path = config.join(name);
            CommandLocation {
                owner: CommandOwner::User,
                contents,
                path,
                added_dir: None,
                is_named_by_host: false,
            }
        })
    };
    let project = |contents, name: &str| {
        let location = |path| CommandLocation {
            owner: CommandOwner::Project,
            contents,
            path,
            added_dir: None,
            is_named_by_host: false,
        };
        locations.project_dirs(name).into_iter().map(location).collect::<Vec<_>>()
    };
    let named = |path: &PathBuf| CommandLocation {
        owner: CommandOwner::User,
        contents: LocationContents::Skills,
        path: path.clone(),
        added_dir: None,
        is_named_by_host: true,
    };
    let mut command_locations: Vec<CommandLocation> = locations.named_skill_dirs.iter().map(named).collect();
    if command_locations.is_empty() {
        command_locations.extend(user(LocationContents::Skills, "skills"));
        command_locations.extend(project(LocationContents::Skills, ".claude/skills"));
    }
    command_locations.extend(project(LocationContents::Commands, ".claude/commands"));
    command_locations.extend(user(LocationContents::Commands, "commands"));
    command_locations.extend(added_locations(locations));
    for plugin in plugins.all() {
        let location = |contents| {
            move |path: &PathBuf| CommandLocation {
                owner: CommandOwner::Plugin(Arc::clone(plugin)),
                contents,
                path: path.clone(),
                added_dir: None,
                is_named_by_host: false,
            }
        };
        command_locations.extend(plugin.commands.iter().map(location(LocationContents::Commands)));
        command_locations.extend(plugin.skills.iter().map(location(LocationContents::Skills)));
    }
    command_locations
}

/// Locations in directories that the host has added, which rank behind those of the project.
fn added_locations(locations: &ConfigLocations) -> Vec<CommandLocation> {
    if !locations.includes(SettingSource::Project) {
        return Vec::new();
    }
    let contents =
        [(LocationContents::Skills, ".claude/skills"), (LocationContents::Commands, ".claude/commands")];
    let dirs = locations.skill_dirs.to_vec().into_iter();
    let in_dir = |dir: PathBuf| {
        contents.map(|(contents, name)| CommandLocation {
            owner: CommandOwner::Project,
            contents,
            path: dir.join(name),
            added_dir: Some(dir.clone()),
            is_named_by_host: false,
        })
    };
    dirs.flat_map(in_dir).collect()
}

struct Discovery<'a> {
    search: FileSearch<'a>,
    found: BTreeMap<String, CommandFile>,
}

impl Discovery<'_> {
    /// Adds the commands of a directory, or of a single file.
    fn add_commands(&mut self, location: &CommandLocation) {
        let path = &location.path;
        let found = match (files::file_kind(path), markdown_stem(path)) {
            (Ok(FileKind::Directory), _) => self.search.find_markdown(location.author(), path),
            (Ok(FileKind::File(_)), Some(stem)) => vec![FoundFile { path: path.clone(), parts: vec![stem] }],
            _ => Vec::new(),
        };
        for found in found {
            self.add_file(location, &found, None);
        }
    }

    /// Adds the skills in a directory, or the one that the directory itself is.
    fn add_skills(&mut self, location: &CommandLocation) {
        if !self.search.enter(location.author(), &location.path) {
            return;
        }
        if is_skill(&location.path) {
            return self.add_skill(location, &location.path);
        }
        for name in file_search::sorted_names(&location.path) {
            let dir = location.path.join(&name);
            if is_skill(&dir) && self.search.enter(location.author(), &dir) {
                self.add_skill(location, &dir);
            }
        }
    }

    fn add_skill(&mut self, location: &CommandLocation, dir: &Path) {
        let name = dir.file_name().map(|name| name.to_string_lossy().into_owned());
        if let Some(name) = name {
            let found = FoundFile { path: dir.join(SKILL_FILE), parts: vec![name] };
            self.add_file(location, &found, Some(dir));
        }
    }

    fn add_file(
        &mut self,
        location: &CommandLocation,
        FoundFile { path, parts }: &FoundFile,
        dir: Option<&Path>,
    ) {
        let plugin = match &location.owner {
            CommandOwner::Plugin(plugin) => Some(plugin.name.as_str()),
            CommandOwner::User | CommandOwner::Project => None,
        };
        let parts = parts.iter().map(String::as_str);
        let name = plugin.into_iter().chain(parts).collect::<Vec<_>>().join(":");
        if self.found.contains_key(&name) {
            return;
        }
        let Some(real_path) = self.search.resolve(location.author(), path) else { return };
        if let Some(reason) = self.rejection(&name) {
            return self.search.warnings.push(format!("{} {reason}", path.display()));
        }
        match parse_file::parse_file(&real_path) {
            Ok(parsed) => self.insert(location, real_path, name, dir, parsed),
            Err(warning) => self.search.warnings.push(warning),
        }
    }

    /// Why the name cannot be used.
    fn rejection(&self, name: &str) -> Option<String> {
        if name.contains(char::is_whitespace) {
            return Some("is ignored: a command name cannot contain spaces. Rename it.".into());
        }
        if super::BUILTINS.iter().any(|command| command.name == name) {
            return Some(format!("is ignored: /{name} is a built-in command. Rename it."));
        }
        (self.found.len() == MAX_COMMANDS).then(|| {
            format!("and others are ignored: there are more than {MAX_COMMANDS} commands and skills.")
        })
    }

    fn insert(
        &mut self,
        location: &CommandLocation,
        path: PathBuf,
        name: String,
        dir: Option<&Path>,
        parsed: ParsedCommand,
    ) {
        let description = parsed.description();
        let callers = parsed.front_matter.callers();
        if dir.is_some()
            && callers.includes_model()
            && matches!(description, CommandDescription::FirstLine(_))
        {
            self.search.warnings.push(format!(
                "{}: this skill is not listed to the model. Add a description to its front matter.",
                path.display()
            ));
        }
        self.search.warnings.extend(parsed.warning.clone());
        let head = parsed.front_matter;
        let grants = head.grants_permissions();
        let alias = match (dir, name.rsplit_once(':')) {
            (Some(_), Some((_, bare))) => Some(bare.to_owned()),
            (Some(_), None) => head.name.map(|name| name.trim().to_owned()),
            (None, _) => None,
        };
        let command = CommandFile {
            alias: alias
                .filter(|alias| *alias != name && !alias.is_empty() && !alias.contains(char::is_whitespace)),
            scope: match location.author() {
                FileAuthor::Source(source) => self.search.locations.scope(source, &path),
                FileAuthor::Within(_) => LayerScope::Project,
                FileAuthor::Host => LayerScope::User,
            },
            path,
            skill_dir: dir.map(Into::into),
            owner: location.owner.clone(),
            description,
            argument_hint: head.argument_hint.unwrap_or_default(),
            callers,
            grants_permissions: grants,
            warning: parsed.warning,
            name: name.clone(),
        };
        self.found.insert(name, command);
    }
}

fn is_skill(dir: &Path) -> bool {
    !matches!(files::file_kind(&dir.join(SKILL_FILE)), Ok(FileKind::Missing) | Err(_))
}

#[cfg(test)]
mod tests;
