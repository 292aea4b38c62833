//! Files of a git repository that decide what git executes: hooks, configuration, and what they name.

use std::path::{Path, PathBuf};

use super::canonical::{Located, locate};
use super::git_config::{ConfigFacts, ConfiguredPath, read_config};
use super::marks::{CoverKind, MarkKind, Marks};
use super::{Covering, mark_read_only};
use crate::plan::Presence;

/// How deep the folders of submodules are looked for in `.git/modules`.
const MAX_MODULE_DEPTH: usize = 3;
/// How deep included files are followed, as in git.
const MAX_INCLUDE_DEPTH: usize = 10;
/// Leads git to configuration and hooks elsewhere. A missing one cannot be covered, for git reads whatever is there: it is
/// removed after the command, see `appeared`.
pub(crate) const REDIRECTION: &str = "commondir";
/// Files of a linked worktree in its main repository that lead to configuration.
const WORKTREE_FILES: [&str; 2] = [REDIRECTION, "gitdir"];

/// Where a repository is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Nesting {
    /// The top of a writable root.
    Top,
    /// Below a writable root.
    Nested,
}

impl Nesting {
    fn presence(self) -> Presence {
        match self {
            Self::Top => Presence::Required,
            // A command may remove a repository that it made itself while another one starts.
            Self::Nested => Presence::Optional,
        }
    }
}

/// A configuration file and what it says.
type ConfigFile = (PathBuf, ConfigFacts);

/// The configuration of the user and of the machine, which counts in every repository.
pub(crate) struct UserConfig {
    home: Option<PathBuf>,
    files: Vec<ConfigFile>,
}

impl UserConfig {
    /// Reads the configuration of the user with this home directory.
    pub(crate) fn read(home: Option<&Path>, config_home: Option<&Path>) -> Self {
        let xdg = config_home.map(Path::to_owned).or_else(|| home.map(|home| home.join(".config")));
        let files = [
            Some(PathBuf::from("/etc/gitconfig")),
            xdg.map(|folder| folder.join("git/config")),
            home.map(|home| home.join(".gitconfig")),
        ];
        let config = Self { home: home.map(Path::to_owned), files: Vec::new() };
        let files = files.into_iter().flatten().flat_map(|file| config.read_with_includes(&file)).collect();
        Self { files, ..config }
    }

    /// Marks the files of this configuration itself.
    pub(crate) fn mark_files(&self, marks: &mut Marks) {
        for (path, _) in &self.files {
            mark_file(path, Presence::Optional, marks);
        }
    }

    /// Reads a configuration and the files that it includes, missing ones as well.
    fn read_with_includes(&self, file: &Path) -> Vec<ConfigFile> {
        let mut found: Vec<ConfigFile> = Vec::new();
        let mut level = vec![file.to_owned()];
        for _ in 0..=MAX_INCLUDE_DEPTH {
            let mut next = Vec::new();
            for path in level {
                if found.iter().any(|(known, _)| *known == path) {
                    continue;
                }
                let facts = read_config(&std::fs::read_to_string(&path).unwrap_or_default());
                let folder = path.parent().unwrap_or(Path::new("/"));
                next.extend(facts.paths.iter().filter_map(|path| match path {
                    ConfiguredPath::Include(path) => Some(self.resolve(folder, path)),
                    ConfiguredPath::Hooks(_) => None,
                }));
                found.push((path, facts));
            }
            level = next;
        }
        found
    }

    fn resolve(&self, folder: &Path, path: &str) -> PathBuf {
        match (path.strip_prefix("~/"), &self.home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => folder.join(path),
        }
    }

    /// Marks the files that a repository's configuration consists of, and the folders of hooks that it or the user's
    /// configuration names. Missing ones are covered, for what is created there is what git runs.
    fn mark_named_paths(&self, config: &[ConfigFile], tree: Option<&Path>, marks: &mut Marks) {
        for (path, _) in config {
            mark_file(path, Presence::Optional, marks);
        }
        let Some(tree) = tree else { return };
        for path in config.iter().chain(&self.files).flat_map(|(_, facts)| &facts.paths) {
            if let ConfiguredPath::Hooks(path) = path {
                mark_read_only(&self.resolve(tree, path), Covering::Missing, Presence::Optional, marks);
            }
        }
    }
}

/// Marks the protected files of the repository whose working tree is `folder`, if there is one.
pub(crate) fn mark_repository(folder: &Path, nesting: Nesting, user: &UserConfig, marks: &mut Marks) {
    let dot_git = folder.join(".git");
    let located = locate(&dot_git);
    for link in located.links() {
        marks.add(link, MarkKind::ReadOnlyLink, nesting.presence());
    }
    let Located::Present { path, .. } = located else {
        if nesting == Nesting::Top {
            mark_paths_of_enclosing(folder, user, marks);
        }
        return;
    };
    if path.is_dir() {
        mark_git_folder(&path, folder, nesting.presence(), user, marks);
        return;
    }
    marks.add(&path, MarkKind::ReadOnly, nesting.presence());
    if nesting == Nesting::Top
        && let Some(common) = find_main_git_folder(&path)
    {
        marks.add(&common, MarkKind::Root, Presence::Optional);
        mark_git_folder(&common, folder, Presence::Optional, user, marks);
    }
}

/// Marks what the repository names that has `folder` in its working tree. Its git folder is not writable.
fn mark_paths_of_enclosing(folder: &Path, user: &UserConfig, marks: &mut Marks) {
    let Some(tree) = folder.ancestors().skip(1).find(|above| above.join(".git").is_dir()) else { return };
    user.mark_named_paths(&user.read_with_includes(&tree.join(".git/config")), Some(tree), marks);
}

/// Marks hooks and configuration of a `.git` folder, and of the submodules and linked worktrees in it. Missing ones are
/// covered.
fn mark_git_folder(git: &Path, tree: &Path, presence: Presence, user: &UserConfig, marks: &mut Marks) {
    let facts = mark_hooks_and_config(git, Some(tree), presence, user, marks);
    mark_modules(&git.join("modules"), MAX_MODULE_DEPTH, presence, user, marks);
    for worktree in read_folders(&git.join("worktrees")) {
        for name in WORKTREE_FILES {
            mark_read_only(&worktree.join(name), Covering::Nothing, Presence::Optional, marks);
        }
        if facts.worktree_config {
            mark_file(&worktree.join("config.worktree"), Presence::Optional, marks);
        }
    }
}

fn mark_modules(folder: &Path, depth: usize, presence: Presence, user: &UserConfig, marks: &mut Marks) {
    for module in read_folders(folder) {
        if module.join("HEAD").exists() {
            mark_hooks_and_config(&module, None, presence, user, marks);
            mark_modules(&module.join("modules"), depth - 1, presence, user, marks);
        } else if depth > 1 {
            mark_modules(&module, depth - 1, presence, user, marks);
        }
    }
}

fn read_folders(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let folders = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders.map(|entry| entry.path()).collect()
}

/// Marks a git folder, whose working tree is that of its configuration unless it is given.
fn mark_hooks_and_config(
    git: &Path,
    tree: Option<&Path>,
    presence: Presence,
    user: &UserConfig,
    marks: &mut Marks,
) -> ConfigFacts {
    mark_read_only(&git.join("hooks"), Covering::Missing, presence, marks);
    mark_read_only(&git.join(REDIRECTION), Covering::Nothing, Presence::Optional, marks);
    marks.note_git_folder(git);
    let config = git.join("config");
    mark_file(&config, presence, marks);
    let mut files = user.read_with_includes(&config);
    let facts = read_config(&std::fs::read_to_string(&config).unwrap_or_default());
    if facts.worktree_config {
        let own = git.join("config.worktree");
        mark_file(&own, presence, marks);
        files.extend(user.read_with_includes(&own));
    }
    let tree = tree.map(Path::to_owned).or_else(|| Some(git.join(facts.working_tree.as_ref()?)));
    user.mark_named_paths(&files, tree.as_deref(), marks);
    facts
}

/// Marks a file that git reads as configuration. In place of a missing one comes an empty file: git cannot read a folder
/// there.
fn mark_file(path: &Path, presence: Presence, marks: &mut Marks) {
    match locate(path) {
        Located::Missing { path: missing, links } => {
            for link in &links {
                marks.add(link, MarkKind::ReadOnlyLink, presence);
            }
            let has_parent = path.parent().is_some_and(Path::is_dir);
            marks.note_missing(missing, if has_parent { CoverKind::File } else { CoverKind::Folder });
        }
        Located::Present { .. } | Located::Unknown { .. } => {
            mark_read_only(path, Covering::Nothing, presence, marks);
        }
    }
}

/// Returns the `.git` folder of the main repository of a linked worktree, whose `.git` is the file `dot_git`.
///
/// A file that comes with a project must not make any folder writable: the folder has to be `X/worktrees/NAME` of a
/// repository `X`, and has to name `dot_git` in turn. Outside of the writable roots, no project can make such a folder.
fn find_main_git_folder(dot_git: &Path) -> Option<PathBuf> {
    let text = std::fs::read_to_string(dot_git).ok()?;
    let target = text.strip_prefix("gitdir:")?.trim();
    let own = std::fs::canonicalize(dot_git.parent()?.join(target)).ok()?;
    let worktrees = own.parent().filter(|folder| folder.ends_with("worktrees"))?;
    let common = worktrees.parent()?;
    let back = std::fs::read_to_string(own.join("gitdir")).ok()?;
    let named = std::fs::canonicalize(own.join(back.trim())).ok()?;
    let is_repository = ["HEAD", "objects", "refs"].iter().all(|name| common.join(name).exists());
    (named == dot_git && is_repository).then(|| common.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worktree_must_be_named_by_its_main_repository() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        let admin = base.join("main/.git/worktrees/w");
        std::fs::create_dir_all(&admin).unwrap();
        std::fs::create_dir_all(base.join("w")).unwrap();
        for name in ["objects", "refs"] {
            std::fs::create_dir(base.join("main/.git").join(name)).unwrap();
        }
        std::fs::write(base.join("main/.git/HEAD"), "ref: refs/heads/main\n").unwrap();
        let dot_git = base.join("w/.git");
        std::fs::write(&dot_git, format!("gitdir: {}\n", admin.display())).unwrap();
        assert_eq!(find_main_git_folder(&dot_git), None, "no way back");
        std::fs::write(admin.join("gitdir"), format!("{}\n", dot_git.display())).unwrap();
        assert_eq!(find_main_git_folder(&dot_git), Some(base.join("main/.git")));
        std::fs::write(&dot_git, format!("gitdir: {}\n", base.display())).unwrap();
        assert_eq!(find_main_git_folder(&dot_git), None, "any folder");
    }
}
