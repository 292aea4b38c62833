//! Path resolution: the forms of a path.
//!
//! A path has a lexical form (dots removed from the text), one per link on its way, and a physical one. A deny or
//! ask rule needs to match one of them, an allow rule all of them.

pub(crate) mod cached_fs;
pub(crate) mod folded_path;
pub mod protected;
pub(crate) mod suspicious;
mod worktree_paths;

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use crate::fs::{FileType, FsView};

/// Links that may follow each other, as in the kernel.
const MAX_SYMLINKS: usize = 40;

/// Context for resolving relative and special paths.
#[derive(Debug, Clone, Copy)]
pub struct PathContext<'a> {
    /// Base of relative paths.
    pub cwd: &'a Path,
    /// The user's home directory.
    pub home: &'a Path,
    pub fs: &'a dyn FsView,
}

/// A path with all its forms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedPath {
    /// The text without dots and doubled slashes.
    pub lexical: PathBuf,
    /// One form per link on the way.
    pub hops: Vec<PathBuf>,
    /// Path with all links resolved; missing components are kept by name.
    pub physical: PathBuf,
    /// True if the path leads through `/proc` or `/dev/fd`, which differ per process.
    pub via_proc: bool,
}

impl ResolvedPath {
    /// All forms, the lexical one first.
    pub fn forms(&self) -> impl Iterator<Item = &Path> {
        let hops = self.hops.iter().map(PathBuf::as_path);
        let physical = (self.physical != self.lexical).then_some(self.physical.as_path());
        std::iter::once(self.lexical.as_path()).chain(hops).chain(physical)
    }

    /// Returns true if the path leads through a link.
    pub fn is_linked(&self) -> bool {
        self.lexical != self.physical
    }
}

/// A file, as resolved when the call was decided. The tool must use this path and not resolve the name again: a
/// directory could have become a link in between.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedFile {
    /// Absolute path without dots, for display. It may lead through links.
    pub display_path: PathBuf,
    /// Path without links at decision time. A link found there later was not part of the decision.
    pub real_path: PathBuf,
}

impl ResolvedFile {
    /// Creates a file from its resolved path. A `..` behind a link leaves the link's target, not the directory of the
    /// link, so the lexical path would be wrong; the physical path is displayed then.
    pub(crate) fn new(written: &str, path: &ResolvedPath) -> Self {
        let goes_back = Path::new(written).components().any(|part| part == Component::ParentDir);
        let shown = if goes_back && path.is_linked() { &path.physical } else { &path.lexical };
        Self { display_path: shown.clone(), real_path: path.physical.clone() }
    }
}

/// Resolves a path as a tool or command writes it. A leading `~/` is the home directory.
pub fn resolve(written: &str, context: &PathContext<'_>) -> ResolvedPath {
    let path = match written.strip_prefix('~') {
        Some("") => context.home.to_owned(),
        Some(rest) if rest.starts_with('/') => context.home.join(rest.trim_start_matches('/')),
        _ => context.cwd.join(written),
    };
    resolve_absolute(&path, context)
}

/// Resolves an absolute path.
pub fn resolve_absolute(path: &Path, context: &PathContext<'_>) -> ResolvedPath {
    let lexical = normalize_lexically(path);
    let mut walk =
        Resolver { context, current: PathBuf::from("/"), remaining: split_path(path), hops: Vec::new() };
    let through_process = walk.run() || is_proc_path(&lexical);
    let Resolver { current: physical, mut hops, .. } = walk;
    hops.retain(|hop| *hop != lexical && *hop != physical);
    hops.dedup();
    ResolvedPath { lexical, hops, physical, via_proc: through_process }
}

/// Resolves all links of a path.
pub fn resolve_physical_path(path: &Path, fs: &dyn FsView) -> PathBuf {
    let context = PathContext { cwd: Path::new("/"), home: Path::new("/"), fs };
    resolve_absolute(path, &context).physical
}

/// Removes `.`, `..` and doubled slashes from the text of a path.
pub fn normalize_lexically(path: &Path) -> PathBuf {
    let mut out = PathBuf::from("/");
    for component in path.components() {
        match component {
            Component::ParentDir => {
                out.pop();
            }
            Component::Normal(name) => out.push(name),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    out
}

/// Returns true if the path itself lies in `/proc` or `/dev/fd`, which differ per process.
pub(crate) fn is_proc_path(path: &Path) -> bool {
    path.starts_with("/proc") || path.starts_with("/dev/fd")
}

/// Resolves a path component by component.
struct Resolver<'a> {
    context: &'a PathContext<'a>,
    current: PathBuf,
    remaining: VecDeque<OsString>,
    hops: Vec<PathBuf>,
}

impl Resolver<'_> {
    /// Resolves all components. Returns true if the path led through a link in `/proc`.
    fn run(&mut self) -> bool {
        let mut links = 0;
        let mut through_process = false;
        let mut missing = false;
        while let Some(name) = self.remaining.pop_front() {
            if name == ".." {
                self.current.pop();
                missing = false;
                continue;
            }
            let next = self.current.join(&name);
            let target = match links {
                MAX_SYMLINKS.. => None,
                _ if missing => self.resolve_process_link(&next),
                _ => self.find_link_target(&next),
            };
            missing = missing || target.is_none() && self.context.fs.lstat(&next).is_none();
            let Some(target) = target else {
                self.current = next;
                continue;
            };
            links += 1;
            through_process = through_process || is_proc_path(&next);
            for part in split_path(&target).into_iter().rev() {
                self.remaining.push_front(part);
            }
            if target.is_absolute() {
                self.current = PathBuf::from("/");
            }
            let rest: PathBuf = self.remaining.iter().collect();
            self.hops.push(normalize_lexically(&self.current.join(rest)));
        }
        through_process
    }

    /// Finds the target of the link at a path.
    fn find_link_target(&self, path: &Path) -> Option<PathBuf> {
        if let Some(seen) = self.resolve_process_link(path) {
            return Some(seen);
        }
        (self.context.fs.lstat(path)? == FileType::Link).then(|| self.context.fs.readlink(path)).flatten()
    }
}

impl Resolver<'_> {
    /// Resolves the target of a `/proc` link of a process, as the command will see it rather than this process.
    fn resolve_process_link(&self, path: &Path) -> Option<PathBuf> {
        path.to_str().and_then(parse_proc_link_name).map(|seen| match seen {
            "cwd" => self.context.cwd.to_owned(),
            _ => PathBuf::from("/"),
        })
    }
}

/// Returns `cwd` or `root` if the path is that link of a process in `/proc`.
fn parse_proc_link_name(path: &str) -> Option<&str> {
    let (_process, mut rest) = path.strip_prefix("/proc/")?.split_once('/')?;
    if let Some((_thread, below)) = rest.strip_prefix("task/").and_then(|task| task.split_once('/')) {
        rest = below;
    }
    matches!(rest, "cwd" | "root").then_some(rest)
}

fn split_path(path: &Path) -> VecDeque<OsString> {
    let named = path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::FakeFs;

    fn disk() -> FakeFs {
        FakeFs::with_files(["/fx/proj/src/app.ts", "/fx/outside/data.txt", "/fx/proj/secrets/key"])
            .with_link("/fx/proj/out", "/fx/outside")
            .with_link("/fx/proj/key", "secrets/key")
            .with_link("/fx/proj/loop", "loop")
            .with_link("/fx/proj/two", "out")
            .with_link("/fx/proj/nowhere", "/fx/outside/new")
    }

    fn spell(written: &str, fs: &FakeFs) -> ResolvedPath {
        resolve(written, &PathContext { cwd: Path::new("/fx/proj"), home: Path::new("/home/me"), fs })
    }

    #[test]
    fn paths_resolve() {
        let fs = disk();
        let rows = [
            ("src/app.ts", "/fx/proj/src/app.ts", "/fx/proj/src/app.ts"),
            ("./src/..//src/./app.ts", "/fx/proj/src/app.ts", "/fx/proj/src/app.ts"),
            ("out/data.txt", "/fx/proj/out/data.txt", "/fx/outside/data.txt"),
            ("two/data.txt", "/fx/proj/two/data.txt", "/fx/outside/data.txt"),
            ("out/../x", "/fx/proj/x", "/fx/x"),
            ("key", "/fx/proj/key", "/fx/proj/secrets/key"),
            ("nowhere", "/fx/proj/nowhere", "/fx/outside/new"),
            ("new/deep/file", "/fx/proj/new/deep/file", "/fx/proj/new/deep/file"),
            ("~/x", "/home/me/x", "/home/me/x"),
            ("~", "/home/me", "/home/me"),
            ("~x", "/fx/proj/~x", "/fx/proj/~x"),
            ("/proc/self/cwd/src", "/proc/self/cwd/src", "/fx/proj/src"),
            ("/proc/123/root/etc", "/proc/123/root/etc", "/etc"),
            ("/proc/self/task/9/cwd/src", "/proc/self/task/9/cwd/src", "/fx/proj/src"),
            ("/../..", "/", "/"),
        ];
        for (written, lexical, physical) in rows {
            let got = spell(written, &fs);
            assert_eq!(
                (got.lexical.to_str(), got.physical.to_str()),
                (Some(lexical), Some(physical)),
                "{written}"
            );
        }
    }

    #[test]
    fn each_link_adds_a_form() {
        let got = spell("two/data.txt", &disk());
        assert!(got.hops.contains(&PathBuf::from("/fx/proj/out/data.txt")), "{got:?}");
    }

    #[test]
    fn link_loop_ends() {
        assert!(spell("loop/x", &disk()).physical.starts_with("/fx/proj/loop"));
    }
}
