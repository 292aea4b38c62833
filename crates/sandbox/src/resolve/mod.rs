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

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

pub(crate) use git::REDIRECTION;
pub use marks::{CoverKind, MarkKind, Marks, MissingName};
pub use repositories::RepositoryCache;

use crate::plan::Presence;
use crate::policy::{FileLayer, FileRules, Policy, RuleError, WRITABLE_EXCEPTION, check_root};
use canonical::Located;

/// A policy that cannot be carried out on this file system.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    #[error("the working directory {path} cannot be used: {error}")]
    WorkingDirectory { path: PathBuf, error: std::io::Error },
    #[error("the folder for temporary files {path} cannot be used: {error}. Create it first")]
    Scratch { path: PathBuf, error: std::io::Error },
    #[error(transparent)]
    Rule(#[from] RuleError),
    #[error(
        "the pattern {pattern:?} covers more than {limit} files and folders. Give it a longer literal start"
    )]
    PatternTooWide { pattern: String, limit: usize },
}

/// Variables of the command that decide what its programs read.
#[derive(Debug, Clone, Copy, Default)]
pub struct Variables<'a> {
    /// `PATH`: of its folders, those below `/run` and `/tmp` stay readable.
    pub program_path: Option<&'a OsStr>,
    /// `HOME` and `XDG_CONFIG_HOME`: where the user's git configuration is.
    pub home: Option<&'a Path>,
    pub config_home: Option<&'a Path>,
}

impl<'a> Variables<'a> {
    /// Takes the variables from an environment.
    pub fn from_environment(environment: &'a BTreeMap<OsString, OsString>) -> Self {
        let path = |name: &str| environment.get(OsStr::new(name)).map(Path::new);
        Self {
            program_path: environment.get(OsStr::new("PATH")).map(OsString::as_os_str),
            home: path("HOME").filter(|path| path.is_absolute()),
            config_home: path("XDG_CONFIG_HOME").filter(|path| path.is_absolute()),
        }
    }
}

/// The writable roots of a policy, by their real paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Roots {
    /// Missing protected names are covered here. The first one is the working directory.
    pub covered: Vec<PathBuf>,
    pub others: Vec<PathBuf>,
}

impl Roots {
    /// Returns all roots with protected names.
    pub fn all(&self) -> impl Iterator<Item = &PathBuf> {
        self.covered.iter().chain(&self.others)
    }
}

/// Finds the writable roots of a policy, without the folder for temporary files. Missing ones are left out.
pub fn find_roots(policy: &Policy) -> Result<Roots, ResolveError> {
    let working_directory = std::fs::canonicalize(&policy.working_directory)
        .map_err(|error| ResolveError::WorkingDirectory { path: policy.working_directory.clone(), error })?;
    let mut roots = Roots { covered: vec![working_directory], others: Vec::new() };
    if let FileLayer::Confined(rules) = &policy.files {
        let real = |paths: &[PathBuf]| -> Vec<PathBuf> {
            paths.iter().filter_map(|path| std::fs::canonicalize(path).ok()).collect()
        };
        roots.covered.extend(real(&rules.work_directories));
        roots.others = real(&rules.allow_write);
    }
    Ok(roots)
}

/// Looks at the file system and returns the paths that look different inside, and the protected names that are missing.
pub fn find_marks(
    policy: &Policy,
    roots: &Roots,
    variables: Variables<'_>,
    repositories: &mut RepositoryCache,
) -> Result<Marks, ResolveError> {
    let mut marks = Marks::default();
    let FileLayer::Confined(rules) = &policy.files else { return Ok(marks) };
    let scratch = std::fs::canonicalize(&policy.scratch)
        .map_err(|error| ResolveError::Scratch { path: policy.scratch.clone(), error })?;
    for root in roots.all().chain([&scratch]) {
        check_root(root)?;
        marks.add(root, MarkKind::Root, Presence::Required);
    }
    mark_fresh_folders(variables.program_path, &mut marks);
    let user = git::UserConfig::read(variables.home, variables.config_home);
    user.mark_files(&mut marks);
    for root in roots.all() {
        let covers = if roots.covered.contains(root) { Covering::Missing } else { Covering::Nothing };
        mark_protected_names(root, rules, covers, &mut marks);
        git::mark_repository(root, git::Nesting::Top, &user, &mut marks);
        for repository in repositories.find(root) {
            git::mark_repository(&repository, git::Nesting::Nested, &user, &mut marks);
        }
    }
    mark_rules(rules, roots, &mut marks)?;
    Ok(marks)
}

/// Whether missing protected names are covered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Covering {
    Missing,
    Nothing,
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

fn mark_rules(rules: &FileRules, roots: &Roots, marks: &mut Marks) -> Result<(), ResolveError> {
    for rule in &rules.deny_write {
        for found in globs::find_paths(rule)? {
            let is_covered = roots.covered.iter().any(|root| found.path.starts_with(root));
            let covers = if is_covered { Covering::Missing } else { Covering::Nothing };
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
