//! Paths as they really are: links followed, also for files that do not exist yet.

use std::path::{Path, PathBuf};

use crate::files;

/// A path with every link in it followed. What does not exist yet is taken by name, below the part that does.
pub fn real(path: &Path) -> PathBuf {
    let tidy = files::tidy(path);
    let mut missing = Vec::new();
    let mut existing = tidy.as_path();
    loop {
        if let Some(mut real) = files::real_path(existing) {
            real.extend(missing.iter().rev());
            return real;
        }
        match (existing.parent(), existing.file_name()) {
            (Some(parent), Some(name)) => {
                missing.push(name);
                existing = parent;
            }
            _ => return tidy,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_file_behind_a_link_lies_where_the_link_leads() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("real")).unwrap();
        std::os::unix::fs::symlink(root.join("real"), root.join("link")).unwrap();
        assert_eq!(real(&root.join("link/new/file.txt")), root.join("real/new/file.txt"));
        assert_eq!(real(&root.join("link/../x")), root.join("x"));
    }
}
