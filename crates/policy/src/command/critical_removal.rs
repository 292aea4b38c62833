//! Critical removals, which require permission in every mode: the root, a home directory, the working directory, and
//! everything in them.

use std::path::{Path, PathBuf};

use super::ShellCommand;
use super::globs::{extract_literal_prefix, has_wildcard, unescape};
use crate::decision_input::DecisionInput;
use crate::paths::folded_path::fold_path;
use crate::shell::WordValue;

/// A command with more removals than this requires permission without further checks.
const MAX_REMOVALS: usize = 256;

impl ShellCommand<'_> {
    /// Finds the first critical path that the command removes.
    pub(crate) fn find_critical_removal(&self, input: &DecisionInput<'_>) -> Option<String> {
        let removed = self.analysis.commands.iter().flat_map(|simple_command| &simple_command.removals);
        let mut values: Vec<&WordValue> = Vec::new();
        for value in removed {
            if !values.contains(&value) {
                values.push(value);
            }
            if values.len() > MAX_REMOVALS {
                return Some(self.disk.context.cwd.display().to_string());
            }
        }
        if values.is_empty() {
            return None;
        }
        let critical_paths = CriticalPaths::new(input, &self.directories.all().collect::<Vec<_>>());
        values.into_iter().find_map(|value| self.find_critical_value(value, &critical_paths))
    }

    fn find_critical_value(&self, value: &WordValue, critical_paths: &CriticalPaths) -> Option<String> {
        match value {
            WordValue::Literal(text) => self.is_critical_path(text, critical_paths).then(|| text.clone()),
            WordValue::Glob(glob) => self.is_critical_glob(glob, critical_paths).then(|| glob.clone()),
            WordValue::Unknown { nonempty: true, .. } => None,
            WordValue::Unknown { before, after, .. } => {
                self.find_critical_unknown_value(before, after, critical_paths)
            }
        }
    }

    fn is_critical_path(&self, text: &str, critical_paths: &CriticalPaths) -> bool {
        if text.is_empty() {
            return false;
        }
        if self.directories.may_be_elsewhere(text) {
            return true;
        }
        let unknown_directory = self.directories.may_be_anywhere
            && matches!(text.trim_end_matches('/'), "." | ".." | "./." | "./..");
        unknown_directory
            || self.resolve(text).iter().any(|path| {
                [&path.lexical, &path.physical].into_iter().any(|path| critical_paths.contains(path))
            })
    }

    /// A glob is critical if it matches directly below a critical path, or matches one.
    fn is_critical_glob(&self, glob: &str, critical_paths: &CriticalPaths) -> bool {
        if self.directories.may_be_elsewhere(glob) {
            return true;
        }
        let glob = glob.trim_end_matches('/');
        let (directory, name) = match glob.rsplit_once('/') {
            Some(("", name)) => ("/", name),
            Some((directory, name)) => (directory, name),
            None => ("", glob),
        };
        let is_or_contains =
            |path: &Path| critical_paths.contains(path) || critical_paths.contains_for_globs(path);
        let is_critical = |text: &str| {
            self.resolve(text)
                .iter()
                .any(|path| is_or_contains(&path.lexical) || is_or_contains(&path.physical))
        };
        if has_wildcard(directory) {
            // Wildcards in the directory part must be resolved on disk.
            let unresolved = self.directories.all().any(|from| {
                let expansion = self.expand_glob(directory, from);
                !expansion.complete
                    || expansion.paths.is_empty()
                    || has_wildcard(name)
                        && expansion.paths.iter().any(|path| is_critical(&path.to_string_lossy()))
            });
            if unresolved && is_critical(&extract_literal_prefix(directory).to_string_lossy()) {
                return true;
            }
        } else if has_wildcard(name) && is_critical(&unescape(directory)) {
            return true;
        }
        self.directories.all().any(|from| {
            let expansion = self.expand_glob(glob, from);
            expansion.paths.iter().any(|path| self.is_critical_path(&path.to_string_lossy(), critical_paths))
        }) || self.disk.context.fs.is_budget_exhausted()
    }

    /// Finds the critical path that a word with an unknown part refers to if that part is empty.
    fn find_critical_unknown_value(
        &self,
        before: &str,
        after: &str,
        critical_paths: &CriticalPaths,
    ) -> Option<String> {
        let text = format!("{before}${after}");
        if before.is_empty() {
            let below = after.strip_prefix('/').map(|rest| rest.trim_matches('/'));
            let all = below.is_some_and(|rest| {
                rest.is_empty() || has_wildcard(rest) && !rest.contains('/') || matches!(rest, "." | "..")
            });
            return (all || has_wildcard(after) && !after.contains('/')).then_some(text);
        }
        let emptied = format!("{before}{}", unescape(after));
        let is_critical = if has_wildcard(after) {
            self.is_critical_glob(&format!("{before}{after}"), critical_paths)
        } else {
            self.is_critical_path(&emptied, critical_paths)
        };
        is_critical.then_some(text)
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
    fn new(input: &DecisionInput<'_>, directories: &[&Path]) -> Self {
        let primary = &input.dirs.primary;
        let context = input.context.path_context();
        let shell = crate::paths::resolve_absolute(context.cwd, &context);
        let home = crate::paths::resolve_absolute(context.home, &context);
        let working = [&primary.lexical, &primary.physical, &shell.lexical, &shell.physical];
        let working = working.into_iter().map(PathBuf::as_path).chain(directories.iter().copied());
        let ancestors = working.flat_map(Path::ancestors);
        let exact =
            ancestors.chain([home.lexical.as_path(), home.physical.as_path()]).map(fold_path).collect();
        let extra = input.dirs.extra.iter().flat_map(|(dir, _)| [&dir.lexical, &dir.physical]);
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
