//! Glob expansion on disk.

pub(super) mod names;
mod program;

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::dir_walk::{WalkResult, find_below};
use crate::fs::FsView;
use crate::paths::resolve_physical_path;
use names::{ComponentMatcher, GlobOptions};

/// Matches per glob; with more, the expansion is incomplete.
pub(super) const MAX_MATCHES: usize = 1_000;

/// Expansion of a glob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GlobExpansion {
    /// Matching paths.
    pub(super) paths: Vec<PathBuf>,
    /// True if the list is complete.
    pub(super) complete: bool,
}

/// Trailing components of a glob that are expanded one by one, so that globs with a common start share its expansion.
const MAX_SHARED_DEPTH: usize = 8;

/// Cache of glob expansions.
#[derive(Debug, Default)]
pub(super) struct GlobCache {
    options: GlobOptions,
    /// By start directory, then by pattern.
    cached: RefCell<HashMap<OsString, HashMap<String, Rc<GlobExpansion>>>>,
}

impl GlobCache {
    pub(super) fn with_options(options: GlobOptions) -> Self {
        Self { options, cached: RefCell::default() }
    }

    /// Expands a glob from this directory, using the cache.
    pub(super) fn expand(&self, pattern: &str, from: &Path, fs: &dyn FsView) -> Rc<GlobExpansion> {
        self.expand_cached(pattern, find_start_directory(pattern, from), fs, MAX_SHARED_DEPTH)
    }

    fn expand_cached(&self, pattern: &str, from: &Path, fs: &dyn FsView, depth: usize) -> Rc<GlobExpansion> {
        if let Some(known) = self.cached.borrow().get(from.as_os_str()).and_then(|known| known.get(pattern)) {
            return Rc::clone(known);
        }
        let expansion = match pattern.trim_end_matches('/').rsplit_once('/') {
            Some((parent, component)) if depth > 0 && has_wildcard(parent) => expand_component(
                &self.expand_cached(parent, from, fs, depth - 1),
                component,
                self.options,
                fs,
            ),
            _ => expand_uncached(pattern, from, self.options, fs),
        };
        let expansion = Rc::new(expansion);
        let mut known = self.cached.borrow_mut();
        let known = known.entry(from.as_os_str().to_owned()).or_default();
        known.insert(pattern.to_owned(), Rc::clone(&expansion));
        expansion
    }
}

/// Expands a glob from this directory. Quoted characters are escaped by a backslash.
fn expand_uncached(pattern: &str, from: &Path, options: GlobOptions, fs: &dyn FsView) -> GlobExpansion {
    let start = GlobExpansion { paths: vec![find_start_directory(pattern, from).to_owned()], complete: true };
    let components = pattern.split('/').filter(|component| !component.is_empty());
    components.fold(start, |parent, component| expand_component(&parent, component, options, fs))
}

fn find_start_directory<'a>(pattern: &str, from: &'a Path) -> &'a Path {
    if pattern.starts_with('/') { Path::new("/") } else { from }
}

/// Expands one more component.
fn expand_component(
    parent: &GlobExpansion,
    component: &str,
    options: GlobOptions,
    fs: &dyn FsView,
) -> GlobExpansion {
    let mut paths = Vec::new();
    let mut complete = parent.complete;
    let names = ComponentMatcher::new(component, options);
    let plain = (!has_wildcard(component)).then(|| unescape(component));
    for path in &parent.paths {
        if fs.is_budget_exhausted() {
            break;
        }
        if let Some(name) = &plain {
            let entry = path.join(name);
            let exists =
                matches!(component, "." | "..") || path.starts_with("/proc") || fs.lstat(&entry).is_some();
            paths.extend(exists.then_some(entry));
            continue;
        }
        if options.is_globstar(component) {
            let real = resolve_physical_path(path, fs);
            let all = find_below(&real, fs, |entry, _| {
                paths.push(entry.strip_prefix(&real).map_or_else(|_| path.clone(), |rest| path.join(rest)));
                paths.len() > MAX_MATCHES
            });
            complete = complete && all == WalkResult::NotFound;
        }
        // Entries of `/proc` differ per process, so the command may see others.
        complete = complete && !(path.starts_with("/proc") && path.components().count() > 3);
        let Some(found) = fs.read_entries(path, MAX_MATCHES + 1) else { continue };
        complete = complete && found.len() <= MAX_MATCHES;
        // Older shells match `..` with patterns for hidden files.
        let parent = OsString::from("..");
        let matching =
            found.iter().map(|entry| &entry.name).chain([&parent]).filter(|name| names.matches(name));
        paths.extend(matching.map(|name| path.join(name)));
    }
    complete = complete && paths.len() <= MAX_MATCHES && !fs.is_budget_exhausted();
    paths.truncate(MAX_MATCHES);
    GlobExpansion { paths, complete }
}

/// Extracts the part of a glob before its first component with a wildcard, unescaped.
pub(super) fn extract_literal_prefix(pattern: &str) -> PathBuf {
    let absolute = PathBuf::from(if pattern.starts_with('/') { "/" } else { "" });
    pattern
        .split('/')
        .filter(|component| !component.is_empty())
        .take_while(|component| !has_wildcard(component))
        .fold(absolute, |path, component| path.join(unescape(component)))
}

/// Returns true if a glob has a wildcard before its last component.
pub(super) fn has_wildcard_in_directory(pattern: &str) -> bool {
    pattern.trim_end_matches('/').rsplit_once('/').is_some_and(|(directory, _)| has_wildcard(directory))
}

pub(super) fn has_wildcard(component: &str) -> bool {
    let mut escaped = false;
    component.chars().any(|character| {
        let wildcard = !escaped && matches!(character, '*' | '?' | '[');
        escaped = character == '\\' && !escaped;
        wildcard
    })
}

/// Removes the escapes of a glob.
pub(super) fn unescape(component: &str) -> String {
    let mut out = String::with_capacity(component.len());
    let mut characters = component.chars();
    while let Some(character) = characters.next() {
        out.push(if character == '\\' { characters.next().unwrap_or('\\') } else { character });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::FakeFs;

    #[test]
    fn globs_expand() {
        let fs =
            FakeFs::with_files(["/w/a.ts", "/w/b.ts", "/w/.env", "/w/sub/c.ts", "/w/[x].txt", "/w/{a,b}"]);
        let shared = GlobCache::default();
        let rows: [(&str, &[&str]); 17] = [
            ("*.ts", &["/w/a.ts", "/w/b.ts"]),
            ("/w/*.ts", &["/w/a.ts", "/w/b.ts"]),
            ("*/c.ts", &["/w/sub/c.ts"]),
            ("s*/*.ts", &["/w/sub/c.ts"]),
            ("s*//c.ts/", &["/w/sub/c.ts"]),
            ("/*/sub/c.ts", &["/w/sub/c.ts"]),
            (".e*", &["/w/.env"]),
            (".*", &["/w/.env", "/w/.."]),
            ("?.ts", &["/w/a.ts", "/w/b.ts"]),
            ("[a].ts", &["/w/a.ts"]),
            ("\\[x\\]*", &["/w/[x].txt"]),
            (".[[:lower:]]nv", &["/w/.env"]),
            (".[[=e=]]nv", &["/w/.env"]),
            (".[a\\]e]nv", &["/w/.env"]),
            ("[[:digit:]].ts", &["/w/a.ts", "/w/b.ts"]),
            ("none*", &[]),
            ("{a*", &["/w/{a,b}"]),
        ];
        for (pattern, expected) in rows {
            let got = expand_uncached(pattern, Path::new("/w"), GlobOptions::default(), &fs);
            assert_eq!(*shared.expand(pattern, Path::new("/w"), &fs), got, "{pattern}");
            let expected: Vec<PathBuf> = expected.iter().map(PathBuf::from).collect();
            assert_eq!(got, GlobExpansion { paths: expected, complete: true }, "{pattern}");
        }
    }

    #[test]
    fn too_many_matches_are_incomplete() {
        let files: Vec<String> = (0..1_100).map(|number| format!("/w/{number}")).collect();
        let fs = FakeFs::with_files(files.iter().map(String::as_str));
        assert!(!expand_uncached("*", Path::new("/w"), GlobOptions::default(), &fs).complete);
    }

    #[test]
    fn literal_prefix_ends_at_first_wildcard() {
        for (pattern, expected) in [("a/b*/c", "a"), ("/a\\*/x*", "/a*"), ("*", ""), ("/*", "/")] {
            assert_eq!(extract_literal_prefix(pattern), Path::new(expected), "{pattern}");
        }
    }
}
