//! Replaces a directory as a whole.

use std::fs;
use std::io;
use std::path::Path;

use crate::files::{is_missing, parent_dir, remove_dir};

/// Moves a finished directory to its final path, in the same file system. A directory that is already there is
/// replaced, at once where the system can exchange directories (Linux), and then removed. After an error the old one is
/// still there.
pub fn replace_dir(finished: &Path, target: &Path) -> io::Result<()> {
    fs::create_dir_all(parent_dir(target))?;
    match fs::symlink_metadata(target) {
        Err(error) if is_missing(&error) => fs::rename(finished, target),
        Err(error) => Err(error),
        Ok(found) if !found.is_dir() => Err(io::ErrorKind::NotADirectory.into()),
        Ok(_) => match exchange_dirs(finished, target) {
            Ok(()) => remove_dir(finished),
            Err(rustix::io::Errno::NOSYS | rustix::io::Errno::INVAL) => {
                replace_in_two_steps(finished, target)
            }
            Err(error) => Err(error.into()),
        },
    }
}

fn replace_in_two_steps(finished: &Path, target: &Path) -> io::Result<()> {
    let mut name = finished.as_os_str().to_owned();
    name.push(".old");
    let old = Path::new(&name);
    fs::rename(target, old)?;
    if let Err(error) = fs::rename(finished, target) {
        fs::rename(old, target)?;
        return Err(error);
    }
    remove_dir(old)
}

#[cfg(target_os = "linux")]
fn exchange_dirs(one: &Path, other: &Path) -> rustix::io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE)
}

#[cfg(not(target_os = "linux"))]
fn exchange_dirs(_: &Path, _: &Path) -> rustix::io::Result<()> {
    Err(rustix::io::Errno::NOSYS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::entry_names;

    type Replace = fn(&Path, &Path) -> io::Result<()>;

    #[test]
    fn new_directory_takes_the_place_of_the_old_one() {
        for replace in [replace_dir as Replace, replace_in_two_steps as Replace] {
            let dir = tempfile::tempdir().unwrap();
            let at = |name: &str| dir.path().join(name);
            for (name, file) in [("new", "b"), ("target", "a")] {
                fs::create_dir(at(name)).unwrap();
                fs::write(at(name).join(file), name).unwrap();
            }
            replace(&at("new"), &at("target")).unwrap();
            assert_eq!(entry_names(&at("target"), 9), ["b"]);
            assert_eq!(entry_names(dir.path(), 9), ["target"]);
        }
    }

    #[test]
    fn missing_target_is_created_and_a_file_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir(at("new")).unwrap();
        fs::write(at("file"), "x").unwrap();
        assert_eq!(replace_dir(&at("new"), &at("file")).unwrap_err().kind(), io::ErrorKind::NotADirectory);
        replace_dir(&at("new"), &at("deep/target")).unwrap();
        assert!(at("deep/target").is_dir() && !at("new").exists());
        assert_eq!(fs::read_to_string(at("file")).unwrap(), "x");
    }
}
