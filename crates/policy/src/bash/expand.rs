//! Looking at the disk: what a glob would become.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::names::{Names, Reading};
use crate::below::{Below, look_below};
use crate::fs::FsView;
use crate::paths::physical;

/// How many names a glob may become before its matches are only guessed at.
pub(super) const MAX_MATCHES: usize = 1_000;

/// What a glob becomes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Expansion {
    /// The paths that match.
    pub(super) paths: Vec<PathBuf>,
    /// Whether these are all.
    pub(super) complete: bool,
}

/// How many components at a glob's end are looked up one by one, so that other globs find the rest looked up.
const DEEPEST_SHARED: usize = 8;

/// What globs became, each looked up once.
#[derive(Debug, Default)]
pub(super) struct Expansions {
    reading: Reading,
    /// By the directory that they begin at, then by their text.
    known: RefCell<HashMap<OsString, HashMap<String, Rc<Expansion>>>>,
}

impl Expansions {
    pub(super) fn read_by(reading: Reading) -> Self {
        Self { reading, known: RefCell::default() }
    }

    /// What the shell would put in a glob's place, from this directory.
    pub(super) fn expand(&self, pattern: &str, from: &Path, fs: &dyn FsView) -> Rc<Expansion> {
        self.expand_shared(pattern, start(pattern, from), fs, DEEPEST_SHARED)
    }

    fn expand_shared(&self, pattern: &str, from: &Path, fs: &dyn FsView, depth: usize) -> Rc<Expansion> {
        if let Some(known) = self.known.borrow().get(from.as_os_str()).and_then(|known| known.get(pattern)) {
            return Rc::clone(known);
        }
        let expansion = match pattern.trim_end_matches('/').rsplit_once('/') {
            Some((above, component)) if depth > 0 && is_wild(above) => {
                next(&self.expand_shared(above, from, fs, depth - 1), component, self.reading, fs)
            }
            _ => expand(pattern, from, self.reading, fs),
        };
        let expansion = Rc::new(expansion);
        let mut known = self.known.borrow_mut();
        let known = known.entry(from.as_os_str().to_owned()).or_default();
        known.insert(pattern.to_owned(), Rc::clone(&expansion));
        expansion
    }
}

/// What the shell would put in a glob's place, from this directory. Quoted characters are escaped by a backslash.
fn expand(pattern: &str, from: &Path, reading: Reading, fs: &dyn FsView) -> Expansion {
    let begun = Expansion { paths: vec![start(pattern, from).to_owned()], complete: true };
    let components = pattern.split('/').filter(|component| !component.is_empty());
    components.fold(begun, |above, component| next(&above, component, reading, fs))
}

fn start<'a>(pattern: &str, from: &'a Path) -> &'a Path {
    if pattern.starts_with('/') { Path::new("/") } else { from }
}

/// One component further.
fn next(above: &Expansion, component: &str, reading: Reading, fs: &dyn FsView) -> Expansion {
    let mut paths = Vec::new();
    let mut complete = above.complete;
    let names = Names::of(component, reading);
    let plain = (!is_wild(component)).then(|| unescape(component));
    for path in &above.paths {
        if fs.gives_up() {
            break;
        }
        if let Some(name) = &plain {
            let entry = path.join(name);
            let there =
                matches!(component, "." | "..") || path.starts_with("/proc") || fs.lstat(&entry).is_some();
            paths.extend(there.then_some(entry));
            continue;
        }
        if reading.goes_deep(component) {
            let real = physical(path, fs);
            let all = look_below(&real, fs, |entry, _| {
                paths.push(entry.strip_prefix(&real).map_or_else(|_| path.clone(), |rest| path.join(rest)));
                paths.len() > MAX_MATCHES
            });
            complete = complete && all == Below::Nothing;
        }
        // There every process sees itself: what we would see is not what the command sees.
        complete = complete && !(path.starts_with("/proc") && path.components().count() > 3);
        let Some(found) = fs.list(path, MAX_MATCHES + 1) else { continue };
        complete = complete && found.len() <= MAX_MATCHES;
        // Older shells take the folder above for a hidden file.
        let above = OsString::from("..");
        let matching = found.iter().map(|entry| &entry.name).chain([&above]).filter(|name| names.hold(name));
        paths.extend(matching.map(|name| path.join(name)));
    }
    complete = complete && paths.len() <= MAX_MATCHES && !fs.gives_up();
    paths.truncate(MAX_MATCHES);
    Expansion { paths, complete }
}

/// The part of a glob before its first component with a wildcard, unescaped.
pub(super) fn static_prefix(pattern: &str) -> PathBuf {
    let absolute = PathBuf::from(if pattern.starts_with('/') { "/" } else { "" });
    pattern
        .split('/')
        .filter(|component| !component.is_empty())
        .take_while(|component| !is_wild(component))
        .fold(absolute, |path, component| path.join(unescape(component)))
}

/// Whether a glob has a wildcard before its last component.
pub(super) fn is_wild_in_directory(pattern: &str) -> bool {
    pattern.trim_end_matches('/').rsplit_once('/').is_some_and(|(directory, _)| is_wild(directory))
}

pub(super) fn is_wild(component: &str) -> bool {
    let mut escaped = false;
    component.chars().any(|character| {
        let wild = !escaped && matches!(character, '*' | '?' | '[');
        escaped = character == '\\' && !escaped;
        wild
    })
}

/// The text of a glob, its escapes taken out.
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
    fn what_globs_become() {
        let fs =
            FakeFs::with_files(["/w/a.ts", "/w/b.ts", "/w/.env", "/w/sub/c.ts", "/w/[x].txt", "/w/{a,b}"]);
        let shared = Expansions::default();
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
            let got = expand(pattern, Path::new("/w"), Reading::default(), &fs);
            assert_eq!(*shared.expand(pattern, Path::new("/w"), &fs), got, "{pattern}");
            let expected: Vec<PathBuf> = expected.iter().map(PathBuf::from).collect();
            assert_eq!(got, Expansion { paths: expected, complete: true }, "{pattern}");
        }
    }

    #[test]
    fn too_many_matches_are_said_to_be_too_many() {
        let files: Vec<String> = (0..1_100).map(|number| format!("/w/{number}")).collect();
        let fs = FakeFs::with_files(files.iter().map(String::as_str));
        assert!(!expand("*", Path::new("/w"), Reading::default(), &fs).complete);
    }

    #[test]
    fn what_stands_before_the_first_wildcard() {
        for (pattern, expected) in [("a/b*/c", "a"), ("/a\\*/x*", "/a*"), ("*", ""), ("/*", "/")] {
            assert_eq!(static_prefix(pattern), Path::new(expected), "{pattern}");
        }
    }
}
