//! List of directories that can grow during a session.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

/// Directories, each once. All clones see an addition at once.
#[derive(Debug, Clone, Default)]
pub struct SharedDirs(Arc<RwLock<Vec<PathBuf>>>);

impl SharedDirs {
    /// Adds a directory unless the list has it.
    pub fn add(&self, dir: PathBuf) {
        let mut dirs = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if !dirs.contains(&dir) {
            dirs.push(dir);
        }
    }

    pub fn to_vec(&self) -> Vec<PathBuf> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn len(&self) -> usize {
        self.0.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl FromIterator<PathBuf> for SharedDirs {
    fn from_iter<I: IntoIterator<Item = PathBuf>>(dirs: I) -> Self {
        let list = Self::default();
        dirs.into_iter().for_each(|dir| list.add(dir));
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_see_an_addition_once() {
        let dirs = SharedDirs::from_iter(["/a".into()]);
        let clone = dirs.clone();
        dirs.add("/b".into());
        dirs.add("/b".into());
        assert_eq!(
            (clone.to_vec(), clone.len(), clone.is_empty()),
            (vec!["/a".into(), "/b".into()], 2, false)
        );
    }
}
