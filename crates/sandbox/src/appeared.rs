//! Entries that a command left behind and that change what git does there later: a bare repository in plain sight, a
//! redirected git folder, a new repository.

use std::path::{Path, PathBuf};

use crate::covers::place::Place;
use crate::resolve::{REDIRECTION, Roots};
use crate::violations::Appeared;

/// The names that make git take a folder for a bare repository.
const BARE_REPOSITORY: [&str; 3] = ["HEAD", "objects", "refs"];

/// What was there before a command.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NamesBefore {
    roots: Vec<RootBefore>,
    /// Git folders without a redirection.
    git_folders: Vec<PathBuf>,
}

/// What was in a writable root.
#[derive(Debug, Clone, PartialEq, Eq)]
struct RootBefore {
    folder: PathBuf,
    bare: [bool; 3],
    repository: bool,
}

impl NamesBefore {
    /// Notes what is in the writable roots, and in the git folders that can be written.
    pub(crate) fn note(roots: &Roots, git_folders: &[PathBuf]) -> Self {
        Self {
            roots: roots.all().map(|folder| RootBefore::note(folder)).collect(),
            git_folders: git_folders.iter().filter(|git| !exists(&git.join(REDIRECTION))).cloned().collect(),
        }
    }

    /// Removes what would mislead git and returns what has appeared since.
    pub fn sweep(&self) -> Vec<Appeared> {
        let mut appeared: Vec<Appeared> = self.roots.iter().flat_map(RootBefore::sweep).collect();
        // A repository that the command made itself is redirected as easily.
        let new = appeared.iter().filter_map(|entry| match entry {
            Appeared::Repository(git) => Some(git),
            Appeared::Removed(_) | Appeared::Remains(_) => None,
        });
        let redirections = self.git_folders.iter().chain(new).map(|git| git.join(REDIRECTION));
        let removed: Vec<Appeared> = redirections.filter_map(|path| remove(&path)).collect();
        appeared.extend(removed);
        appeared
    }
}

impl RootBefore {
    fn note(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            bare: BARE_REPOSITORY.map(|name| exists(&folder.join(name))),
            repository: exists(&folder.join(".git")),
        }
    }

    fn sweep(&self) -> Vec<Appeared> {
        let now = Self::note(&self.folder);
        let mut appeared = Vec::new();
        if now.bare == [true; 3] && self.bare != [true; 3] {
            let new = BARE_REPOSITORY.iter().zip(self.bare).filter(|(_, before)| !before);
            appeared.extend(new.filter_map(|(name, _)| remove(&self.folder.join(name))));
        }
        if now.repository && !self.repository {
            appeared.push(Appeared::Repository(self.folder.join(".git")));
        }
        appeared
    }
}

fn exists(path: &Path) -> bool {
    Place::open(path).is_some_and(|place| place.exists())
}

/// Removes an entry, and says so; `None` if there is none.
fn remove(path: &Path) -> Option<Appeared> {
    let place = Place::open(path).filter(Place::exists)?;
    Some(match place.remove() {
        Ok(()) => Appeared::Removed(path.to_owned()),
        Err(_) => Appeared::Remains(path.to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(base: &Path, git_folders: &[PathBuf]) -> NamesBefore {
        NamesBefore::note(&Roots { covered: vec![base.to_owned()], others: Vec::new() }, git_folders)
    }

    #[test]
    fn bare_repository_and_redirection_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path();
        std::fs::create_dir(base.join("refs")).unwrap();
        let before = note(base, &[]);
        assert!(before.sweep().is_empty());
        std::fs::write(base.join("HEAD"), "").unwrap();
        assert!(before.sweep().is_empty(), "a file named HEAD alone is no repository");
        std::fs::create_dir_all(base.join("objects/x")).unwrap();
        std::fs::create_dir(base.join(".git")).unwrap();
        std::fs::write(base.join(".git/commondir"), "../evil").unwrap();
        assert_eq!(
            before.sweep(),
            [
                Appeared::Removed(base.join("HEAD")),
                Appeared::Removed(base.join("objects")),
                Appeared::Repository(base.join(".git")),
                Appeared::Removed(base.join(".git/commondir")),
            ]
        );
        assert!(base.join("refs").exists());
    }

    #[test]
    fn redirections_are_removed_from_every_git_folder_that_had_none() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path();
        let git_folders = ["new", "linked", "clean"].map(|name| base.join(name));
        for git in &git_folders {
            std::fs::create_dir(git).unwrap();
        }
        std::fs::write(base.join("linked/commondir"), "../..").unwrap();
        let before = note(base, &git_folders);
        std::fs::create_dir(base.join("new/commondir")).unwrap();
        assert_eq!(before.sweep(), [Appeared::Removed(base.join("new/commondir"))]);
        assert!(base.join("linked/commondir").exists());
    }
}
