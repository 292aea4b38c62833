//! The file tools: which path a call is about, and which rules cover it.

use std::path::{Component, Path, PathBuf};

use whimbrel_wire::permission::PermissionBehavior;

use crate::below::{Links, meant_below};
use crate::decide::Case;
use crate::decision::{Danger, Reason};
use crate::fs::FsView;
use crate::path_pattern::PathPattern;
use crate::paths::{Spellings, Surroundings, is_suspicious, resolve, resolve_absolute};
use crate::place::Place;
use crate::ruleset::{RuleRef, RuleSet, Source};
use crate::tools::ToolKind;

/// What a file tool does with its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Reads a file.
    Read,
    /// Looks through a directory.
    Search,
    /// Changes a file.
    Edit,
}

/// A path and what is done with it.
#[derive(Debug, Clone)]
pub(crate) struct FileAccess {
    pub(crate) access: Access,
    pub(crate) path: Spellings,
    /// The file; none if it looks through a directory.
    pub(crate) place: Option<Place>,
}

impl FileAccess {
    pub(crate) fn new(written: Option<&str>, case: &Case<'_>) -> Self {
        let around = case.facts.surroundings();
        let access = match case.facts.tool.kind {
            ToolKind::Edit => Access::Edit,
            ToolKind::Search => Access::Search,
            _ => Access::Read,
        };
        let written = written.filter(|written| !written.is_empty()).unwrap_or(".");
        let path = match case.text("pattern") {
            Some(pattern) if case.call.tool == "Glob" => {
                let root = resolve(written, &around).lexical;
                resolve_absolute(&search_root(&root, pattern), &around)
            }
            _ => resolve(written, &around),
        };
        let place = (access != Access::Search).then(|| Place::new(written, &path));
        Self { access, path, place }
    }

    pub(crate) fn is_edit(&self) -> bool {
        self.access == Access::Edit
    }

    pub(crate) fn is_inside(&self, case: &Case<'_>) -> bool {
        case.dirs.hold(&self.path)
    }

    pub(crate) fn is_edit_of(&self, plan: &Path) -> bool {
        self.is_edit() && self.path.all().all(|path| path == plan)
    }

    /// The refusing or asking rule that matches some spelling. What may not be read may not be changed either.
    pub(crate) fn limiting_rule<'a>(
        &self,
        case: &Case<'a>,
        behavior: PermissionBehavior,
    ) -> Option<&'a RuleRef> {
        let edits = case.rules.edits(behavior).filter(|_| self.is_edit());
        let (references, rules): (Vec<_>, Vec<_>) = case.rules.reads(behavior).chain(edits).unzip();
        // What is refused is left out of what a search finds; what is asked about has to be asked about before.
        let below = match (self.access, behavior) {
            (Access::Search, PermissionBehavior::Ask) => {
                meant_below(&rules, &self.path.physical, Links::Passed, &case.facts.surroundings())
            }
            _ => Vec::new(),
        };
        let means = |at: usize, rule: &PathPattern| {
            some_spelling(rule, &self.path) || below.get(at).is_some_and(|meant| *meant)
        };
        let found = rules.iter().enumerate().position(|(at, rule)| means(at, rule))?;
        references.get(found).copied()
    }

    /// The rule that allows the call by its path.
    pub(crate) fn granting_rule<'a>(&self, case: &Case<'a>) -> Option<&'a RuleRef> {
        match self.access {
            Access::Edit => edit_grant(case, &self.path),
            Access::Search => read_grant(case, &self.path),
            Access::Read => read_grant(case, &self.path).or_else(|| edit_grant(case, &self.path)),
        }
    }

    pub(crate) fn dangerous_write(&self, case: &Case<'_>) -> Option<(Danger, String)> {
        let planned = case.facts.plan_file.as_deref().is_some_and(|plan| self.is_edit_of(plan));
        if !self.is_edit() || planned {
            return None;
        }
        let danger = write_danger(case, &self.path)?;
        Some((danger, self.path.physical.display().to_string()))
    }

    pub(crate) fn what_stands_in_the_way(&self, case: &Case<'_>) -> (Reason, Option<String>) {
        if self.is_inside(case) {
            return (Reason::NeedsApproval, None);
        }
        let path = self.path.physical.clone();
        let blocked = path.display().to_string();
        (Reason::WorkingDir { path }, Some(blocked))
    }
}

/// The rule about reading that lets a path be read: each spelling is covered by some rule or lies inside the working
/// directories.
pub(crate) fn read_grant<'a>(case: &Case<'a>, path: &Spellings) -> Option<&'a RuleRef> {
    let inside = |spelling: &Path| !path.through_process && case.dirs.all().any(|dir| dir.holds(spelling));
    let mut granting = None;
    for spelling in path.all() {
        let mut rules = case.rules.reads(PermissionBehavior::Allow);
        match rules.find(|(_, rule)| rule.matches(spelling)) {
            Some((reference, _)) => granting = granting.or(Some(reference)),
            None if inside(spelling) => {}
            None => return None,
        }
    }
    granting
}

/// The rule about changing that covers every spelling.
pub(crate) fn edit_grant<'a>(case: &Case<'a>, path: &Spellings) -> Option<&'a RuleRef> {
    case.rules
        .edits(PermissionBehavior::Allow)
        .find(|(_, rule)| path.all().all(|spelling| rule.matches(spelling)))
        .map(first)
}

/// Why a write needs a question whatever the rules say.
pub(crate) fn write_danger(case: &Case<'_>, path: &Spellings) -> Option<Danger> {
    if path.all().any(|path| case.is_protected(path)) && !granted_by_name(case, path) {
        return Some(Danger::ProtectedPath);
    }
    path.all().any(is_suspicious).then_some(Danger::SuspiciousPath)
}

/// Whether an answer in this session has named the protected place itself.
fn granted_by_name(case: &Case<'_>, path: &Spellings) -> bool {
    case.rules.edits(PermissionBehavior::Allow).any(|(reference, rule)| {
        reference.source == Source::Session
            && rule.known_paths().iter().any(|known| case.is_protected(known))
            && path.all().all(|spelling| rule.matches(spelling))
    })
}

/// Whether a pattern matches some spelling.
pub(crate) fn some_spelling(rule: &PathPattern, path: &Spellings) -> bool {
    path.all().any(|spelling| rule.matches(spelling))
}

fn first<'a>((reference, _): (&'a RuleRef, &'a PathPattern)) -> &'a RuleRef {
    reference
}

/// Where a Glob begins: its root, moved by what stands before the first wildcard and by every `..`.
fn search_root(root: &Path, pattern: &str) -> PathBuf {
    let wild = |part: &str| part.contains(['*', '?', '[', '{']);
    let mut at = root.to_owned();
    let mut seen_wildcard = false;
    let components: Vec<Component<'_>> = Path::new(pattern).components().collect();
    for (index, component) in components.iter().enumerate() {
        let last = index + 1 == components.len();
        match component {
            Component::RootDir => at = PathBuf::from("/"),
            Component::ParentDir => {
                at.pop();
            }
            Component::Normal(name) if !seen_wildcard && !wild(&name.to_string_lossy()) && !last => {
                at.push(name);
            }
            Component::Normal(_) => seen_wildcard = true,
            Component::CurDir | Component::Prefix(_) => {}
        }
    }
    at
}

/// Which files a search must leave out of its results.
#[derive(Debug, Clone, Copy)]
pub struct ReadFilter<'a> {
    rules: &'a RuleSet,
    fs: &'a dyn FsView,
    home: &'a Path,
}

impl<'a> ReadFilter<'a> {
    /// A filter by these rules; none if no rule hides anything, so that a search need not ask.
    pub fn new(rules: &'a RuleSet, fs: &'a dyn FsView, home: &'a Path) -> Option<Self> {
        rules.reads(PermissionBehavior::Deny).next()?;
        Some(Self { rules, fs, home })
    }

    /// Whether a hit, by its absolute path, must not be shown.
    pub fn hides(&self, path: &Path) -> bool {
        let around = Surroundings { cwd: Path::new("/"), home: self.home, fs: self.fs };
        let path = resolve_absolute(path, &around);
        self.rules.reads(PermissionBehavior::Deny).any(|(_, rule)| some_spelling(rule, &path))
    }

    /// The same for an absolute path without dots and without links on its way, which needs no look at the disk.
    pub fn hides_unlinked(&self, path: &Path) -> bool {
        self.rules.reads(PermissionBehavior::Deny).any(|(_, rule)| rule.matches(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Room;

    #[test]
    fn where_a_glob_begins() {
        let rows = [
            ("**/*.rs", "/w"),
            ("src/*.rs", "/w/src"),
            ("../outside/*", "/outside"),
            ("/etc/*", "/etc"),
            ("/etc/passwd", "/etc"),
            ("*/../../x", "/"),
            ("{a,b}/c", "/w"),
        ];
        for (pattern, expected) in rows {
            assert_eq!(search_root(Path::new("/w"), pattern), Path::new(expected), "{pattern}");
        }
    }

    #[test]
    fn a_search_leaves_out_what_may_not_be_read() {
        let room = Room::new().rules(&[], &[], &["Read(secrets/**)", "Read(.env)"]);
        let filter = ReadFilter::new(&room.rules, &room.fs, Path::new("/fx/home")).unwrap();
        let hidden =
            ["/fx/proj/secrets/key.txt", "/fx/proj/sub/.env", "/fx/proj/link_secret", "/fx/proj/SECRETS/x"];
        for path in hidden {
            assert!(filter.hides(Path::new(path)), "{path}");
            assert_eq!(filter.hides_unlinked(Path::new(path)), !path.contains("link"), "{path}");
        }
        assert!(!filter.hides(Path::new("/fx/proj/notes.txt")));
        let free = Room::new();
        assert!(ReadFilter::new(&free.rules, &free.fs, Path::new("/fx/home")).is_none());
    }
}
