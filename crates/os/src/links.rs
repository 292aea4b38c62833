//! Resolves links in paths, also for files that do not exist yet.

use std::path::{Path, PathBuf};

use crate::files;

/// Resolves every link in a path, `..` lexically before that. A missing rest is appended by name to the existing part; a
/// dangling link at the end is followed too.
pub fn resolve_links(path: &Path) -> PathBuf {
    let mut path = path.to_path_buf();
    for _ in 0..files::MAX_LINKS {
        let real = resolve_existing(&path);
        match files::link_target(&real) {
            Some(target) => path = real.parent().unwrap_or(Path::new("/")).join(target),
            None => return real,
        }
    }
    path
}

fn resolve_existing(path: &Path) -> PathBuf {
    let normal = files::normalize_path(path);
    let mut missing = Vec::new();
    let mut existing = normal.as_path();
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
            _ => return normal,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_file_behind_a_link_is_resolved() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("real")).unwrap();
        std::os::unix::fs::symlink(root.join("real"), root.join("link")).unwrap();
        assert_eq!(resolve_links(&root.join("link/new/file.txt")), root.join("real/new/file.txt"));
        assert_eq!(resolve_links(&root.join("link/../x")), root.join("x"));
    }

    #[test]
    fn a_dangling_link_is_followed() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::os::unix::fs::symlink("/outside/new", root.join("one")).unwrap();
        std::os::unix::fs::symlink("one", root.join("two")).unwrap();
        std::os::unix::fs::symlink("loop", root.join("loop")).unwrap();
        assert_eq!(resolve_links(&root.join("two")), Path::new("/outside/new"));
        // Nothing can be written through it; the call only has to return.
        resolve_links(&root.join("loop"));
    }
}
