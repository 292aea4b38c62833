//! Which git repository a read-only git command would speak of. Its settings can name programs to run, so only the
//! session's own repository is trusted.

use std::path::Path;

use crate::decide::Case;
use crate::fs::{EntryKind, FsView};
use crate::paths::{Surroundings, physical};

/// Whether the first repository at or above the shell's directory is the one that the session works in.
pub(super) fn is_trusted(case: &Case<'_>, around: &Surroundings<'_>) -> bool {
    let primary = &case.dirs.primary.physical;
    let at = physical(around.cwd, around.fs);
    for directory in at.ancestors() {
        match around.fs.lstat(&directory.join(".git")) {
            Some(EntryKind::Directory | EntryKind::File) => return primary.starts_with(directory),
            Some(EntryKind::Link | EntryKind::Special) => return false,
            None if looks_bare(directory, around.fs) => return false,
            None => {}
        }
    }
    false
}

/// Whether git would take the directory itself for a repository.
fn looks_bare(directory: &Path, fs: &dyn FsView) -> bool {
    fs.lstat(&directory.join("HEAD")).is_some()
        && fs.lstat(&directory.join("objects")).is_some()
        && fs.lstat(&directory.join("refs")).is_some()
}
