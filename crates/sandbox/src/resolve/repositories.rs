//! Finds repositories below a writable root. A folder is read again only if its modification time has changed.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// How deep below a root a repository is looked for.
const MAX_DEPTH: usize = 3;

/// What is known of the folders below the writable roots of a session.
#[derive(Debug, Default)]
pub struct RepositoryCache {
    folders: HashMap<PathBuf, Folder>,
}

#[derive(Debug)]
struct Folder {
    modified: SystemTime,
    folders: Vec<PathBuf>,
    is_repository: bool,
}

impl RepositoryCache {
    /// Returns the folders below `root` that have a `.git`, without `root` itself.
    pub fn find(&mut self, root: &Path) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut level = vec![root.to_owned()];
        for depth in 0..=MAX_DEPTH {
            let mut next = Vec::new();
            for path in level {
                let Some(folder) = self.read(&path) else { continue };
                if folder.is_repository && depth > 0 {
                    found.push(path);
                }
                if depth < MAX_DEPTH {
                    next.extend_from_slice(&folder.folders);
                }
            }
            level = next;
        }
        found
    }

    fn read(&mut self, path: &Path) -> Option<&Folder> {
        let modified = path.symlink_metadata().ok()?.modified().ok()?;
        if self.folders.get(path).is_none_or(|folder| folder.modified != modified) {
            let folder = read_folder(path, modified)?;
            self.folders.insert(path.to_owned(), folder);
        }
        self.folders.get(path)
    }
}

fn read_folder(path: &Path, modified: SystemTime) -> Option<Folder> {
    let mut folder = Folder { modified, folders: Vec::new(), is_repository: false };
    for entry in std::fs::read_dir(path).ok()?.flatten() {
        if entry.file_name() == ".git" {
            folder.is_repository = true;
        } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            folder.folders.push(entry.path());
        }
    }
    Some(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repositories_are_found_to_depth_three_and_refreshed() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path();
        for path in ["a/.git", "b/c/d/.git", "b/c/d/e/.git", ".git/x/.git"] {
            std::fs::create_dir_all(base.join(path)).unwrap();
        }
        let mut cache = RepositoryCache::default();
        assert_eq!(cache.find(base), [base.join("a"), base.join("b/c/d")]);
        std::fs::create_dir_all(base.join("b/new/.git")).unwrap();
        std::fs::remove_dir_all(base.join("a")).unwrap();
        assert_eq!(cache.find(base), [base.join("b/new"), base.join("b/c/d")]);
    }
}
