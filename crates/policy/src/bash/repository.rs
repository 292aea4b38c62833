//! Which git repository a read-only git command would speak of. Its settings can name programs to run, so only the
//! session's own repository is read without a question, and only if it is trusted or names no programs.

use std::path::Path;

use super::Command;
use crate::call::GitProgram;
use crate::decide::Case;
use crate::fs::{EntryKind, FsView};
use crate::paths::physical;
use crate::shell::{Class, Part};

/// What is to be said of the repository that the shell stands in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Repository {
    /// It may be read.
    Harmless,
    /// There is none, or it is not the session's own.
    Foreign,
    /// Reading it runs this.
    Runs(GitProgram),
}

impl Command<'_> {
    /// The first repository at or above the shell's directory.
    pub(super) fn repository(&self, case: &Case<'_>) -> Repository {
        let fs = self.around.fs;
        let primary = &case.dirs.primary.physical;
        let at = physical(self.around.cwd, fs);
        for directory in at.ancestors() {
            match fs.lstat(&directory.join(".git")) {
                Some(EntryKind::Directory | EntryKind::File) if primary.starts_with(directory) => {
                    let runs = case.facts.repositories.and_then(|all| all.program(directory));
                    return runs.map_or(Repository::Harmless, Repository::Runs);
                }
                Some(_) => return Repository::Foreign,
                None if looks_bare(directory, fs) => return Repository::Foreign,
                None => {}
            }
        }
        Repository::Foreign
    }

    /// What stands in the way of a git command that only reads.
    pub(super) fn git_program(&self, part: &Part, case: &Case<'_>) -> Option<GitProgram> {
        if part.class != Class::ReadOnly || part.program.as_deref() != Some("git") {
            return None;
        }
        match self.repository(case) {
            Repository::Runs(program) => Some(program),
            Repository::Harmless | Repository::Foreign => None,
        }
    }
}

/// Whether git would take the directory itself for a repository.
fn looks_bare(directory: &Path, fs: &dyn FsView) -> bool {
    fs.lstat(&directory.join("HEAD")).is_some()
        && fs.lstat(&directory.join("objects")).is_some()
        && fs.lstat(&directory.join("refs")).is_some()
}
