//! Where a path leads: its spellings, and whether it lies inside the directories of the session.
//!
//! A path has a lexical spelling (dots taken out of the text), one for each link on the way, and a physical one. What
//! refuses looks at all of them and one is enough; what grants needs all of them.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use crate::fs::{EntryKind, FsView};

/// How many links may follow each other, as in the kernel.
const MAX_SYMLINKS: usize = 40;

/// What relative and special paths are read against.
#[derive(Debug, Clone, Copy)]
pub struct PathContext<'a> {
    /// The directory that relative paths begin at.
    pub cwd: &'a Path,
    /// The person's home.
    pub home: &'a Path,
    /// The disk.
    pub fs: &'a dyn FsView,
}

/// A path in all its spellings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedPath {
    /// The text with dots and doubled slashes taken out.
    pub lexical: PathBuf,
    /// One spelling for each link on the way.
    pub hops: Vec<PathBuf>,
    /// Where it really lies; parts that do not exist are taken by name.
    pub physical: PathBuf,
    /// Whether the way leads through a place that means something else to each process, such as `/proc`.
    pub via_proc: bool,
}

impl ResolvedPath {
    /// All spellings, the lexical one first.
    pub fn spellings(&self) -> impl Iterator<Item = &Path> {
        let hops = self.hops.iter().map(PathBuf::as_path);
        let physical = (self.physical != self.lexical).then_some(self.physical.as_path());
        std::iter::once(self.lexical.as_path()).chain(hops).chain(physical)
    }

    /// Whether the path is reached through a link.
    pub fn is_linked(&self) -> bool {
        self.lexical != self.physical
    }
}

/// Resolves a path as a tool or command names it. A leading `~/` is home.
pub fn resolve(written: &str, around: &PathContext<'_>) -> ResolvedPath {
    let path = match written.strip_prefix('~') {
        Some("") => around.home.to_owned(),
        Some(rest) if rest.starts_with('/') => around.home.join(rest.trim_start_matches('/')),
        _ => around.cwd.join(written),
    };
    resolve_absolute(&path, around)
}

/// Resolves a path that is already absolute.
pub fn resolve_absolute(path: &Path, around: &PathContext<'_>) -> ResolvedPath {
    let lexical = lexical_path(path);
    let mut walk = Resolver { context: around, current: PathBuf::from("/"), remaining: path_components(path), hops: Vec::new() };
    let through_process = walk.run() || is_proc_path(&lexical);
    let Resolver { current: physical, mut hops, .. } = walk;
    hops.retain(|hop| *hop != lexical && *hop != physical);
    hops.dedup();
    ResolvedPath { lexical, hops, physical, via_proc: through_process }
}

/// Where a path really lies.
pub fn physical_path(path: &Path, fs: &dyn FsView) -> PathBuf {
    let around = PathContext { cwd: Path::new("/"), home: Path::new("/"), fs };
    resolve_absolute(path, &around).physical
}

/// The path with `.`, `..` and doubled slashes taken out of the text.
pub fn lexical_path(path: &Path) -> PathBuf {
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

/// Whether a path, by its own spelling, is one that each process sees differently.
pub(crate) fn is_proc_path(path: &Path) -> bool {
    path.starts_with("/proc") || path.starts_with("/dev/fd")
}

/// A walk along a path, component by component.
struct Resolver<'a> {
    context: &'a PathContext<'a>,
    current: PathBuf,
    remaining: VecDeque<OsString>,
    hops: Vec<PathBuf>,
}

impl Resolver<'_> {
    /// Walks to the end. Says whether the way led through a process's own view.
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
                _ if missing => self.process_link(&next),
                _ => self.link_target(&next),
            };
            missing = missing || target.is_none() && self.context.fs.lstat(&next).is_none();
            let Some(target) = target else {
                self.current = next;
                continue;
            };
            links += 1;
            through_process = through_process || is_proc_path(&next);
            for part in path_components(&target).into_iter().rev() {
                self.remaining.push_front(part);
            }
            if target.is_absolute() {
                self.current = PathBuf::from("/");
            }
            let rest: PathBuf = self.remaining.iter().collect();
            self.hops.push(lexical_path(&self.current.join(rest)));
        }
        through_process
    }

    /// Where a link leads.
    fn link_target(&self, path: &Path) -> Option<PathBuf> {
        if let Some(seen) = self.process_link(path) {
            return Some(seen);
        }
        (self.context.fs.lstat(path)? == EntryKind::Link).then(|| self.context.fs.readlink(path)).flatten()
    }
}

impl Resolver<'_> {
    /// What a process sees of itself is answered for the command that will run, not for us.
    fn process_link(&self, path: &Path) -> Option<PathBuf> {
        path.to_str().and_then(proc_link_name).map(|seen| match seen {
            "cwd" => self.context.cwd.to_owned(),
            _ => PathBuf::from("/"),
        })
    }
}

/// `cwd` or `root`, if the path is the link of that name that a process has in `/proc`.
fn proc_link_name(path: &str) -> Option<&str> {
    let (_process, mut rest) = path.strip_prefix("/proc/")?.split_once('/')?;
    if let Some((_thread, below)) = rest.strip_prefix("task/").and_then(|task| task.split_once('/')) {
        rest = below;
    }
    matches!(rest, "cwd" | "root").then_some(rest)
}

fn path_components(path: &Path) -> VecDeque<OsString> {
    let named = path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    });
    named.collect()
}

/// A directory that the session may work in, in both spellings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkDir {
    /// As it was given.
    pub lexical: PathBuf,
    /// Where it really lies.
    pub physical: PathBuf,
}

impl WorkDir {
    /// A directory as it was given.
    pub fn new(path: &Path, fs: &dyn FsView) -> Self {
        Self { lexical: lexical_path(path), physical: physical_path(path, fs) }
    }

    /// Whether a path lies in it, in either spelling.
    pub fn contains(&self, path: &Path) -> bool {
        path.starts_with(&self.lexical) || path.starts_with(&self.physical)
    }
}

/// Whether a path lies inside one of the directories, as written **and** in truth. Components are compared, not text.
pub fn is_inside<'a>(path: &ResolvedPath, mut dirs: impl Iterator<Item = &'a WorkDir> + Clone) -> bool {
    let holds = |path: &Path| dirs.clone().any(|dir| dir.contains(path));
    if path.via_proc {
        return false;
    }
    let really_inside = holds(&path.physical);
    really_inside && holds(&path.lexical) && dirs.next().is_some()
}

/// Whether a name is one that different systems read differently: trailing dots or blanks, `...`, short names, streams.
pub fn is_suspicious(path: &Path) -> bool {
    path.components().any(|component| match component {
        Component::Normal(name) => is_suspicious_name(&name.to_string_lossy()),
        Component::RootDir | Component::CurDir | Component::ParentDir | Component::Prefix(_) => false,
    })
}

fn is_suspicious_name(name: &str) -> bool {
    let short_name = name.rsplit_once('~').is_some_and(|(stem, number)| {
        !stem.is_empty() && number.split_once('.').map_or(number, |(number, _)| number).parse::<u16>().is_ok()
    });
    name.ends_with(['.', ' ']) || short_name || name.starts_with("\\\\")
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
            .with_link("/there", "/fx/proj")
    }

    fn spell(written: &str, fs: &FakeFs) -> ResolvedPath {
        resolve(written, &PathContext { cwd: Path::new("/fx/proj"), home: Path::new("/home/me"), fs })
    }

    #[test]
    fn where_paths_lead() {
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
    fn every_link_on_the_way_is_a_spelling() {
        let got = spell("two/data.txt", &disk());
        assert!(got.hops.contains(&PathBuf::from("/fx/proj/out/data.txt")), "{got:?}");
    }

    #[test]
    fn a_link_to_itself_ends() {
        assert!(spell("loop/x", &disk()).physical.starts_with("/fx/proj/loop"));
    }

    #[test]
    fn what_lies_inside() {
        let fs = disk();
        let dirs = [WorkDir::new(Path::new("/there"), &fs)];
        let rows = [
            ("src/app.ts", true),
            ("/there/src/app.ts", true),
            ("out/data.txt", false),
            ("/fx/proj-evil/x", false),
            ("/proc/self/cwd/src", false),
            ("nowhere", false),
            ("new", true),
            ("/fx", false),
            ("/fx/proj", true),
        ];
        for (written, expected) in rows {
            assert_eq!(is_inside(&spell(written, &fs), dirs.iter()), expected, "{written}");
        }
    }

    #[test]
    fn suspicious_names() {
        for name in ["/a/b.", "/a/b ", "/a/...", "/a/GIT~1", "/a/GIT~1/x", "/a/PROGRA~1.TXT"] {
            assert!(is_suspicious(Path::new(name)), "{name}");
        }
        for name in ["/a/b", "/a/b~", "/a/.b", "/a/b.c", "/a/~1"] {
            assert!(!is_suspicious(Path::new(name)), "{name}");
        }
    }
}
