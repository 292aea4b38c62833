//! Finding the files of subagents: in the project, in the person's configuration folder and in plugins, from asked-for
//! sources only.

use std::path::{Path, PathBuf};

use whimbrel_wire::options::SettingSource;

use super::definition::{Definition, Origin};
use super::file::{self, Written};
use crate::files::{self, Kind};
use crate::ground::Ground;
use crate::ground::search::{Author, Search};
use crate::settings::{Scope, Trust};

/// How many kinds files may describe.
const MOST: usize = 500;

/// A plugin's folder of agents, and the name that goes before theirs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginAgents {
    /// The plugin.
    pub prefix: String,
    /// The folder, or a single file.
    pub folder: PathBuf,
}

/// The kinds that files describe, the nearest first, and what the host should know about them. Of two with one name the
/// nearer counts. Touches the disk.
pub(super) fn find(ground: &Ground, plugins: &[PluginAgents]) -> (Vec<Definition>, Vec<String>) {
    let mut finds = Finds { search: Search::new(ground, "agents"), kept: Vec::new() };
    for (source, folder) in folders(ground) {
        finds.folder(&Whose::Source(source), &folder);
    }
    for plugin in plugins {
        match files::kind(&plugin.folder) {
            Ok(Kind::File(_)) => finds.file(&Whose::Plugin(plugin), &plugin.folder),
            _ => finds.folder(&Whose::Plugin(plugin), &plugin.folder),
        }
    }
    (finds.kept, finds.search.warnings)
}

/// Where files are looked for, the nearest first.
fn folders(ground: &Ground) -> Vec<(SettingSource, PathBuf)> {
    let project = ground.project_folders(".claude/agents").into_iter();
    let mut folders: Vec<_> = project.map(|folder| (SettingSource::Project, folder)).collect();
    if let (Some(config), true) = (&ground.config, ground.asks(SettingSource::User)) {
        folders.push((SettingSource::User, config.join("agents")));
    }
    folders
}

/// Who owns a folder.
enum Whose<'a> {
    Source(SettingSource),
    Plugin(&'a PluginAgents),
}

impl Whose<'_> {
    fn author(&self) -> Author<'_> {
        match self {
            Self::Source(source) => Author::Source(*source),
            Self::Plugin(plugin) => Author::Within(&plugin.folder),
        }
    }
}

/// What was found so far.
struct Finds<'a> {
    search: Search<'a>,
    kept: Vec<Definition>,
}

impl Finds<'_> {
    fn folder(&mut self, whose: &Whose<'_>, folder: &Path) {
        for found in self.search.below(whose.author(), folder) {
            self.file(whose, &found.path);
        }
    }

    fn file(&mut self, whose: &Whose<'_>, path: &Path) {
        let Some(real) = self.search.reached(whose.author(), path) else { return };
        if self.kept.len() == MOST {
            let text = format!("There are more than {MOST} files of agents; {} is not used.", path.display());
            return self.search.warnings.push(text);
        }
        let origin = match whose {
            Whose::Plugin(_) => Origin::Plugin,
            Whose::Source(source) => match self.search.ground.scope(*source, path) {
                Scope::Person => Origin::Person,
                Scope::Project => Origin::Project,
            },
        };
        match file::read(&real, origin) {
            Ok(written) => self.keep(whose, path, written),
            Err(warning) => self.search.warnings.push(warning),
        }
    }

    fn keep(&mut self, whose: &Whose<'_>, path: &Path, Written { mut definition, warnings }: Written) {
        if let Whose::Plugin(plugin) = whose {
            definition.name = format!("{}:{}", plugin.prefix, definition.name);
        }
        if self.kept.iter().any(|other| other.name == definition.name) {
            return;
        }
        self.search.warnings.extend(warnings);
        let untrusted = definition.origin == Origin::Project && self.search.ground.trust != Trust::Full;
        let foreign = definition.origin == Origin::Plugin || untrusted;
        let own_servers = foreign && definition.servers.give_up_own();
        let taken = [
            own_servers.then(|| "mcpServers with a configuration do".to_owned()),
            definition.permission_mode.take_if(|_| foreign).map(|mode| format!("permissionMode {mode} does")),
            definition.hooks.take_if(|_| foreign).map(|_| "hooks do".to_owned()),
        ];
        for what in taken.into_iter().flatten() {
            self.search.warnings.push(format!(
                "{}: its {what} not count, because its author is not trusted with that.",
                path.display()
            ));
        }
        self.kept.push(definition);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::ground::site::site;

    fn agent(name: &str, more: &str) -> String {
        format!("---\nname: {name}\ndescription: d\n{more}---\nPrompt of {name}.")
    }

    #[test]
    fn the_nearest_of_two_counts_and_only_asked_for_sources_are_read() {
        let mut site = site(&[
            ("home/.claude/agents/a.md", agent("both", "model: haiku\n")),
            ("home/.claude/agents/deep/b.md", agent("mine", "permissionMode: acceptEdits\n")),
            ("code/.claude/agents/c.md", agent("both", "model: opus\n")),
            (
                "code/app/.claude/agents/d.md",
                agent("both", "permissionMode: acceptEdits\nmcpServers: [docs, {db: {command: x}}]\n"),
            ),
            ("code/app/.claude/agents/notes.txt", String::new()),
        ]);
        let (found, warnings) = find(&site.ground, &[]);
        let names: Vec<_> =
            found.iter().map(|kind| (kind.name.as_str(), kind.origin, kind.permission_mode)).collect();
        let mode = Some(whimbrel_wire::permission::PermissionMode::AcceptEdits);
        assert_eq!(names, [("both", Origin::Project, None), ("mine", Origin::Person, mode)]);
        assert!(warnings.len() == 2 && warnings.iter().all(|text| text.contains("d.md")), "{warnings:?}");
        assert_eq!(found[0].servers.named, ["docs"]);
        assert!(found[0].servers.own.is_empty(), "a stranger starts no programs");
        site.ground.sources = [SettingSource::User].into();
        assert_eq!(find(&site.ground, &[]).0[0].model.as_deref(), Some("haiku"));
        site.ground.sources.clear();
        assert_eq!(find(&site.ground, &[]), (vec![], vec![]));
    }

    #[test]
    fn a_bad_file_is_told_and_the_rest_counts() {
        let site = site(&[
            ("code/app/.claude/agents/good.md", agent("good", "")),
            ("code/app/.claude/agents/bad.md", "no head".into()),
            ("home/secret.md", agent("secret", "")),
        ]);
        let folder = site.top.join("code/app/.claude/agents");
        symlink(site.top.join("home/secret.md"), folder.join("steal.md")).unwrap();
        symlink("..", folder.join("circle")).unwrap();
        nix::unistd::mkfifo(&folder.join("pipe.md"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let (found, warnings) = find(&site.ground, &[]);
        assert_eq!(found.iter().map(|kind| kind.name.as_str()).collect::<Vec<_>>(), ["good"]);
        for part in ["bad.md", "steal.md leads", "pipe.md"] {
            assert_eq!(warnings.iter().filter(|text| text.contains(part)).count(), 1, "{part}: {warnings:?}");
        }
    }

    #[test]
    fn agents_of_plugins_carry_its_name_and_no_mode() {
        let site = site(&[("plugin/agents/a.md", agent("helper", "permissionMode: bypassPermissions\n"))]);
        let plugin = PluginAgents { prefix: "kit".into(), folder: site.top.join("plugin/agents") };
        let (found, warnings) = find(&site.ground, &[plugin]);
        assert_eq!((found[0].name.as_str(), found[0].permission_mode), ("kit:helper", None));
        assert_eq!(warnings.len(), 1, "{warnings:?}");
    }
}
