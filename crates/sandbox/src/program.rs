//! Finds the program that becomes the launcher.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::launcher;

/// Names of programs that can be the launcher, in the order in which they are looked for.
const NAMES: [&str; 2] = ["whimbrel-sandbox", "whimbrel"];

/// A program that can be the launcher.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LauncherProgram {
    /// What is executed.
    pub(crate) executable: PathBuf,
    /// The name under which the program is seen inside.
    pub(crate) path: PathBuf,
}

/// There is no launcher.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    #[error("the launcher {path} cannot be executed. Give the path of `whimbrel` or `whimbrel-sandbox`")]
    NotExecutable { path: PathBuf },
    #[error(
        "no launcher was found: neither `whimbrel-sandbox` nor `whimbrel` is next to this program or in PATH. Install one \
         with `cargo install whimbrel-sandbox`, give its path, or call `launcher::run_if_requested()` first in `main` and \
         use this program"
    )]
    NotFound,
}

impl LauncherProgram {
    /// This program, which calls [`launcher::run_if_requested`] first in its `main`.
    pub fn this_program() -> std::io::Result<Self> {
        // Executing the link works even if the file was replaced meanwhile.
        Ok(Self { executable: "/proc/self/exe".into(), path: std::env::current_exe()? })
    }

    /// The program at a path.
    pub fn at(path: &Path) -> Result<Self, ProgramError> {
        let not_executable = || ProgramError::NotExecutable { path: path.to_owned() };
        let real = std::fs::canonicalize(path).map_err(|_| not_executable())?;
        if !is_executable(&real) {
            return Err(not_executable());
        }
        Ok(Self { executable: real.clone(), path: real })
    }

    /// A program next to this one, or in `PATH`.
    pub fn find(search_path: Option<&OsStr>) -> Result<Self, ProgramError> {
        let own_folder = std::env::current_exe().ok().and_then(|path| path.parent().map(Path::to_owned));
        let others = search_path.map(std::env::split_paths).into_iter().flatten();
        for folder in own_folder.into_iter().chain(others.filter(|folder| folder.is_absolute())) {
            for name in NAMES {
                if let Ok(found) = Self::at(&folder.join(name)) {
                    return Ok(found);
                }
            }
        }
        Err(ProgramError::NotFound)
    }

    /// Returns the command that is the launcher.
    #[expect(clippy::disallowed_methods, reason = "this crate starts confined processes")]
    pub(crate) fn command(&self) -> std::process::Command {
        let mut command = std::process::Command::new(&self.executable);
        command.arg(launcher::VERB);
        command
    }
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_launcher_is_an_error_with_a_remedy() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("whimbrel"), "not executable").unwrap();
        assert!(matches!(
            LauncherProgram::at(&folder.path().join("whimbrel")),
            Err(ProgramError::NotExecutable { .. })
        ));
        let error = LauncherProgram::find(Some(folder.path().as_os_str())).map(drop);
        // The folder of the test program has none either.
        assert!(error.unwrap_err().to_string().contains("cargo install whimbrel-sandbox"));
    }
}
