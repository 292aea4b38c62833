//! Copies the files of a plugin, without git's metadata. Links must stay inside, and there is a limit on the size.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use whimbrel_os::files;

use crate::error::InstallError;

/// Limits on a plugin.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CopyLimits {
    pub(crate) max_bytes: u64,
    pub(crate) max_entries: usize,
}

/// Limits of the official engine.
pub(crate) const PLUGIN_LIMITS: CopyLimits = CopyLimits { max_bytes: 256 << 20, max_entries: 20_000 };

/// A copy in progress.
struct TreeCopy {
    /// The source, with all links resolved.
    from: PathBuf,
    to: PathBuf,
    remaining_bytes: u64,
    remaining_entries: usize,
}

/// Copies a directory to a path that does not exist yet.
pub(crate) fn copy_tree(from: &Path, to: &Path, limits: CopyLimits) -> Result<(), InstallError> {
    let from = fs::canonicalize(from).map_err(InstallError::io(from))?;
    let mut copy = TreeCopy {
        from,
        to: to.into(),
        remaining_bytes: limits.max_bytes,
        remaining_entries: limits.max_entries,
    };
    let mut pending = vec![PathBuf::new()];
    while let Some(dir) = pending.pop() {
        let source = copy.from.join(&dir);
        let target = copy.to.join(&dir);
        DirBuilder::new().recursive(true).create(&target).map_err(InstallError::io(&target))?;
        for entry in fs::read_dir(&source).map_err(InstallError::io(&source))? {
            let entry = entry.map_err(InstallError::io(&source))?;
            if entry.file_name() == ".git" {
                continue;
            }
            let path = dir.join(entry.file_name());
            copy.remaining_entries = copy.remaining_entries.checked_sub(1).ok_or_else(|| {
                InstallError::Invalid(format!("the plugin has more than {} files", limits.max_entries))
            })?;
            let kind = entry.file_type().map_err(InstallError::io(&source))?;
            if kind.is_dir() {
                pending.push(path);
            } else if kind.is_symlink() {
                copy.copy_link(&path)?;
            } else if kind.is_file() {
                copy.copy_file(&path, limits)?;
            } else {
                return Err(InstallError::Invalid(format!(
                    "{} is neither a file nor a directory",
                    path.display()
                )));
            }
        }
    }
    Ok(())
}

impl TreeCopy {
    fn copy_file(&mut self, path: &Path, limits: CopyLimits) -> Result<(), InstallError> {
        let (source, target) = (self.from.join(path), self.to.join(path));
        let (file, _) = files::open(&source).map_err(InstallError::io(&source))?;
        let mode = file.metadata().map_err(InstallError::io(&source))?.mode();
        let mut copy = File::create_new(&target).map_err(InstallError::io(&target))?;
        let copied = io::copy(&mut file.take(self.remaining_bytes + 1), &mut copy)
            .map_err(InstallError::io(&target))?;
        self.remaining_bytes = self.remaining_bytes.checked_sub(copied).ok_or_else(|| {
            InstallError::Invalid(format!("the plugin is larger than {} MB", limits.max_bytes >> 20))
        })?;
        let mode = if mode & 0o111 == 0 { 0o644 } else { 0o755 };
        copy.set_permissions(Permissions::from_mode(mode)).map_err(InstallError::io(&target))
    }

    /// Copies a link as a link.
    fn copy_link(&self, path: &Path) -> Result<(), InstallError> {
        let (source, target) = (self.from.join(path), self.to.join(path));
        let destination = fs::read_link(&source).map_err(InstallError::io(&source))?;
        let is_inside = destination.is_relative()
            && files::real_path(&source).is_some_and(|real| real.starts_with(&self.from));
        if !is_inside {
            return Err(InstallError::Invalid(format!(
                "{} is a link to {}, which is outside the plugin or does not exist",
                path.display(),
                destination.display()
            )));
        }
        symlink(&destination, &target).map_err(InstallError::io(&target))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: CopyLimits = CopyLimits { max_bytes: 10, max_entries: 5 };

    fn test_dir(entries: &[&str]) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let from = dir.path().join("from");
        fs::create_dir(&from).unwrap();
        for path in entries {
            let path = from.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "four").unwrap();
        }
        (dir, from)
    }

    #[test]
    fn files_modes_and_inner_links_are_copied() {
        let (dir, from) = test_dir(&["run.sh", "deep/a.md", ".git/config"]);
        fs::set_permissions(from.join("run.sh"), Permissions::from_mode(0o700)).unwrap();
        symlink("../run.sh", from.join("deep/link")).unwrap();
        let to = dir.path().join("to");
        copy_tree(&from, &to, SMALL).unwrap();
        assert_eq!(fs::read_to_string(to.join("deep/link")).unwrap(), "four");
        assert_eq!(fs::read_link(to.join("deep/link")).unwrap(), Path::new("../run.sh"));
        assert_eq!(files::file_mode(&to.join("run.sh")).unwrap(), 0o755);
        assert_eq!(files::file_mode(&to.join("deep/a.md")).unwrap(), 0o644);
        assert!(!to.join(".git").exists());
    }

    #[test]
    fn links_that_leave_the_plugin_are_refused() {
        for destination in ["../secret", "/etc/passwd", "nowhere", ".."] {
            let (dir, from) = test_dir(&["a.md"]);
            fs::write(dir.path().join("secret"), "x").unwrap();
            symlink(destination, from.join("link")).unwrap();
            let error = copy_tree(&from, &dir.path().join("to"), SMALL).unwrap_err().to_string();
            assert!(error.contains("outside the plugin"), "{destination}: {error}");
        }
    }

    #[test]
    fn large_plugins_are_refused() {
        for (entries, cause) in
            [(&["a", "b", "c"][..], "larger than"), (&["1", "2", "3", "4", "5", "6"], "more than 5")]
        {
            let (dir, from) = test_dir(entries);
            let limits = if entries.len() == 3 { SMALL } else { CopyLimits { max_bytes: 1000, ..SMALL } };
            let error = copy_tree(&from, &dir.path().join("to"), limits).unwrap_err().to_string();
            assert!(error.contains(cause), "{error}");
        }
    }

    #[test]
    fn special_files_are_refused() {
        let (dir, from) = test_dir(&[]);
        let _socket = std::os::unix::net::UnixListener::bind(from.join("socket")).unwrap();
        let error = copy_tree(&from, &dir.path().join("to"), SMALL).unwrap_err().to_string();
        assert!(error.contains("neither a file"), "{error}");
    }
}
