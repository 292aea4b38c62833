//! A policy on this file system: finds the paths that look different inside and orders them as a plan of mounts.
//!
//! Looking at the file system and deciding are apart: [`find_marks`] looks, [`marks::Marks::into_plan`] is pure.
//!
//! - `marks`: the found paths, and the plan made of them
//! - `git`: files of a repository that decide what git executes; `git_config`: paths named in its configuration
//! - `repositories`: repositories below a writable root
//! - `globs`: paths that match a rule; `canonical`: paths without links

mod canonical;
mod git;
mod git_config;
mod globs;
mod marks;
mod repositories;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

pub use marks::{CoverKind, MarkKind, Marks, MissingName};
pub use repositories::RepositoryCache;

use crate::plan::Presence;
use crate::policy::{FileLayer, FileRules, Policy, WRITABLE_EXCEPTION};
use canonical::Located;

/// A policy that cannot be carried out on this file system.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    #[error("the working directory {path} cannot be used: {error}")]
    WorkingDirectory { path: PathBuf, error: std::io::Error },
    #[error("the folder for temporary files {path} cannot be used: {error}. Create it first")]
    Scratch { path: PathBuf, error: std::io::Error },
    #[error("{path} cannot be a writable root. Name a folder below it")]
    ForbiddenRoot { path: PathBuf },
    #[error("the pattern {pattern:?} is invalid: {reason}")]
    InvalidPattern { pattern: String, reason: String },
    #[error(
        "the pattern {pattern:?} covers more than {limit} files and folders. Give it a longer literal start"
    )]
    PatternTooWide { pattern: String, limit: usize },
}

/// Looks at the file system and returns the paths that look different inside, and the protected names that are missing.
/// Of the folders in `program_path`, the `PATH` of the command, those below `/run` and `/tmp` stay readable.
pub fn find_marks(
    policy: &Policy,
    program_path: Option<&OsStr>,
    repositories: &mut RepositoryCache,
) -> Result<Marks, ResolveError> {
    let mut marks = Marks::default();
    let FileLayer::Confined(rules) = &policy.files else { return Ok(marks) };
    let working_directory = find_root(&policy.working_directory)
        .map_err(|error| ResolveError::WorkingDirectory { path: policy.working_directory.clone(), error })?;
    let scratch = find_root(&policy.scratch)
        .map_err(|error| ResolveError::Scratch { path: policy.scratch.clone(), error })?;
    let mut roots = vec![working_directory.clone()];
    roots.extend(rules.allow_write.iter().filter_map(|path| find_root(path).ok()));
    for root in roots.iter().chain([&scratch]) {
        if root.parent().is_none() || ["/proc", "/dev", "/sys"].iter().any(|top| root.starts_with(top)) {
            return Err(ResolveError::ForbiddenRoot { path: root.clone() });
        }
        marks.add(root, MarkKind::Root, Presence::Required);
    }
    mark_fresh_folders(program_path, &mut marks);
    for root in &roots {
        let covers = if *root == working_directory { Covering::Missing } else { Covering::Nothing };
        mark_protected_names(root, rules, covers, &mut marks);
        git::mark_repository(root, git::Nesting::Top(covers), &mut marks);
        for repository in repositories.find(root) {
            git::mark_repository(&repository, git::Nesting::Nested, &mut marks);
        }
    }
    mark_rules(rules, &working_directory, &mut marks)?;
    Ok(marks)
}

/// Whether missing protected names are covered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Covering {
    Missing,
    Nothing,
}

/// Returns the real path of a writable root.
fn find_root(path: &Path) -> std::io::Result<PathBuf> {
    std::fs::canonicalize(path)
}

/// Marks `/tmp` and `/run`, and what of them is put back.
fn mark_fresh_folders(program_path: Option<&OsStr>, marks: &mut Marks) {
    let fresh: Vec<PathBuf> =
        ["/tmp", "/run"].iter().filter_map(|path| std::fs::canonicalize(path).ok()).collect();
    for folder in &fresh {
        marks.add(folder, MarkKind::Fresh, Presence::Required);
    }
    for folder in
        program_path.map(std::env::split_paths).into_iter().flatten().filter(|path| path.is_absolute())
    {
        let Ok(real) = std::fs::canonicalize(&folder) else { continue };
        if fresh.iter().any(|fresh| real.starts_with(fresh) && real != *fresh) {
            marks.add(&real, MarkKind::Readable, Presence::Optional);
        }
    }
}

fn mark_protected_names(root: &Path, rules: &FileRules, covers: Covering, marks: &mut Marks) {
    for name in &rules.protected_names {
        mark_read_only(&root.join(name), covers, Presence::Required, marks);
    }
    let exception = root.join(WRITABLE_EXCEPTION);
    if exception.symlink_metadata().is_ok_and(|metadata| metadata.is_dir())
        && std::fs::canonicalize(&exception).is_ok_and(|real| real == exception)
    {
        marks.add(&exception, MarkKind::Exception, Presence::Optional);
    }
}

/// Marks a path, the links on the way and what they lead to as read-only, or notes that it is missing.
pub(crate) fn mark_read_only(path: &Path, covers: Covering, presence: Presence, marks: &mut Marks) {
    let located = canonical::locate(path);
    for link in located.links() {
        marks.add(link, MarkKind::ReadOnlyLink, presence);
    }
    match located {
        Located::Present { path, .. } => marks.add(&path, MarkKind::ReadOnly, presence),
        Located::Missing { path, .. } if covers == Covering::Missing => {
            marks.note_missing(path, CoverKind::Folder);
        }
        Located::Missing { .. } | Located::Unknown { .. } => {}
    }
}

fn mark_rules(rules: &FileRules, working_directory: &Path, marks: &mut Marks) -> Result<(), ResolveError> {
    for rule in &rules.deny_write {
        for found in globs::find_paths(rule)? {
            let covers =
                if found.path.starts_with(working_directory) { Covering::Missing } else { Covering::Nothing };
            mark_read_only(&found.path, covers, found.presence, marks);
        }
    }
    for rule in &rules.deny_read {
        for found in globs::find_paths(rule)? {
            mark_hidden(&found.path, MarkKind::Hidden, found.presence, marks);
        }
    }
    for path in &rules.hidden {
        mark_hidden(path, MarkKind::AlwaysHidden, Presence::Required, marks);
    }
    for path in rules.allow_read.iter().filter_map(|path| std::fs::canonicalize(path).ok()) {
        marks.add(&path, MarkKind::Readable, Presence::Optional);
    }
    Ok(())
}

/// Marks what a path leads to as hidden. A missing path is left out; of one that cannot be looked at, the nearest folder
/// above is hidden.
fn mark_hidden(path: &Path, kind: MarkKind, presence: Presence, marks: &mut Marks) {
    match canonical::locate(path) {
        Located::Present { path, .. } | Located::Unknown { folder: path, .. } if path.parent().is_some() => {
            marks.add(&path, kind, presence);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests;
