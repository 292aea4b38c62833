//! Matching of directory entries against one component of a glob.

use std::cell::OnceCell;
use std::ffi::OsStr;

use globset::{GlobBuilder, GlobMatcher};

use crate::rules::path_pattern::escape_braces;
use crate::shell::{CommandAnalysis, SimpleCommand, WordValue};

/// Shell options that change how globs match.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct GlobOptions {
    /// True if `*` may match a leading dot.
    match_hidden: bool,
    /// True if case may be ignored.
    ignore_case: bool,
    /// True if `**` may match any number of directories.
    globstar: bool,
}

impl GlobOptions {
    /// Collects the options that the command may set.
    pub(crate) fn from_analysis(analysis: &CommandAnalysis) -> Self {
        let words =
            analysis.commands.iter().flat_map(|simple_command| &simple_command.words).map(|word| &word.value);
        let assignment = analysis.commands.iter().flat_map(|simple_command| &simple_command.assignments);
        let mut options = Self::default();
        for text in
            words.chain(assignment.map(|assignment| &assignment.value)).filter_map(WordValue::as_literal)
        {
            // Shells spell the names of options differently.
            if !text.as_bytes().windows(4).any(|window| window.eq_ignore_ascii_case(b"glob")) {
                continue;
            }
            let text = text.to_ascii_lowercase().replace('_', "");
            options.match_hidden |= text.contains("dotglob") || text.contains("globdots");
            options.ignore_case |= text.contains("caseglob");
            options.globstar |= text.contains("globstar");
        }
        let unknown = |simple_command: &SimpleCommand| {
            simple_command.program.as_deref() == Some("shopt")
                && simple_command.words.iter().any(|word| word.value.is_unknown())
        };
        let sets_bashopts = |simple_command: &SimpleCommand| {
            let mut assignment = simple_command.assignments.iter();
            assignment
                .any(|assignment| assignment.name == "BASHOPTS" && assignment.value.as_literal().is_none())
        };
        let may_set_any = analysis
            .commands
            .iter()
            .any(|simple_command| unknown(simple_command) || sets_bashopts(simple_command));
        options.match_hidden |= may_set_any || analysis.text.contains("GLOBIGNORE");
        options.ignore_case |= may_set_any;
        options.globstar |= may_set_any;
        options
    }

    /// Returns true if a component matches directories at any depth.
    pub(crate) fn is_globstar(self, component: &str) -> bool {
        self.globstar && component == "**"
    }
}

/// Matcher for one component of a glob.
pub(crate) struct ComponentMatcher<'a> {
    component: &'a str,
    options: GlobOptions,
    /// Literal start of every match.
    prefix: &'a str,
    /// Literal end of every match.
    suffix: &'a str,
    /// `None` if the component cannot be compiled; then every name may match.
    matcher: OnceCell<Option<GlobMatcher>>,
}

impl<'a> ComponentMatcher<'a> {
    pub(crate) fn new(component: &'a str, options: GlobOptions) -> Self {
        let special = ['*', '?', '[', ']', '\\'];
        let prefix = component.split(special).next().unwrap_or_default();
        let suffix = component.rsplit(special).next().unwrap_or_default();
        Self { component, options, prefix, suffix, matcher: OnceCell::new() }
    }

    pub(crate) fn matches(&self, name: &OsStr) -> bool {
        let bytes = name.as_encoded_bytes();
        let may_match_hidden = self.options.match_hidden || self.component.starts_with(['.', '\\', '[']);
        let same_ends =
            || bytes.starts_with(self.prefix.as_bytes()) && bytes.ends_with(self.suffix.as_bytes());
        (self.options.ignore_case || same_ends())
            && (may_match_hidden || !bytes.starts_with(b"."))
            && self.matcher().is_none_or(|matcher| matcher.is_match(name))
    }

    fn matcher(&self) -> Option<&GlobMatcher> {
        let build = || {
            if has_unsupported_class(self.component) {
                return None;
            }
            let glob = GlobBuilder::new(&escape_braces(self.component))
                .backslash_escape(true)
                .case_insensitive(self.options.ignore_case)
                .build();
            glob.ok().map(|glob| glob.compile_matcher())
        };
        self.matcher.get_or_init(build).as_ref()
    }
}

/// Returns true if a bracket expression differs between shells and the glob library: `[[:alpha:]]`, `[[=a=]]`, or one
/// with a backslash.
fn has_unsupported_class(component: &str) -> bool {
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
    use crate::command::globs::GlobCache;
    use crate::fs::FakeFs;
    use crate::shell::{ShellContext, analyze};

    #[test]
    fn command_changes_glob_options() {
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
            let analysis = analyze(command, &ShellContext { home: "/h" });
            let expansions = GlobCache::with_options(GlobOptions::from_analysis(&analysis));
            let expected: Vec<PathBuf> = expected.iter().map(PathBuf::from).collect();
            let mut got = expansions.expand(glob, Path::new("/w"), &fs).paths.clone();
            got.retain(|path| !path.ends_with(".."));
            assert_eq!(got, expected, "{command}");
        }
    }
}
