//! Restores files for checkpoints: creates them with their mode, removes them, and never follows symlinks.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::Path;

use crate::files::dir_handle::DirHandle;
use crate::files::temp_file::{ReadAccess, TempFile};
use crate::files::{FileStamp, is_missing, not_a_regular_file, parent_dir};

/// Creates a file with a mode, and its parent directories. Readers see neither a partial file nor another mode. A
/// symlink at the path is an error.
pub fn create_with_mode(path: &Path, bytes: &[u8], mode: u32) -> io::Result<FileStamp> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let dir = DirHandle::open_or_create(parent_dir(path))?;
    let temp = TempFile::write(&dir, parent_dir(path), bytes, ReadAccess::OwnerOnly)?;
    temp.file().set_permissions(Permissions::from_mode(mode & 0o777))?;
    temp.persist_new(name)
}

/// Creates a directory with mode 0700, and its parents.
pub fn create_private_dir(dir: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

/// Hard-links a file, or copies it if the filesystem has no hard links. An existing target is kept: it may be the same
/// file, which a copy onto itself would empty.
pub fn link_or_copy(path: &Path, name: &Path) -> io::Result<()> {
    match fs::hard_link(path, name) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(_) => fs::copy(path, name).map(drop),
    }
}

/// Permission bits of a file.
pub fn file_mode(path: &Path) -> io::Result<u32> {
    Ok(fs::metadata(path)?.mode() & 0o777)
}

/// Removes a regular file; anything else is an error. A missing file is not.
pub fn remove_file(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_file() => fs::remove_file(path),
        Ok(_) => Err(not_a_regular_file()),
        Err(error) if is_missing(&error) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Removes the empty ancestors of a path below `above`. Stops at the first that is not empty.
pub fn remove_empty_dirs(path: &Path, above: &Path) {
    let ancestors = path.ancestors().skip(1).take_while(|dir| *dir != above && dir.starts_with(above));
    for dir in ancestors {
        match fs::remove_dir(dir) {
            Err(error) if !is_missing(&error) => return,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::files::entry_names;

    #[test]
    fn file_is_created_with_mode_and_not_through_symlink() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        create_with_mode(&at("deep/run.sh"), b"x", 0o750).unwrap();
        assert_eq!(file_mode(&at("deep/run.sh")).unwrap(), 0o750);
        symlink("elsewhere", at("link")).unwrap();
        let error = create_with_mode(&at("link"), b"x", 0o600).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert!(!at("elsewhere").exists());
        assert_eq!(entry_names(&at("deep"), 9), ["run.sh"]);
    }

    #[test]
    fn linking_twice_keeps_the_content() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("one"), "long").unwrap();
        for _ in 0..2 {
            link_or_copy(&at("one"), &at("two")).unwrap();
            assert_eq!(fs::read_to_string(at("two")).unwrap(), "long");
        }
        assert_eq!(fs::read_to_string(at("one")).unwrap(), "long");
    }

    #[test]
    fn only_regular_files_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("file"), "x").unwrap();
        symlink("file", at("link")).unwrap();
        for kept in ["link", "."] {
            assert_eq!(remove_file(&at(kept)).unwrap_err().kind(), io::ErrorKind::InvalidInput, "{kept}");
        }
        remove_file(&at("file")).unwrap();
        remove_file(&at("file")).unwrap();
        assert_eq!(entry_names(dir.path(), 9), ["link"]);
    }
}
