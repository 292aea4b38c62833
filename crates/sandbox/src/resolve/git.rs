//! Files of a git repository that decide what git executes: hooks, configuration, and what they name.

use std::path::{Path, PathBuf};

use super::canonical::{Located, locate};
use super::git_config::{ConfiguredPath, read_config};
use super::marks::{CoverKind, MarkKind, Marks};
use super::{Covering, mark_read_only};
use crate::plan::Presence;

/// How deep the folders of submodules are looked for in `.git/modules`.
const MAX_MODULE_DEPTH: usize = 3;

/// Where a repository is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Nesting {
    /// The top of a writable root.
    Top(Covering),
    /// Below a writable root.
    Nested,
}

impl Nesting {
    fn presence(self) -> Presence {
        match self {
            Self::Top(_) => Presence::Required,
            // A command may remove a repository that it made itself while another one starts.
            Self::Nested => Presence::Optional,
        }
    }
}

/// Marks the protected files of the repository whose working tree is `folder`, if there is one.
pub(crate) fn mark_repository(folder: &Path, nesting: Nesting, marks: &mut Marks) {
    let dot_git = folder.join(".git");
    let located = locate(&dot_git);
    for link in located.links() {
        marks.add(link, MarkKind::ReadOnlyLink, nesting.presence());
    }
    let Located::Present { path, .. } = located else { return };
    if path.is_dir() {
        mark_git_folder(&path, folder, nesting.presence(), marks);
        return;
    }
    marks.add(&path, MarkKind::ReadOnly, nesting.presence());
    if matches!(nesting, Nesting::Top(_))
        && let Some(common) = find_main_git_folder(&path)
    {
        marks.add(&common, MarkKind::Root, Presence::Optional);
        mark_git_folder(&common, folder, Presence::Optional, marks);
    }
}

/// Marks hooks and configuration of a `.git` folder and of the submodules in it. Missing ones are covered.
fn mark_git_folder(git: &Path, tree: &Path, presence: Presence, marks: &mut Marks) {
    mark_hooks_and_config(git, Some(tree), presence, marks);
    mark_modules(&git.join("modules"), MAX_MODULE_DEPTH, presence, marks);
}

fn mark_modules(folder: &Path, depth: usize, presence: Presence, marks: &mut Marks) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        let module = entry.path();
        if module.join("HEAD").exists() {
            mark_hooks_and_config(&module, None, presence, marks);
            mark_modules(&module.join("modules"), depth - 1, presence, marks);
        } else if depth > 1 {
            mark_modules(&module, depth - 1, presence, marks);
        }
    }
}

fn mark_hooks_and_config(git: &Path, tree: Option<&Path>, presence: Presence, marks: &mut Marks) {
    mark_read_only(&git.join("hooks"), Covering::Missing, presence, marks);
    let config = git.join("config");
    mark_file(&config, presence, marks);
    let facts = read_config(&std::fs::read_to_string(&config).unwrap_or_default());
    if facts.worktree_config {
        mark_file(&git.join("config.worktree"), presence, marks);
    }
    for path in facts.paths {
        let path = match path {
            ConfiguredPath::Hooks(path) => tree.map(|tree| tree.join(path)),
            ConfiguredPath::Include(path) => Some(git.join(path)),
        };
        if let Some(path) = path.filter(|path| path.exists()) {
            mark_read_only(&path, Covering::Nothing, Presence::Optional, marks);
        }
    }
}

/// Marks a file in a git folder. In place of a missing one comes an empty file: git cannot read a folder there.
fn mark_file(path: &Path, presence: Presence, marks: &mut Marks) {
    if let Located::Missing { path, .. } = locate(path) {
        marks.note_missing(path, CoverKind::File);
    } else {
        mark_read_only(path, Covering::Nothing, presence, marks);
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
