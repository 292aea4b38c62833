//! Paths that match a rule now.

use std::path::{Path, PathBuf};

use globset::GlobMatcher;

use super::ResolveError;
use crate::plan::Presence;
use crate::policy::PathRule;
use crate::policy::pattern::{compile, literal_start};

/// Largest number of files and folders that one pattern may look at.
const MAX_ENTRIES: usize = 100_000;

/// A path that a rule names.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NamedPath {
    pub(crate) path: PathBuf,
    /// What a pattern matched may be gone when the command starts.
    pub(crate) presence: Presence,
}

/// Returns the path of a literal rule, or the paths that match a pattern.
pub(crate) fn find_paths(rule: &PathRule) -> Result<Vec<NamedPath>, ResolveError> {
    match rule {
        PathRule::Literal(path) => Ok(vec![NamedPath { path: path.clone(), presence: Presence::Required }]),
        PathRule::Glob(pattern) => {
            let matcher = compile(pattern)?;
            let mut walk = Walk { matcher: &matcher, left: MAX_ENTRIES, found: Vec::new() };
            if !walk.descend(&literal_start(pattern)) {
                return Err(ResolveError::PatternTooWide { pattern: pattern.clone(), limit: MAX_ENTRIES });
            }
            let named = |path| NamedPath { path, presence: Presence::Optional };
            Ok(walk.found.into_iter().map(named).collect())
        }
    }
}

struct Walk<'a> {
    matcher: &'a GlobMatcher,
    left: usize,
    found: Vec<PathBuf>,
}

impl Walk<'_> {
    /// Returns whether the limit was kept. Links are not followed.
    fn descend(&mut self, folder: &Path) -> bool {
        let Ok(entries) = std::fs::read_dir(folder) else { return true };
        for entry in entries.flatten() {
            if self.left == 0 {
                return false;
            }
            self.left -= 1;
            let path = entry.path();
            if self.matcher.is_match(&path) {
                self.found.push(path);
            } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) && !self.descend(&path) {
                return false;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::RuleError;

    #[test]
    fn patterns_match_below_their_literal_start() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path();
        std::fs::create_dir_all(base.join("a/b")).unwrap();
        for name in ["x.pem", "a/y.pem", "a/b/z.pem", "a/other"] {
            std::fs::write(base.join(name), "").unwrap();
        }
        let find = |pattern: &str| {
            let rule = PathRule::parse(&format!("{}/{pattern}", base.display()));
            let mut found: Vec<_> = find_paths(&rule).unwrap().into_iter().map(|named| named.path).collect();
            found.sort();
            found
        };
        let paths = |names: &[&str]| names.iter().map(|name| base.join(name)).collect::<Vec<_>>();
        assert_eq!(find("*.pem"), paths(&["x.pem"]));
        assert_eq!(find("**/*.pem"), paths(&["a/b/z.pem", "a/y.pem", "x.pem"]));
        assert_eq!(find("a/{b,other}"), paths(&["a/b", "a/other"]));
        assert_eq!(find("none/*"), paths(&[]));
    }

    #[test]
    fn patterns_without_a_literal_start_are_refused() {
        for pattern in ["/**", "/*/x", "*.pem", "/a/[x"] {
            let found = find_paths(&PathRule::Glob(pattern.into()));
            assert!(matches!(found, Err(ResolveError::Rule(RuleError::InvalidPattern { .. }))), "{pattern}");
        }
    }
}
