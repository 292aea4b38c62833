//! The git repository that a read-only git command uses. Its configuration can name programs to run, so only the
//! session's own repository is read without asking, and only if it is trusted or configures no programs.

use std::path::Path;

use super::ShellCommand;
use crate::call::GitProgram;
use crate::decision_input::DecisionInput;
use crate::fs::{FileType, FsView};
use crate::paths::resolve_physical_path;
use crate::shell::{CommandClass, SimpleCommand};

/// Trust in the repository of the shell's directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RepositoryTrust {
    /// The repository may be read.
    Trusted,
    /// There is no repository, or it is not the session's own.
    Foreign,
    /// Reading the repository runs this program.
    RunsProgram(GitProgram),
}

impl ShellCommand<'_> {
    /// Checks the first repository at or above the shell's directory.
    pub(super) fn check_repository_trust(&self, input: &DecisionInput<'_>) -> RepositoryTrust {
        let fs = self.disk.context.fs;
        let primary = &input.dirs.primary.physical;
        let start = resolve_physical_path(self.disk.context.cwd, fs);
        for directory in start.ancestors() {
            match fs.lstat(&directory.join(".git")) {
                Some(FileType::Directory | FileType::File) if primary.starts_with(directory) => {
                    let program = input
                        .context
                        .git_inspector
                        .and_then(|inspector| inspector.configured_program(directory));
                    return program.map_or(RepositoryTrust::Trusted, RepositoryTrust::RunsProgram);
                }
                Some(_) => return RepositoryTrust::Foreign,
                None if is_bare_repository(directory, fs) => return RepositoryTrust::Foreign,
                None => {}
            }
        }
        RepositoryTrust::Foreign
    }

    /// Finds the program that a read-only git command would run.
    pub(super) fn find_git_program(
        &self,
        simple_command: &SimpleCommand,
        input: &DecisionInput<'_>,
    ) -> Option<GitProgram> {
        if simple_command.class != CommandClass::ReadOnly || simple_command.program.as_deref() != Some("git")
        {
            return None;
        }
        match self.check_repository_trust(input) {
            RepositoryTrust::RunsProgram(program) => Some(program),
            RepositoryTrust::Trusted | RepositoryTrust::Foreign => None,
        }
    }
}

/// Returns true if git would treat the directory itself as a bare repository.
fn is_bare_repository(directory: &Path, fs: &dyn FsView) -> bool {
    fs.lstat(&directory.join("HEAD")).is_some()
        && fs.lstat(&directory.join("objects")).is_some()
        && fs.lstat(&directory.join("refs")).is_some()
}
