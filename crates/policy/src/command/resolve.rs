//! Path resolution for a command. Many paths lie in few directories, so each directory is resolved once.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::ShellCommand;
use crate::fs::FileType;
use crate::paths::{PathContext, ResolvedPath, normalize_lexically, resolve_absolute};

/// Cached path resolutions.
const MAX_CACHED_RESOLUTIONS: usize = 20_000;

/// Cache of resolved paths and directories.
#[derive(Debug, Default)]
pub(super) struct ResolutionCache {
    /// Resolved paths by their text, up to a limit.
    by_text: RefCell<HashMap<String, Rc<[ResolvedPath]>>>,
    /// Statuses of the directories of paths.
    dir_statuses: RefCell<HashMap<OsString, DirStatus>>,
}

/// What is on the way to a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DirStatus {
    /// Only directories.
    Direct,
    /// The directory does not exist, and there is no link on the way to it.
    Missing,
    /// Links, or `/proc`.
    Linked,
}

impl ShellCommand<'_> {
    /// Resolves a path from each directory that the command may be in.
    pub(super) fn resolve(&self, text: &str) -> Rc<[ResolvedPath]> {
        if let Some(known) = self.disk.resolution_cache.by_text.borrow().get(text) {
            return Rc::clone(known);
        }
        let resolved: Rc<[ResolvedPath]> = self.resolve_from(text, self.directories.all()).into();
        let mut known = self.disk.resolution_cache.by_text.borrow_mut();
        if known.len() * resolved.len() < MAX_CACHED_RESOLUTIONS {
            known.insert(text.to_owned(), Rc::clone(&resolved));
        }
        resolved
    }

    /// Resolves a path from each directory that the shell itself may be in.
    pub(super) fn resolve_from_shell_dirs(&self, text: &str) -> Rc<[ResolvedPath]> {
        if text.starts_with('/') || self.directories.option_dirs.is_empty() {
            return self.resolve(text);
        }
        self.resolve_from(text, self.directories.shell_dirs.iter().map(PathBuf::as_path)).into()
    }

    fn resolve_from<'d>(&self, text: &str, from: impl Iterator<Item = &'d Path>) -> Vec<ResolvedPath> {
        let path = Path::new(text);
        if path.is_absolute() {
            return vec![self.resolve_one(path, self.disk.context.cwd)];
        }
        from.map(|cwd| self.resolve_one(&cwd.join(path), cwd)).collect()
    }

    /// Resolves an absolute path for a command in some directory.
    fn resolve_one(&self, path: &Path, cwd: &Path) -> ResolvedPath {
        let context = PathContext { cwd, ..self.disk.context };
        match split_parent(path) {
            Some((directory, path)) if self.is_plain_path(path, directory, &context) => ResolvedPath {
                lexical: path.to_owned(),
                hops: Vec::new(),
                physical: path.to_owned(),
                via_proc: false,
            },
            _ => resolve_absolute(path, &context),
        }
    }

    /// Returns true if a path contains no links.
    fn is_plain_path(&self, path: &Path, directory: &Path, context: &PathContext<'_>) -> bool {
        let known = self.disk.resolution_cache.dir_statuses.borrow().get(directory.as_os_str()).copied();
        let route = known.unwrap_or_else(|| {
            let route = find_dir_status(directory, context);
            self.disk
                .resolution_cache
                .dir_statuses
                .borrow_mut()
                .insert(directory.as_os_str().to_owned(), route);
            route
        });
        match route {
            DirStatus::Direct => context.fs.lstat(path) != Some(FileType::Link),
            DirStatus::Missing => true,
            DirStatus::Linked => false,
        }
    }
}

/// Splits a path into its directory and itself without a trailing slash; `None` if it contains dots or empty
/// components.
fn split_parent(path: &Path) -> Option<(&Path, &Path)> {
    let text = path.to_str()?.trim_end_matches('/');
    let named = text.strip_prefix('/')?.split('/').all(|name| !matches!(name, "" | "." | ".."));
    // `/proc` and `/dev` differ per process and are not cached.
    let is_special = text.starts_with("/proc/") || text.starts_with("/dev/");
    let (directory, _) =
        text.rsplit_once('/').filter(|(directory, _)| named && !is_special && !directory.is_empty())?;
    Some((Path::new(directory), Path::new(text)))
}

fn find_dir_status(directory: &Path, context: &PathContext<'_>) -> DirStatus {
    let resolved = resolve_absolute(directory, context);
    if resolved.is_linked() || resolved.via_proc || !resolved.hops.is_empty() {
        return DirStatus::Linked;
    }
    debug_assert_eq!(resolved.lexical, normalize_lexically(directory));
    match context.fs.lstat(directory) {
        Some(FileType::Directory) => DirStatus::Direct,
        None => DirStatus::Missing,
        Some(FileType::File | FileType::Link | FileType::Special) => DirStatus::Linked,
    }
}
