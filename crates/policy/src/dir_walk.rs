//! Search below a directory: one walk for any number of rules.

use std::path::{Path, PathBuf};

use crate::fs::{FileType, FsView};
use crate::paths::folded_path::FoldedPath;
use crate::paths::{PathContext, resolve_absolute, resolve_physical_path};
use crate::rules::path_pattern::PathPattern;

/// Entries visited below a directory before the walk stops.
const MAX_ENTRIES: usize = 10_000;

/// Directories walked because a link points to them.
const MAX_LINK_TARGETS: usize = 32;

/// Outcome of a walk below a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WalkResult {
    /// A wanted entry was found.
    Found,
    /// The walk finished without a match.
    NotFound,
    /// The walk stopped at a limit; a match is possible.
    LimitExceeded,
}

/// Action of a walk after visiting an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WalkStep {
    /// Continue, and descend into the entry.
    Descend,
    /// Continue without descending.
    Skip,
    /// Stop: everything was found.
    Stop,
}

/// Treatment of symbolic links met during a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum LinkPolicy {
    Ignore,
    Follow,
}

/// Looks for an entry at or below a directory. Links are not followed.
pub(crate) fn find_below(
    directory: &Path,
    fs: &dyn FsView,
    mut wanted: impl FnMut(&Path, FileType) -> bool,
) -> WalkResult {
    walk_dir(directory, fs, |path, kind| if wanted(path, kind) { WalkStep::Stop } else { WalkStep::Descend })
}

/// Returns, for each rule, whether it matches something below a directory. True as well if the walk hit a limit.
pub(crate) fn match_rules_below(
    rules: &[&PathPattern],
    root: &Path,
    links: LinkPolicy,
    context: &PathContext<'_>,
) -> Vec<bool> {
    let mut matched = vec![false; rules.len()];
    let folded = FoldedPath::new(root);
    let may_match = |rule: &PathPattern| links == LinkPolicy::Follow || rule.may_match_below_folded(&folded);
    let mut open: Vec<(usize, &PathPattern)> =
        rules.iter().copied().enumerate().filter(|(_, rule)| may_match(rule)).collect();
    if open.is_empty() {
        return matched;
    }
    // Directories to walk: the root, then the target of each followed link once.
    let mut roots = vec![root.to_owned()];
    let mut next = 0;
    let mut outcome = WalkResult::NotFound;
    while let Some(root) = roots.get(next).cloned() {
        next += 1;
        let found = walk_dir(&root, context.fs, |path, kind| {
            let mut forms = vec![FoldedPath::new(path)];
            if links == LinkPolicy::Follow && kind == FileType::Link {
                let target = resolve_absolute(path, context);
                forms.extend(FoldedPath::all_forms(&target));
                if !roots.iter().any(|root| target.physical.starts_with(root)) {
                    roots.push(target.physical);
                }
            }
            open.retain(|(index, rule)| {
                let is_match = forms.iter().any(|path| rule.matches_folded(path));
                if let Some(matched) = matched.get_mut(*index) {
                    *matched |= is_match;
                }
                !is_match
            });
            let may_descend = || {
                links == LinkPolicy::Follow
                    || forms.iter().any(|path| open.iter().any(|(_, rule)| rule.may_match_below_folded(path)))
            };
            match () {
                () if open.is_empty() => WalkStep::Stop,
                () if kind == FileType::Directory && may_descend() => WalkStep::Descend,
                () => WalkStep::Skip,
            }
        });
        if open.is_empty() {
            break;
        }
        if found == WalkResult::LimitExceeded || next >= MAX_LINK_TARGETS {
            outcome = WalkResult::LimitExceeded;
            break;
        }
    }
    for (index, rule) in open {
        if let Some(matched) = matched.get_mut(index) {
            *matched = outcome == WalkResult::LimitExceeded || matches_behind_links(rule, root, context.fs);
        }
    }
    matched
}

/// Returns true if a rule's fixed path reaches below the root through a link, where the walk cannot see it.
fn matches_behind_links(rule: &PathPattern, root: &Path, fs: &dyn FsView) -> bool {
    let matches_behind = |known: &PathBuf| {
        let real = resolve_physical_path(known, fs);
        let spelled_path =
            |path: &Path| path.strip_prefix(&real).map_or_else(|_| known.clone(), |path| known.join(path));
        real != *known
            && find_below(&real, fs, |path, _| rule.matches(&spelled_path(path))) != WalkResult::NotFound
    };
    rule.fixed_paths().iter().filter(|known| known.starts_with(root)).any(matches_behind)
}

/// Visits a directory and everything below it, the directory first.
fn walk_dir(
    directory: &Path,
    fs: &dyn FsView,
    mut visit: impl FnMut(&Path, FileType) -> WalkStep,
) -> WalkResult {
    let Some(kind) = fs.lstat(directory) else { return WalkResult::NotFound };
    let mut pending = vec![(directory.to_owned(), Some(kind))];
    let mut seen = 0_usize;
    while let Some((path, kind)) = pending.pop() {
        let Some(kind) = kind.or_else(|| fs.lstat(&path)) else { continue };
        match visit(&path, kind) {
            WalkStep::Stop => return WalkResult::Found,
            WalkStep::Descend if kind == FileType::Directory => {}
            WalkStep::Descend | WalkStep::Skip => continue,
        }
        let entries = fs.read_entries(&path, MAX_ENTRIES);
        let entries = entries.as_deref().unwrap_or_default();
        seen += entries.len();
        if seen >= MAX_ENTRIES || fs.is_budget_exhausted() {
            return WalkResult::LimitExceeded;
        }
        pending.extend(entries.iter().map(|entry| (path.join(&entry.name), entry.kind)));
    }
    WalkResult::NotFound
}

#[cfg(test)]
mod tests {
    use whimbrel_wire::permission::PermissionBehavior;

    use super::*;
    use crate::fs::FakeFs;
    use crate::rules::path_pattern::Anchors;

    fn disk() -> FakeFs {
        FakeFs::with_files(["/w/a/b/secret", "/w/c/d", "/w/Keys/one/x", "/data/private/y"])
            .with_link("/w/c/link", "/w/a")
            .with_link("/w/docs", "/data")
    }

    #[test]
    fn find_below_a_directory() {
        let named = |name: &'static str| move |path: &Path, _| path.ends_with(name);
        let below = |root: &str| find_below(Path::new(root), &disk(), named("secret"));
        let rows = [
            ("/w", WalkResult::Found),
            ("/w/a/b/secret", WalkResult::Found),
            ("/w/c", WalkResult::NotFound),
            ("/none", WalkResult::NotFound),
        ];
        for (root, expected) in rows {
            assert_eq!(below(root), expected, "{root}");
        }
    }

    #[test]
    fn rules_that_match_below_a_directory() {
        let fs = disk();
        let anchors = Anchors { home: "/h".into(), original_cwd: "/w".into(), source_root: "/w".into() };
        let rules = ["secret", "none", "keys/ONE/**", "docs/private/**", "/a/x", "//data/**"];
        let rules = rules.map(|rule| {
            PathPattern::new(rule, PermissionBehavior::Deny, &anchors, &Path::to_path_buf).unwrap()
        });
        let context = PathContext { cwd: Path::new("/w"), home: Path::new("/h"), fs: &fs };
        let matched = |root: &str, links| {
            let matched = match_rules_below(&rules.each_ref(), Path::new(root), links, &context);
            matched.iter().map(|matched| if *matched { '+' } else { '-' }).collect::<String>()
        };
        let rows = [
            ("/w", LinkPolicy::Ignore, "+-++--"),
            ("/w", LinkPolicy::Follow, "+-++-+"),
            ("/w/c", LinkPolicy::Ignore, "------"),
            ("/w/a", LinkPolicy::Ignore, "+-----"),
            ("/data", LinkPolicy::Ignore, "-----+"),
        ];
        for (root, links, expected) in rows {
            assert_eq!(matched(root, links), expected, "{root} {links:?}");
        }
    }

    #[test]
    fn walk_stops_at_the_entry_limit() {
        let files: Vec<String> = (0..MAX_ENTRIES).map(|number| format!("/w/{number}")).collect();
        let fs = FakeFs::with_files(files.iter().map(String::as_str));
        assert_eq!(find_below(Path::new("/w"), &fs, |_, _| false), WalkResult::LimitExceeded);
    }
}
