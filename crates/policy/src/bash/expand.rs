//! Looking at the disk: what a glob would become, and what lies below a directory.

use std::cell::OnceCell;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};

use crate::fs::{EntryKind, FsView};
use crate::path_pattern::without_braces;

/// How many names a glob may become before its matches are only guessed at.
pub(super) const MAX_MATCHES: usize = 1_000;

/// How many entries are looked at below a directory before we stop.
const MAX_ENTRIES: usize = 10_000;

/// What a glob becomes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Expansion {
    /// The paths that match.
    pub(super) paths: Vec<PathBuf>,
    /// Whether these are all.
    pub(super) complete: bool,
}

/// What the shell would put in a glob's place, from this directory. Quoted characters are escaped by a backslash.
pub(super) fn expand(pattern: &str, from: &Path, fs: &dyn FsView) -> Expansion {
    let mut paths = vec![if pattern.starts_with('/') { PathBuf::from("/") } else { from.to_owned() }];
    let mut complete = true;
    for component in pattern.split('/').filter(|component| !component.is_empty()) {
        let mut next = Vec::new();
        let names = Names::of(component);
        for path in &paths {
            if fs.gives_up() {
                break;
            }
            if !is_wild(component) {
                let entry = path.join(unescape(component));
                let there = matches!(component, "." | "..") || fs.lstat(&entry).is_some();
                next.extend(there.then_some(entry));
                continue;
            }
            let Some(found) = fs.readdir(path, MAX_MATCHES + 1) else { continue };
            complete = complete && found.len() <= MAX_MATCHES;
            // Older shells take the folder above for a hidden file.
            let above = OsString::from("..");
            let matching = found.iter().chain([&above]).filter(|name| names.hold(name));
            next.extend(matching.map(|name| path.join(name)));
        }
        complete = complete && next.len() <= MAX_MATCHES && !fs.gives_up();
        next.truncate(MAX_MATCHES);
        paths = next;
    }
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

/// The names that a component of a glob stands for.
struct Names<'a> {
    component: &'a str,
    /// What they begin with.
    plain: &'a str,
    /// None if the glob cannot be read: then it may be anything.
    matcher: OnceCell<Option<GlobMatcher>>,
}

impl<'a> Names<'a> {
    fn of(component: &'a str) -> Self {
        let plain = component.split(['*', '?', '[', '\\']).next().unwrap_or_default();
        Self { component, plain, matcher: OnceCell::new() }
    }

    fn hold(&self, name: &OsStr) -> bool {
        let bytes = name.as_encoded_bytes();
        let hidden_too = self.component.starts_with(['.', '\\', '[']);
        bytes.starts_with(self.plain.as_bytes())
            && (hidden_too || !bytes.starts_with(b"."))
            && self.matcher().is_none_or(|matcher| matcher.is_match(name))
    }

    fn matcher(&self) -> Option<&GlobMatcher> {
        let build = || {
            let glob = GlobBuilder::new(&without_braces(self.component)).backslash_escape(true).build();
            glob.ok().map(|glob| glob.compile_matcher())
        };
        self.matcher.get_or_init(build).as_ref()
    }
}

/// What was found below a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Below {
    /// Something that was looked for.
    Found,
    /// Nothing.
    Nothing,
    /// There was too much to look at.
    TooMuch,
}

/// Looks for an entry below a directory, the directory itself included. Links are not followed.
pub(crate) fn look_below(
    directory: &Path,
    fs: &dyn FsView,
    enter: impl Fn(&Path) -> bool,
    wanted: impl Fn(&Path) -> bool,
) -> Below {
    let mut todo = vec![directory.to_owned()];
    let mut seen = 0_usize;
    while let Some(path) = todo.pop() {
        let Some(kind) = fs.lstat(&path) else { continue };
        if wanted(&path) {
            return Below::Found;
        }
        if kind != EntryKind::Directory || !enter(&path) {
            continue;
        }
        let names = fs.readdir(&path, MAX_ENTRIES).unwrap_or_default();
        seen += names.len();
        if seen >= MAX_ENTRIES || fs.gives_up() {
            return Below::TooMuch;
        }
        todo.extend(names.into_iter().map(|name| path.join(name)));
    }
    Below::Nothing
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::FakeFs;

    #[test]
    fn what_globs_become() {
        let fs =
            FakeFs::with_files(["/w/a.ts", "/w/b.ts", "/w/.env", "/w/sub/c.ts", "/w/[x].txt", "/w/{a,b}"]);
        let rows: [(&str, &[&str]); 11] = [
            ("*.ts", &["/w/a.ts", "/w/b.ts"]),
            ("/w/*.ts", &["/w/a.ts", "/w/b.ts"]),
            ("*/c.ts", &["/w/sub/c.ts"]),
            ("s*/*.ts", &["/w/sub/c.ts"]),
            (".e*", &["/w/.env"]),
            (".*", &["/w/.env", "/w/.."]),
            ("?.ts", &["/w/a.ts", "/w/b.ts"]),
            ("[a].ts", &["/w/a.ts"]),
            ("\\[x\\]*", &["/w/[x].txt"]),
            ("none*", &[]),
            ("{a*", &["/w/{a,b}"]),
        ];
        for (pattern, expected) in rows {
            let got = expand(pattern, Path::new("/w"), &fs);
            let expected: Vec<PathBuf> = expected.iter().map(PathBuf::from).collect();
            assert_eq!(got, Expansion { paths: expected, complete: true }, "{pattern}");
        }
    }

    #[test]
    fn too_many_matches_are_said_to_be_too_many() {
        let files: Vec<String> = (0..1_100).map(|number| format!("/w/{number}")).collect();
        let fs = FakeFs::with_files(files.iter().map(String::as_str));
        assert!(!expand("*", Path::new("/w"), &fs).complete);
    }

    #[test]
    fn what_stands_before_the_first_wildcard() {
        for (pattern, expected) in [("a/b*/c", "a"), ("/a\\*/x*", "/a*"), ("*", ""), ("/*", "/")] {
            assert_eq!(static_prefix(pattern), Path::new(expected), "{pattern}");
        }
    }

    #[test]
    fn looking_below() {
        let fs = FakeFs::with_files(["/w/a/b/secret", "/w/c/d"]).link("/w/c/link", "/w/a");
        let named = |name: &'static str| move |path: &Path| path.ends_with(name);
        assert_eq!(look_below(Path::new("/w"), &fs, |_| true, named("secret")), Below::Found);
        assert_eq!(look_below(Path::new("/w/c"), &fs, |_| true, named("secret")), Below::Nothing);
        assert_eq!(
            look_below(Path::new("/w"), &fs, |path| !path.ends_with("a"), named("secret")),
            Below::Nothing
        );
    }
}
