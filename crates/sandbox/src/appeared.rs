//! Entries that a command left in its working directory and that change what git does there later: a bare repository in
//! plain sight, a redirected git folder, a new repository.

use std::path::{Path, PathBuf};

use crate::covers::place::Place;

/// The names that make git take a folder for a bare repository.
const BARE_REPOSITORY: [&str; 3] = ["HEAD", "objects", "refs"];
/// Makes git take configuration and hooks from elsewhere. It cannot be covered: git reads whatever is there.
const REDIRECTION: &str = ".git/commondir";

/// What was there before a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamesBefore {
    folder: PathBuf,
    bare: [bool; 3],
    redirection: bool,
    repository: bool,
}

/// What a command left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Appeared {
    /// Removed, because git would obey it.
    Removed(PathBuf),
    /// Could not be removed.
    Remains(PathBuf),
    /// A new repository. It stays; its hooks are protected from the next command on.
    Repository(PathBuf),
}

impl NamesBefore {
    /// Notes what is in a working directory.
    pub fn note(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            bare: BARE_REPOSITORY.map(|name| exists(&folder.join(name))),
            redirection: exists(&folder.join(REDIRECTION)),
            repository: exists(&folder.join(".git")),
        }
    }

    /// Removes what would mislead git and returns what has appeared since.
    pub fn sweep(&self) -> Vec<Appeared> {
        let now = Self::note(&self.folder);
        let mut appeared = Vec::new();
        if now.bare == [true; 3] && self.bare != [true; 3] {
            let new = BARE_REPOSITORY.iter().zip(self.bare).filter(|(_, before)| !before);
            appeared.extend(new.map(|(name, _)| remove(self.folder.join(name))));
        }
        if now.redirection && !self.redirection {
            appeared.push(remove(self.folder.join(REDIRECTION)));
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

fn remove(path: PathBuf) -> Appeared {
    let is_folder = path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir());
    let is_removed = if is_folder {
        std::fs::remove_dir_all(&path).is_ok()
    } else {
        Place::open(&path).is_some_and(|place| place.remove_file())
    };
    if is_removed { Appeared::Removed(path) } else { Appeared::Remains(path) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bare_repository_and_redirection_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path();
        std::fs::create_dir(base.join("refs")).unwrap();
        let before = NamesBefore::note(base);
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
                Appeared::Removed(base.join(".git/commondir")),
                Appeared::Repository(base.join(".git")),
            ]
        );
        assert!(base.join("refs").exists());
    }
}
