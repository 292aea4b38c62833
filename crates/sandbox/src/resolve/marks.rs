//! Paths that look different inside, and the plan of mounts made of them. Pure.
//!
//! Marks are laid over each other: a mark counts unless what encloses it makes it superfluous or forbids it. The rules
//! are in [`is_effective`].

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::plan::{MountPlan, Placeholder, PlaceholderKind, Presence, View, ViewKind};

/// How a path shall look. A later kind wins over an earlier one at the same path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MarkKind {
    /// An empty writable folder.
    Fresh,
    /// Readable in a hidden or fresh folder.
    Readable,
    /// A writable root.
    Root,
    /// Writable inside a protected folder.
    Exception,
    ReadOnlyLink,
    ReadOnly,
    Hidden,
    /// Hidden, and nothing below is readable again.
    AlwaysHidden,
}

/// A protected name that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct MissingName {
    pub path: PathBuf,
    pub kind: CoverKind,
}

/// What is made in place of a missing name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CoverKind {
    /// For files that git reads as configuration. Wins over a folder.
    File,
    /// Git passes over empty folders, so that nothing is added or reported.
    Folder,
}

/// The marks of a policy.
#[derive(Debug, Default)]
pub struct Marks {
    marks: BTreeMap<PathBuf, (MarkKind, Presence)>,
    missing: Vec<MissingName>,
    git_folders: Vec<PathBuf>,
}

impl Marks {
    /// Adds a mark. The path has no links and no dots.
    pub fn add(&mut self, path: &Path, kind: MarkKind, presence: Presence) {
        let entry = self.marks.entry(path.to_owned()).or_insert((kind, presence));
        if kind > entry.0 {
            *entry = (kind, presence);
        } else if kind == entry.0 && presence == Presence::Required {
            entry.1 = presence;
        }
    }

    /// Notes a git folder that a command may write.
    pub(crate) fn note_git_folder(&mut self, path: &Path) {
        self.git_folders.push(path.to_owned());
    }

    /// Returns the git folders that a command may write.
    pub(crate) fn git_folders(&self) -> &[PathBuf] {
        &self.git_folders
    }

    /// Notes that a protected name is missing.
    pub fn note_missing(&mut self, path: PathBuf, kind: CoverKind) {
        self.missing.push(MissingName { path, kind });
    }

    /// Returns the missing names that a command could create: those in writable places.
    pub fn missing_names(&self) -> Vec<MissingName> {
        let kept = self.effective_marks();
        let mut missing: Vec<_> = self
            .missing
            .iter()
            .filter(|name| {
                let enclosing = find_enclosing(&kept, &name.path);
                matches!(enclosing, Some((_, MarkKind::Root | MarkKind::Exception)))
            })
            .cloned()
            .collect();
        missing.sort();
        missing.dedup_by(|name, earlier| name.path == earlier.path);
        missing
    }

    /// Returns the plan.
    pub fn into_plan(self) -> MountPlan {
        let kept = self.effective_marks();
        let mut views: Vec<View> = kept
            .iter()
            .map(|(path, &kind)| View {
                path: path.clone(),
                kind: make_view_kind(path, kind, &kept),
                presence: self.marks[path].1,
            })
            .collect();
        views.sort_by_key(|view| view.path.components().count());
        MountPlan { views }
    }

    fn effective_marks(&self) -> BTreeMap<PathBuf, MarkKind> {
        let mut ordered: Vec<_> = self.marks.iter().collect();
        ordered.sort_by_key(|(path, _)| path.components().count());
        let mut kept = BTreeMap::new();
        for (path, &(kind, _)) in ordered {
            if is_effective(kind, find_enclosing(&kept, path).map(|(_, kind)| kind)) {
                kept.insert(path.clone(), kind);
            }
        }
        kept
    }
}

/// Returns the nearest mark above a path.
fn find_enclosing<'a>(kept: &'a BTreeMap<PathBuf, MarkKind>, path: &Path) -> Option<(&'a Path, MarkKind)> {
    path.ancestors()
        .skip(1)
        .find_map(|above| kept.get_key_value(above))
        .map(|(path, &kind)| (path.as_path(), kind))
}

/// Decides whether a mark changes anything inside the mark that encloses it. Without any mark, paths are read-only and
/// readable.
fn is_effective(kind: MarkKind, enclosing: Option<MarkKind>) -> bool {
    use MarkKind::{AlwaysHidden, Exception, Fresh, Hidden, ReadOnly, ReadOnlyLink, Readable, Root};
    match (kind, enclosing) {
        (Fresh, _) => true,
        // What is always hidden has nothing visible in it.
        (_, Some(AlwaysHidden)) => false,
        (Readable, enclosing) => matches!(enclosing, Some(Hidden | Fresh)),
        // A denied write wins over an allowed one inside of it.
        (Root, enclosing) => matches!(enclosing, None | Some(Hidden | Fresh | Readable)),
        (Exception, enclosing) => matches!(enclosing, Some(ReadOnly)),
        (ReadOnlyLink | ReadOnly, enclosing) => matches!(enclosing, Some(Root | Exception)),
        // A fresh folder has nothing of the host in it.
        (Hidden | AlwaysHidden, enclosing) => !matches!(enclosing, Some(Hidden | Fresh)),
    }
}

fn make_view_kind(path: &Path, kind: MarkKind, kept: &BTreeMap<PathBuf, MarkKind>) -> ViewKind {
    match kind {
        MarkKind::Fresh => ViewKind::Fresh { placeholders: find_placeholders(path, kept) },
        MarkKind::Readable => ViewKind::Readable,
        MarkKind::Root | MarkKind::Exception => ViewKind::Root { pins: find_pins(path, kept) },
        MarkKind::ReadOnlyLink => ViewKind::ReadOnlyLink,
        MarkKind::ReadOnly => ViewKind::ReadOnly,
        MarkKind::Hidden | MarkKind::AlwaysHidden if path.is_dir() => {
            ViewKind::HiddenFolder { placeholders: find_placeholders(path, kept) }
        }
        MarkKind::Hidden | MarkKind::AlwaysHidden => ViewKind::HiddenFile,
    }
}

/// Returns the marks whose nearest enclosing mark is this path.
fn find_enclosed<'a>(
    path: &'a Path,
    kept: &'a BTreeMap<PathBuf, MarkKind>,
) -> impl Iterator<Item = &'a PathBuf> {
    kept.keys().filter(move |inner| find_enclosing(kept, inner).is_some_and(|(above, _)| above == path))
}

fn find_placeholders(path: &Path, kept: &BTreeMap<PathBuf, MarkKind>) -> Vec<Placeholder> {
    find_enclosed(path, kept)
        .filter_map(|inner| {
            let kind = if inner.is_dir() { PlaceholderKind::Folder } else { PlaceholderKind::File };
            Some(Placeholder { path: inner.strip_prefix(path).ok()?.to_owned(), kind })
        })
        .collect()
}

/// Returns the folders between a writable place and the marks in it: renaming one of them would free what is below.
fn find_pins(path: &Path, kept: &BTreeMap<PathBuf, MarkKind>) -> Vec<PathBuf> {
    let mut pins = Vec::new();
    for inner in find_enclosed(path, kept) {
        let Ok(relative) = inner.strip_prefix(path) else { continue };
        let between = relative.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
        pins.extend(between.map(Path::to_owned));
    }
    pins.sort_by_key(|pin| (pin.components().count(), pin.clone()));
    pins.dedup();
    pins
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(marks: &[(&str, MarkKind)]) -> Vec<(String, ViewKind)> {
        let mut found = Marks::default();
        for (path, kind) in marks {
            found.add(Path::new(path), *kind, Presence::Required);
        }
        let views = found.into_plan().views;
        views.into_iter().map(|view| (view.path.display().to_string(), view.kind)).collect()
    }

    fn root(pins: &[&str]) -> ViewKind {
        ViewKind::Root { pins: pins.iter().map(PathBuf::from).collect() }
    }

    #[test]
    fn marks_count_by_what_encloses_them() {
        use MarkKind::{AlwaysHidden, Exception, Hidden, ReadOnly, Readable, Root};
        let hidden_file = ViewKind::HiddenFile;
        type Row<'a> = (&'a str, &'a [(&'a str, MarkKind)], &'a [(&'a str, ViewKind)]);
        let rows: &[Row<'_>] = &[
            ("nested roots are one", &[("/nw", Root), ("/nw/a", Root)], &[("/nw", root(&[]))]),
            (
                "read-only outside of roots is the default",
                &[("/nw", Root), ("/other", ReadOnly)],
                &[("/nw", root(&[]))],
            ),
            (
                "a denied write wins inside and around",
                &[("/nw", Root), ("/nw/d", ReadOnly), ("/nw/d/allowed", Root)],
                &[("/nw", root(&[])), ("/nw/d", ViewKind::ReadOnly)],
            ),
            (
                "a deny at the same path wins",
                &[("/nw", Root), ("/nw/a", Root), ("/nw/a", ReadOnly)],
                &[("/nw", root(&[])), ("/nw/a", ViewKind::ReadOnly)],
            ),
            (
                "folders above a mark are pinned, parents first",
                &[("/nw", Root), ("/nw/a/b/c", Hidden), ("/nw/a/d", ReadOnly)],
                &[
                    ("/nw", root(&["a", "a/b"])),
                    ("/nw/a/d", ViewKind::ReadOnly),
                    ("/nw/a/b/c", hidden_file.clone()),
                ],
            ),
            (
                "an exception is writable with its own pins",
                &[
                    ("/nw", Root),
                    ("/nw/.c", ReadOnly),
                    ("/nw/.c/w", Exception),
                    ("/nw/.c/w/x/.git", ReadOnly),
                ],
                &[
                    ("/nw", root(&[])),
                    ("/nw/.c", ViewKind::ReadOnly),
                    ("/nw/.c/w", root(&["x"])),
                    ("/nw/.c/w/x/.git", ViewKind::ReadOnly),
                ],
            ),
            ("readable counts only in what is hidden", &[("/nw", Readable)], &[]),
            (
                "nothing is readable in what is always hidden",
                &[("/nw", AlwaysHidden), ("/nw/a", Readable), ("/nw/b", Root)],
                &[("/nw", hidden_file)],
            ),
        ];
        for (name, marks, expected) in rows {
            let expected: Vec<_> =
                expected.iter().map(|(path, kind)| ((*path).to_owned(), kind.clone())).collect();
            assert_eq!(plan(marks), expected, "{name}");
        }
    }

    #[test]
    fn the_more_specific_of_deny_and_allow_wins() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(base.join("open/secret")).unwrap();
        let mut marks = Marks::default();
        marks.add(&base, MarkKind::Hidden, Presence::Required);
        marks.add(&base.join("open"), MarkKind::Readable, Presence::Optional);
        marks.add(&base.join("open/secret"), MarkKind::Hidden, Presence::Required);
        let placeholder = Placeholder { path: "open".into(), kind: PlaceholderKind::Folder };
        let kinds: Vec<_> = marks.into_plan().views.into_iter().map(|view| view.kind).collect();
        assert_eq!(
            kinds,
            [
                ViewKind::HiddenFolder { placeholders: vec![placeholder] },
                ViewKind::Readable,
                ViewKind::HiddenFolder { placeholders: vec![] },
            ]
        );
    }
}
