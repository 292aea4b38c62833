//! The names that a component of a glob stands for, as the shell reads it.

use std::cell::OnceCell;
use std::ffi::OsStr;

use globset::{GlobBuilder, GlobMatcher};

use crate::path_pattern::without_braces;
use crate::shell::{Part, Script, Value};

/// How the shell reads globs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Reading {
    /// Whether a star may stand for a dot at the start.
    hidden_too: bool,
    /// Whether case may not count.
    any_case: bool,
    /// Whether two stars may stand for any number of directories.
    any_depth: bool,
}

impl Reading {
    /// As the command may have set it.
    pub(super) fn of(script: &Script) -> Self {
        let words = script.parts.iter().flat_map(|part| &part.words).map(|word| &word.value);
        let given = script.parts.iter().flat_map(|part| &part.assignments);
        let mut reading = Self::default();
        for text in words.chain(given.map(|given| &given.value)).filter_map(Value::literal) {
            // Shells differ in how they write the names of options.
            if !text.as_bytes().windows(4).any(|four| four.eq_ignore_ascii_case(b"glob")) {
                continue;
            }
            let text = text.to_ascii_lowercase().replace('_', "");
            reading.hidden_too |= text.contains("dotglob") || text.contains("globdots");
            reading.any_case |= text.contains("caseglob");
            reading.any_depth |= text.contains("globstar");
        }
        let unknown = |part: &Part| {
            part.program.as_deref() == Some("shopt") && part.words.iter().any(|word| word.value.is_unknown())
        };
        let options = |part: &Part| {
            let mut given = part.assignments.iter();
            given.any(|given| given.name == "BASHOPTS" && given.value.literal().is_none())
        };
        let anyhow = script.parts.iter().any(|part| unknown(part) || options(part));
        reading.hidden_too |= anyhow || script.text.contains("GLOBIGNORE");
        reading.any_case |= anyhow;
        reading.any_depth |= anyhow;
        reading
    }

    /// Whether a component may stand for everything below.
    pub(super) fn goes_deep(self, component: &str) -> bool {
        self.any_depth && component == "**"
    }
}

/// The names that a component of a glob stands for.
pub(super) struct Names<'a> {
    component: &'a str,
    reading: Reading,
    /// What they begin with.
    start: &'a str,
    /// What they end in.
    end: &'a str,
    /// None if the glob cannot be read: then it may be anything.
    matcher: OnceCell<Option<GlobMatcher>>,
}

impl<'a> Names<'a> {
    pub(super) fn of(component: &'a str, reading: Reading) -> Self {
        let special = ['*', '?', '[', ']', '\\'];
        let start = component.split(special).next().unwrap_or_default();
        let end = component.rsplit(special).next().unwrap_or_default();
        Self { component, reading, start, end, matcher: OnceCell::new() }
    }

    pub(super) fn hold(&self, name: &OsStr) -> bool {
        let bytes = name.as_encoded_bytes();
        let hidden_too = self.reading.hidden_too || self.component.starts_with(['.', '\\', '[']);
        let same_ends = || bytes.starts_with(self.start.as_bytes()) && bytes.ends_with(self.end.as_bytes());
        (self.reading.any_case || same_ends())
            && (hidden_too || !bytes.starts_with(b"."))
            && self.matcher().is_none_or(|matcher| matcher.is_match(name))
    }

    fn matcher(&self) -> Option<&GlobMatcher> {
        let build = || {
            if has_odd_class(self.component) {
                return None;
            }
            let glob = GlobBuilder::new(&without_braces(self.component))
                .backslash_escape(true)
                .case_insensitive(self.reading.any_case)
                .build();
            glob.ok().map(|glob| glob.compile_matcher())
        };
        self.matcher.get_or_init(build).as_ref()
    }
}

/// Whether a class in brackets is written in a way that shells read otherwise than the glob library: `[[:alpha:]]`,
/// `[[=a=]]`, or with a backslash in it.
fn has_odd_class(component: &str) -> bool {
    let (mut escaped, mut class) = (false, false);
    let mut before = None;
    for character in component.chars() {
        let nested = before == Some('[') && matches!(character, ':' | '.' | '=');
        if class && (nested || character == '\\') {
            return true;
        }
        class = class || character == '[' && !escaped;
        escaped = character == '\\' && !escaped;
        before = Some(character);
    }
    false
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;
    use crate::bash::expand::Expansions;
    use crate::fs::FakeFs;
    use crate::shell::{Surroundings, analyse};

    #[test]
    fn a_command_may_change_how_globs_are_read() {
        let fs = FakeFs::with_files(["/w/.env", "/w/a", "/x/y/z"]);
        let rows: [(&str, &str, &[&str]); 13] = [
            ("cat *", "*", &["/w/a"]),
            ("shopt -s dot''glob; cat *", "*", &["/w/.env", "/w/a"]),
            ("bash -O dotglob -c 'cat *'", "*", &["/w/.env", "/w/a"]),
            (": ${GLOBIGNORE:=x}; cat *", "*", &["/w/.env", "/w/a"]),
            ("setopt GLOB_DOTS; cat *", "*", &["/w/.env", "/w/a"]),
            ("BASHOPTS=$X bash -c 'cat *'", "*", &["/w/.env", "/w/a"]),
            ("GLOBIGNORE=x; cat *", "*", &["/w/.env", "/w/a"]),
            ("export GLOBIGNORE=x; cat *", "*", &["/w/.env", "/w/a"]),
            ("shopt -s $X; cat *", "*", &["/w/.env", "/w/a"]),
            ("cat /**/z", "/**/z", &[]),
            ("shopt -s globstar; cat /**/z", "/**/z", &["/x/y/z"]),
            ("cat .E*", ".E*", &[]),
            ("shopt -s nocaseglob; cat .E*", ".E*", &["/w/.env"]),
        ];
        for (command, glob, expected) in rows {
            let script = analyse(command, &Surroundings { home: "/h" });
            let expansions = Expansions::read_by(Reading::of(&script));
            let expected: Vec<PathBuf> = expected.iter().map(PathBuf::from).collect();
            let mut got = expansions.expand(glob, Path::new("/w"), &fs).paths.clone();
            got.retain(|path| !path.ends_with(".."));
            assert_eq!(got, expected, "{command}");
        }
    }
}
