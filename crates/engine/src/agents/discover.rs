//! Discovers agent definition files in the project, the user's configuration directory and plugins, from enabled
//! setting sources only.

use std::path::{Path, PathBuf};

use whimbrel_config::locations::ConfigLocations;
use whimbrel_config::locations::file_search::{FileAuthor, FileSearch};
use whimbrel_config::plugins::PluginAgents;
use whimbrel_config::settings::{LayerScope, Trust};
use whimbrel_os::files::{self, FileKind};
use whimbrel_wire::options::SettingSource;

use super::definition::{DefinitionSource, ResolvedDefinition};
use super::definition_file::{self, ParsedDefinition};

/// Limit on definitions from files.
const MAX_FILES: usize = 500;

/// Loads all definition files, nearest first, with warnings for the host. The nearest definition of a name wins.
/// Reads the disk.
pub(super) fn discover(
    locations: &ConfigLocations,
    plugins: &[PluginAgents],
) -> (Vec<ResolvedDefinition>, Vec<String>) {
    let mut discovery = AgentDiscovery { search: FileSearch::new(locations, "agents"), found: Vec::new() };
    for (source, dir) in search_dirs(locations) {
        discovery.scan_dir(&DirOwner::Source(source), &dir);
    }
    for plugin in plugins {
        match files::file_kind(&plugin.path) {
            Ok(FileKind::File(_)) => discovery.load_file(&DirOwner::Plugin(plugin), &plugin.path),
            _ => discovery.scan_dir(&DirOwner::Plugin(plugin), &plugin.path),
        }
    }
    (discovery.found, discovery.search.warnings)
}

/// Directories to search, nearest first.
fn search_dirs(locations: &ConfigLocations) -> Vec<(SettingSource, PathBuf)> {
    let project = locations.project_dirs(".claude/agents").into_iter();
    let mut dirs: Vec<_> = project.map(|dir| (SettingSource::Project, dir)).collect();
    if let (Some(config), true) = (&locations.user_dir, locations.includes(SettingSource::User)) {
        dirs.push((SettingSource::User, config.join("agents")));
    }
    dirs
}

enum DirOwner<'a> {
    Source(SettingSource),
    Plugin(&'a PluginAgents),
}

impl DirOwner<'_> {
    fn author(&self) -> FileAuthor<'_> {
        match self {
            Self::Source(source) => FileAuthor::Source(*source),
            Self::Plugin(plugin) => FileAuthor::Within(&plugin.path),
        }
    }
}

struct AgentDiscovery<'a> {
    search: FileSearch<'a>,
    found: Vec<ResolvedDefinition>,
}

impl AgentDiscovery<'_> {
    fn scan_dir(&mut self, owner: &DirOwner<'_>, dir: &Path) {
        for found in self.search.find_markdown(owner.author(), dir) {
            self.load_file(owner, &found.path);
        }
    }

    fn load_file(&mut self, owner: &DirOwner<'_>, path: &Path) {
        let Some(real_path) = self.search.resolve(owner.author(), path) else { return };
        if self.found.len() == MAX_FILES {
            let text = format!("There are more than {MAX_FILES} agent files; {} is ignored.", path.display());
            return self.search.warnings.push(text);
        }
        let origin = match owner {
            DirOwner::Plugin(_) => DefinitionSource::Plugin,
            DirOwner::Source(source) => match self.search.locations.scope(*source, path) {
                LayerScope::User => DefinitionSource::User,
                LayerScope::Project => DefinitionSource::Project,
            },
        };
        match definition_file::load(&real_path, origin) {
            Ok(parsed) => self.add(owner, path, parsed),
            Err(warning) => self.search.warnings.push(warning),
        }
    }

    fn add(
        &mut self,
        owner: &DirOwner<'_>,
        path: &Path,
        ParsedDefinition { mut definition, warnings }: ParsedDefinition,
    ) {
        if let DirOwner::Plugin(plugin) = owner {
            definition.name = format!("{}:{}", plugin.prefix, definition.name);
        }
        if self.found.iter().any(|other| other.name == definition.name) {
            return;
        }
        self.search.warnings.extend(warnings);
        let untrusted =
            definition.source == DefinitionSource::Project && self.search.locations.trust != Trust::Full;
        let foreign = definition.source == DefinitionSource::Plugin || untrusted;
        let own_servers = foreign && definition.mcp_servers.remove_own();
        let removed = [
            own_servers.then(|| "mcpServers configurations are".to_owned()),
            definition.permission_mode.take_if(|_| foreign).map(|mode| format!("permissionMode {mode} is")),
            definition.hooks.take_if(|_| foreign).map(|_| "hooks are".to_owned()),
        ];
        for what in removed.into_iter().flatten() {
            self.search
                .warnings
                .push(format!("{}: its {what} ignored, because its source is not trusted.", path.display()));
        }
        self.found.push(definition);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use whimbrel_config::locations::test_project::test_project;

    use super::*;

    fn agent(name: &str, more: &str) -> String {
        format!("---\nname: {name}\ndescription: d\n{more}---\nPrompt of {name}.")
    }

    #[test]
    fn nearest_definition_wins_and_only_enabled_sources_are_read() {
        let mut project = test_project(&[
            ("home/.claude/agents/a.md", agent("both", "model: haiku\n")),
            ("home/.claude/agents/deep/b.md", agent("mine", "permissionMode: acceptEdits\n")),
            ("code/.claude/agents/c.md", agent("both", "model: opus\n")),
            (
                "code/app/.claude/agents/d.md",
                agent("both", "permissionMode: acceptEdits\nmcpServers: [docs, {db: {command: x}}]\n"),
            ),
            ("code/app/.claude/agents/notes.txt", String::new()),
        ]);
        let (found, warnings) = discover(&project.locations, &[]);
        let names: Vec<_> = found
            .iter()
            .map(|definition| (definition.name.as_str(), definition.source, definition.permission_mode))
            .collect();
        let mode = Some(whimbrel_wire::permission::PermissionMode::AcceptEdits);
        assert_eq!(
            names,
            [("both", DefinitionSource::Project, None), ("mine", DefinitionSource::User, mode)]
        );
        assert!(warnings.len() == 2 && warnings.iter().all(|text| text.contains("d.md")), "{warnings:?}");
        assert_eq!(found[0].mcp_servers.referenced, ["docs"]);
        assert!(found[0].mcp_servers.own.is_empty(), "an untrusted project starts no servers");
        project.locations.sources = [SettingSource::User].into();
        assert_eq!(discover(&project.locations, &[]).0[0].model.as_deref(), Some("haiku"));
        project.locations.sources.clear();
        assert_eq!(discover(&project.locations, &[]), (vec![], vec![]));
    }

    #[test]
    fn invalid_file_is_reported_and_others_are_used() {
        let project = test_project(&[
            ("code/app/.claude/agents/good.md", agent("good", "")),
            ("code/app/.claude/agents/bad.md", "no head".into()),
            ("home/secret.md", agent("secret", "")),
        ]);
        let dir = project.root.join("code/app/.claude/agents");
        symlink(project.root.join("home/secret.md"), dir.join("steal.md")).unwrap();
        symlink("..", dir.join("circle")).unwrap();
        nix::unistd::mkfifo(&dir.join("pipe.md"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let (found, warnings) = discover(&project.locations, &[]);
        assert_eq!(found.iter().map(|definition| definition.name.as_str()).collect::<Vec<_>>(), ["good"]);
        for part in ["bad.md", "steal.md links", "pipe.md"] {
            assert_eq!(warnings.iter().filter(|text| text.contains(part)).count(), 1, "{part}: {warnings:?}");
        }
    }

    #[test]
    fn plugin_agents_have_its_prefix_and_no_mode() {
        let project =
            test_project(&[("plugin/agents/a.md", agent("helper", "permissionMode: bypassPermissions\n"))]);
        let plugin = PluginAgents { prefix: "kit".into(), path: project.root.join("plugin/agents") };
        let (found, warnings) = discover(&project.locations, &[plugin]);
        assert_eq!((found[0].name.as_str(), found[0].permission_mode), ("kit:helper", None));
        assert_eq!(warnings.len(), 1, "{warnings:?}");
    }
}
