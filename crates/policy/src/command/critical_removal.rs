//! Critical removals, which ask in every mode: the root, a home directory, the working directory, and everything in
//! them.

use std::path::{Path, PathBuf};

use super::ShellCommand;
use super::glob_expansion::{has_wildcard, literal_prefix, unescape};
use crate::decision_input::DecisionInput;
use crate::paths::folded_path::fold_path;
use crate::shell::WordValue;

/// A command with more removals than this asks without further checks.
const MAX_REMOVALS: usize = 256;

impl ShellCommand<'_> {
    /// The first critical path that the command removes.
    pub(crate) fn critical_removal(&self, case: &DecisionInput<'_>) -> Option<String> {
        let removed = self.script.commands.iter().flat_map(|part| &part.removals);
        let mut different: Vec<&WordValue> = Vec::new();
        for value in removed {
            if !different.contains(&value) {
                different.push(value);
            }
            if different.len() > MAX_REMOVALS {
                return Some(self.path_context.cwd.display().to_string());
            }
        }
        if different.is_empty() {
            return None;
        }
        let places = CriticalPaths::new(case, &self.directories.all().collect::<Vec<_>>());
        different.into_iter().find_map(|value| self.critical_value(value, &places))
    }

    fn critical_value(&self, value: &WordValue, places: &CriticalPaths) -> Option<String> {
        match value {
            WordValue::Literal(text) => self.is_critical_path(text, places).then(|| text.clone()),
            WordValue::Glob(glob) => self.is_critical_glob(glob, places).then(|| glob.clone()),
            WordValue::Unknown { nonempty: true, .. } => None,
            WordValue::Unknown { before, after, .. } => self.critical_unknown_value(before, after, places),
        }
    }

    fn is_critical_path(&self, text: &str, places: &CriticalPaths) -> bool {
        if text.is_empty() {
            return false;
        }
        if self.directories.may_be_elsewhere(text) {
            return true;
        }
        let lost = self.directories.may_be_anywhere
            && matches!(text.trim_end_matches('/'), "." | ".." | "./." | "./..");
        lost || self
            .resolve(text)
            .iter()
            .any(|path| [&path.lexical, &path.physical].into_iter().any(|path| places.contains(path)))
    }

    /// A glob is critical if it matches directly below a critical path, or matches one.
    fn is_critical_glob(&self, glob: &str, places: &CriticalPaths) -> bool {
        if self.directories.may_be_elsewhere(glob) {
            return true;
        }
        let glob = glob.trim_end_matches('/');
        let (directory, name) = match glob.rsplit_once('/') {
            Some(("", name)) => ("/", name),
            Some((directory, name)) => (directory, name),
            None => ("", glob),
        };
        let below_place = |path: &Path| places.contains(path) || places.contains_for_globs(path);
        let spelled = |text: &str| {
            self.resolve(text).iter().any(|path| below_place(&path.lexical) || below_place(&path.physical))
        };
        if has_wildcard(directory) {
            // Wildcards in the directory part must be resolved on disk.
            let unresolved = self.directories.all().any(|at| {
                let expansion = self.expand_glob(directory, at);
                !expansion.complete
                    || expansion.paths.is_empty()
                    || has_wildcard(name)
                        && expansion.paths.iter().any(|path| spelled(&path.to_string_lossy()))
            });
            if unresolved && spelled(&literal_prefix(directory).to_string_lossy()) {
                return true;
            }
        } else if has_wildcard(name) && spelled(&unescape(directory)) {
            return true;
        }
        self.directories.all().any(|at| {
            let expansion = self.expand_glob(glob, at);
            expansion.paths.iter().any(|path| self.is_critical_path(&path.to_string_lossy(), places))
        }) || self.path_context.fs.is_budget_exhausted()
    }

    /// A word with an unknown part is critical if it is critical with that part empty.
    fn critical_unknown_value(&self, before: &str, after: &str, places: &CriticalPaths) -> Option<String> {
        let shown = format!("{before}${after}");
        if before.is_empty() {
            let below = after.strip_prefix('/').map(|rest| rest.trim_matches('/'));
            let all = below.is_some_and(|rest| {
                rest.is_empty() || has_wildcard(rest) && !rest.contains('/') || matches!(rest, "." | "..")
            });
            return (all || has_wildcard(after) && !after.contains('/')).then_some(shown);
        }
        let emptied = format!("{before}{}", unescape(after));
        let critical = if has_wildcard(after) {
            self.is_critical_glob(&format!("{before}{after}"), places)
        } else {
            self.is_critical_path(&emptied, places)
        };
        critical.then_some(shown)
    }
}

/// Paths that must not be removed, folded for comparison.
struct CriticalPaths {
    /// The home directory, the working directory and its ancestors.
    exact: Vec<PathBuf>,
    /// Additional directories and their ancestors: critical only as `dir/*`.
    globs: Vec<PathBuf>,
}

impl CriticalPaths {
    fn new(case: &DecisionInput<'_>, directories: &[&Path]) -> Self {
        let primary = &case.dirs.primary;
        let around = case.context.path_context();
        let shell = crate::paths::resolve_absolute(around.cwd, &around);
        let home = crate::paths::resolve_absolute(around.home, &around);
        let working = [&primary.lexical, &primary.physical, &shell.lexical, &shell.physical];
        let working = working.into_iter().map(PathBuf::as_path).chain(directories.iter().copied());
        let ancestors = working.flat_map(Path::ancestors);
        let exact =
            ancestors.chain([home.lexical.as_path(), home.physical.as_path()]).map(fold_path).collect();
        let extra = case.dirs.extra.iter().flat_map(|(dir, _)| [&dir.lexical, &dir.physical]);
        let globs = extra.flat_map(|path| path.ancestors()).map(fold_path).collect();
        Self { exact, globs }
    }

    fn contains(&self, path: &Path) -> bool {
        let path = fold_path(path);
        let top = path.parent().is_none_or(|parent| parent == Path::new("/"));
        top || self.exact.contains(&path)
    }

    fn contains_for_globs(&self, path: &Path) -> bool {
        self.globs.contains(&fold_path(path))
    }
}
