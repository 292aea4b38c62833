//! Finding command files: in the person's configuration folder and in the project, from asked-for sources only.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use whimbrel_wire::options::SettingSource;

use super::file::{self, CommandFile, Recipe};
use crate::files::{self, Kind};
use crate::ground::Ground;

/// How many commands there may be.
const MOST: usize = 1_000;

/// How many names of one folder are looked at.
const MOST_NAMES: usize = 10_000;

/// How deep folders may lie in each other.
const DEEPEST: usize = 8;

/// The command files of a session by name, and what the host should know about them.
pub(super) fn find(ground: &Ground) -> (Vec<Arc<CommandFile>>, Vec<String>) {
    let mut search = Search { ground, found: BTreeMap::new(), warnings: Vec::new(), visited: HashSet::new() };
    for (source, folder) in folders(ground) {
        search.folder(source, &folder, &[]);
    }
    (search.found.into_values().map(Arc::new).collect(), search.warnings)
}

/// Where commands are looked for, the nearest first: of two with one name the nearer counts.
fn folders(ground: &Ground) -> Vec<(SettingSource, PathBuf)> {
    let mut folders = Vec::new();
    if ground.asks(SettingSource::Project) {
        let top = ground.top();
        let above = ground.root.ancestors().take_while(|folder| folder.starts_with(top));
        let mut project: Vec<PathBuf> = std::iter::once(ground.project.as_path())
            .chain(above)
            .map(|folder| folder.join(".claude/commands"))
            .filter(|folder| !ground.is_configuration(folder))
            .collect();
        project.dedup();
        folders.extend(project.into_iter().map(|folder| (SettingSource::Project, folder)));
    }
    if let (Some(config), true) = (&ground.config, ground.asks(SettingSource::User)) {
        folders.push((SettingSource::User, config.join("commands")));
    }
    folders
}

struct Search<'a> {
    ground: &'a Ground,
    found: BTreeMap<String, CommandFile>,
    warnings: Vec<String>,
    /// Folders that were looked at, links followed: a link may lead in a circle.
    visited: HashSet<PathBuf>,
}

impl Search<'_> {
    fn folder(&mut self, source: SettingSource, folder: &Path, above: &[String]) {
        let Some(real) = files::real_path(folder) else { return };
        if above.len() > DEEPEST || !matches!(files::kind(&real), Ok(Kind::Folder)) {
            return;
        }
        if !self.reaches(source, folder, &real) || !self.visited.insert(real) {
            return;
        }
        let mut names = files::names(folder, MOST_NAMES);
        names.sort();
        for name in names {
            let path = folder.join(&name);
            match (name.strip_suffix(".md"), files::kind(&path)) {
                (None, Ok(Kind::Folder)) => {
                    let below = [above, &[name]].concat();
                    self.folder(source, &path, &below);
                }
                (Some(stem), Ok(_)) if !stem.is_empty() => self.file(source, &path, above, stem),
                _ => {}
            }
        }
    }

    fn file(&mut self, source: SettingSource, path: &Path, above: &[String], stem: &str) {
        let name = above.iter().map(String::as_str).chain([stem]).collect::<Vec<_>>().join(":");
        let Some(real) = files::real_path(path) else { return };
        if self.found.contains_key(&name) || !self.reaches(source, path, &real) {
            return;
        }
        if name.contains(char::is_whitespace) {
            self.warnings.push(format!(
                "{} is no command: a name cannot have blanks. Rename the file.",
                path.display()
            ));
            return;
        }
        if super::ALL.iter().any(|command| command.name == name) {
            self.warnings.push(format!(
                "{} is not used: /{name} is a command of the engine. Rename the file.",
                path.display()
            ));
            return;
        }
        if self.found.len() == MOST {
            self.warnings.push(format!(
                "There are more than {MOST} command files; {} and others are not used.",
                path.display()
            ));
            return;
        }
        match file::read(&real) {
            Ok(recipe) => self.keep(source, real, name, recipe),
            Err(warning) => self.warnings.push(warning),
        }
    }

    fn keep(&mut self, source: SettingSource, path: PathBuf, name: String, recipe: Recipe) {
        let description = recipe.description();
        self.warnings.extend(recipe.flaw);
        let command = CommandFile {
            scope: self.ground.scope(source, &path),
            path,
            source,
            description,
            argument_hint: recipe.head.argument_hint.unwrap_or_default(),
            name: name.clone(),
        };
        self.found.insert(name, command);
    }

    /// Whether a file or folder may be looked at, wherever links lead; if not, that is said.
    fn reaches(&mut self, source: SettingSource, path: &Path, real: &Path) -> bool {
        let reaches = self.ground.reaches(self.ground.scope(source, path), self.ground.top(), real)
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::settings::Trust;

    struct Site {
        top: PathBuf,
        ground: Ground,
        _folder: tempfile::TempDir,
    }

    fn site(files: &[(&str, &str)]) -> Site {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        for (path, text) in
            [("home/.claude/x", ""), ("code/.git/HEAD", ""), ("code/app/x", "")].iter().chain(files)
        {
            let path = top.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let ground = Ground {
            config: Some(top.join("home/.claude")),
            root: top.join("code/app"),
            project: top.join("code/app"),
            sources: [SettingSource::User, SettingSource::Project].into(),
            trust: Trust::Unknown,
        };
        Site { top, ground, _folder: folder }
    }

    fn names(site: &Site) -> (Vec<String>, Vec<String>) {
        let (found, warnings) = find(&site.ground);
        let name = |file: &Arc<CommandFile>| {
            format!("{} {}", file.name, file.path.strip_prefix(&site.top).unwrap().display())
        };
        (found.iter().map(name).collect(), warnings)
    }

    #[test]
    fn commands_have_names_by_their_folders_and_the_nearest_counts() {
        let mut site = site(&[
            ("home/.claude/commands/mine.md", "m"),
            ("home/.claude/commands/both.md", "user"),
            ("code/.claude/commands/both.md", "top"),
            ("code/.claude/commands/deep/er/one.md", "x"),
            ("code/app/.claude/commands/both.md", "app"),
            ("code/app/.claude/commands/notes.txt", "no command"),
            ("code/app/.claude/commands/.md", "no name"),
        ]);
        let all = [
            "both code/app/.claude/commands/both.md",
            "deep:er:one code/.claude/commands/deep/er/one.md",
            "mine home/.claude/commands/mine.md",
        ];
        assert_eq!(names(&site), (all.map(String::from).to_vec(), vec![]));
        site.ground.sources = [SettingSource::User].into();
        assert_eq!(
            names(&site).0,
            ["both home/.claude/commands/both.md", "mine home/.claude/commands/mine.md"]
        );
        site.ground.sources = [].into();
        assert_eq!(names(&site), (vec![], vec![]));
    }

    #[test]
    fn what_is_no_command_is_said_and_the_rest_is_there() {
        let site = site(&[
            ("code/app/.claude/commands/good.md", "---\nmodel: [\n---\nbody"),
            ("code/app/.claude/commands/two words.md", "x"),
            ("code/app/.claude/commands/compact.md", "x"),
            ("home/secret.md", "secret"),
        ]);
        let folder = site.top.join("code/app/.claude/commands");
        symlink(site.top.join("home/secret.md"), folder.join("steal.md")).unwrap();
        symlink("..", folder.join("circle")).unwrap();
        symlink("nowhere", folder.join("dangling.md")).unwrap();
        nix::unistd::mkfifo(&folder.join("pipe.md"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        fs::create_dir(folder.join("folder.md")).unwrap();
        let (found, warnings) = names(&site);
        assert_eq!(found, ["good code/app/.claude/commands/good.md"]);
        for part in [
            "compact.md is not used",
            "folder.md cannot",
            "good.md, line",
            "pipe.md cannot",
            "steal.md leads",
            "two words.md is no command",
        ] {
            assert_eq!(
                warnings.iter().filter(|warning| warning.contains(part)).count(),
                1,
                "{part}: {warnings:?}"
            );
        }
        assert_eq!(warnings.len(), 6, "{warnings:?}");
    }
}
