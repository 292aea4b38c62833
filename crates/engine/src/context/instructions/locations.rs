//! Candidate paths of instruction files, from the most general to the nearest.

use std::path::{Path, PathBuf};

use whimbrel_config::locations::ConfigLocations;
use whimbrel_config::settings::LayerScope;
use whimbrel_os::files;
use whimbrel_wire::options::SettingSource;

use super::InstructionKind;

/// Project files in a directory, in order; the last one wins where they differ.
const PROJECT_FILES: [&str; 3] = ["AGENTS.md", "CLAUDE.md", ".claude/CLAUDE.md"];

/// File of the user for this project.
const LOCAL_FILE: &str = "CLAUDE.local.md";

/// Files of the user in the configuration directory.
const USER_FILES: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];

/// A file that may exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CandidateFile {
    pub(super) path: PathBuf,
    /// Its real path, if it is known already.
    pub(super) real_path: Option<PathBuf>,
    pub(super) kind: InstructionKind,
    pub(super) scope: LayerScope,
    /// Directory that it must not leave if the project is not trusted.
    pub(super) boundary: PathBuf,
}

/// The candidates at the start of a session.
pub(super) fn initial_files(locations: &ConfigLocations, managed: &[PathBuf]) -> Vec<CandidateFile> {
    let mut candidates: Vec<CandidateFile> = managed
        .iter()
        .map(|path| candidate(path.clone(), InstructionKind::Managed, LayerScope::User, path))
        .collect();
    if let (Some(config), true) = (&locations.user_dir, locations.includes(SettingSource::User)) {
        candidates.extend(
            USER_FILES
                .map(|name| candidate(config.join(name), InstructionKind::User, LayerScope::User, config)),
        );
    }
    let enclosing = enclosing_checkout(&locations.working_dir);
    // The root directory belongs to no project.
    let mut dirs: Vec<&Path> =
        locations.working_dir.ancestors().filter(|dir| dir.parent().is_some()).collect();
    dirs.reverse();
    for dir in dirs {
        let same_project = enclosing.as_ref().is_some_and(|enclosing| enclosing.contains(dir));
        let found = files_in_dir(locations, dir, DirResolution::Unresolved);
        candidates.extend(found.filter(|file| !same_project || file.kind != InstructionKind::Project));
    }
    candidates.extend(added_files(locations));
    candidates
}

/// The candidates in further directories.
pub(super) fn added_files(locations: &ConfigLocations) -> Vec<CandidateFile> {
    let dirs = locations.instruction_dirs.to_vec();
    dirs.iter().flat_map(|dir| files_in_dir(locations, dir, DirResolution::Unresolved)).collect()
}

/// The candidates between the session's directory and a file below it.
pub(super) fn nested_files(locations: &ConfigLocations, file: &Path) -> Vec<CandidateFile> {
    let mut dirs: Vec<&Path> =
        file.ancestors().skip(1).take_while(|dir| *dir != locations.working_dir).collect();
    if !file.starts_with(&locations.working_dir) {
        return Vec::new();
    }
    dirs.reverse();
    let config = locations.user_dir.as_ref().and_then(|config| files::real_path(config));
    let dir = DirResolution::Resolved { config: config.as_deref() };
    dirs.into_iter().flat_map(|path| files_in_dir(locations, path, dir)).collect()
}

/// State of a directory's path resolution.
#[derive(Debug, Clone, Copy)]
enum DirResolution<'a> {
    /// It may contain symlinks.
    Unresolved,
    /// It contains none; `config` is the real path of the user's configuration directory. Avoids resolving every path
    /// from the root, which is slow in deep directories.
    Resolved { config: Option<&'a Path> },
}

impl DirResolution<'_> {
    /// The real path of a file in the directory, if it is known without resolving the whole path.
    fn real_path_of(self, path: &Path) -> Option<PathBuf> {
        let is_linked = |path: &Path| files::link_target(path).is_some();
        let hidden = path.parent().filter(|dir| dir.ends_with(".claude"));
        match self {
            Self::Resolved { .. } if !is_linked(path) && !hidden.is_some_and(is_linked) => {
                Some(path.to_owned())
            }
            Self::Resolved { .. } => files::real_path(path),
            Self::Unresolved => None,
        }
    }

    fn is_user_config(self, locations: &ConfigLocations, path: &Path, real_path: Option<&Path>) -> bool {
        match (self, real_path) {
            (Self::Resolved { config }, Some(real_path)) => {
                config.is_some_and(|config| real_path.starts_with(config))
            }
            (Self::Resolved { .. }, None) | (Self::Unresolved, _) => locations.is_user_config(path),
        }
    }
}

/// The files that exist in a directory. Most have none and cost one stat per name.
fn files_in_dir<'a>(
    locations: &'a ConfigLocations,
    dir: &'a Path,
    resolution: DirResolution<'a>,
) -> impl Iterator<Item = CandidateFile> + 'a {
    // A file above the project is limited to its own directory.
    let repo_root = locations.repo_root();
    let boundary = if dir.starts_with(repo_root) { repo_root } else { dir };
    let project = PROJECT_FILES.iter().map(|name| (*name, InstructionKind::Project, SettingSource::Project));
    let names = project.chain([(LOCAL_FILE, InstructionKind::Local, SettingSource::Local)]);
    names.filter(|(.., source)| locations.includes(*source)).filter_map(move |(name, kind, source)| {
        let path = dir.join(name);
        let exists = !matches!(files::file_kind(&path), Ok(files::FileKind::Missing));
        if !exists {
            return None;
        }
        let real_path = resolution.real_path_of(&path);
        if resolution.is_user_config(locations, &path, real_path.as_deref()) {
            return None;
        }
        let scope = locations.scope(source, &path);
        Some(CandidateFile { real_path, ..candidate(path, kind, scope, boundary) })
    })
}

fn candidate(path: PathBuf, kind: InstructionKind, scope: LayerScope, boundary: &Path) -> CandidateFile {
    CandidateFile { path, real_path: None, kind, scope, boundary: boundary.to_owned() }
}

/// The main checkout that contains the worktree of the session.
struct EnclosingCheckout {
    root: PathBuf,
    worktree: PathBuf,
}

impl EnclosingCheckout {
    /// Returns whether a directory belongs to the main checkout and not to the worktree. Its project files are other
    /// versions of the worktree's files; local files of the user exist only there.
    fn contains(&self, dir: &Path) -> bool {
        dir.starts_with(&self.root) && !dir.starts_with(&self.worktree)
    }
}

/// In a git worktree, the main checkout if it contains the worktree.
fn enclosing_checkout(root: &Path) -> Option<EnclosingCheckout> {
    let worktree = root
        .ancestors()
        .find(|dir| !matches!(files::file_kind(&dir.join(".git")), Ok(files::FileKind::Missing)))?;
    let (bytes, _) = files::read(&worktree.join(".git"), 64 * 1024).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    let git = files::real_path(&worktree.join(text.strip_prefix("gitdir:")?.trim()))?;
    // <main>/.git/worktrees/<name>
    let worktrees = git.parent().filter(|dir| dir.ends_with(".git/worktrees"))?;
    let main = worktrees.parent()?.parent()?;
    worktree
        .starts_with(main)
        .then(|| EnclosingCheckout { root: main.to_owned(), worktree: worktree.to_owned() })
}
