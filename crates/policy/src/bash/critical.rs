//! Removals that are asked about in every mode: the root, a home, the working directory, and everything in them.

use std::path::{Path, PathBuf};

use super::Command;
use super::expand::{is_wild, static_prefix, unescape};
use crate::decide::Case;
use crate::folded::fold;
use crate::shell::Value;

/// Who removes more than this at once is asked without a closer look.
const MAX_REMOVALS: usize = 256;

impl Command<'_> {
    /// What the command removes that is critical, if anything.
    pub(crate) fn critical_removal(&self, case: &Case<'_>) -> Option<String> {
        let removed = self.script.parts.iter().flat_map(|part| &part.critical);
        let mut different: Vec<&Value> = Vec::new();
        for value in removed {
            if !different.contains(&value) {
                different.push(value);
            }
            if different.len() > MAX_REMOVALS {
                return Some(self.around.cwd.display().to_string());
            }
        }
        if different.is_empty() {
            return None;
        }
        let places = Places::of(case, &self.directories.all().collect::<Vec<_>>());
        different.into_iter().find_map(|value| self.critical(value, &places))
    }

    fn critical(&self, value: &Value, places: &Places) -> Option<String> {
        match value {
            Value::Literal(text) => self.critical_path(text, places).then(|| text.clone()),
            Value::Glob(glob) => self.critical_glob(glob, places).then(|| glob.clone()),
            Value::Unknown { guarded: true, .. } => None,
            Value::Unknown { before, after, .. } => self.critical_unknown(before, after, places),
        }
    }

    fn critical_path(&self, text: &str, places: &Places) -> bool {
        if text.is_empty() {
            return false;
        }
        if self.directories.leave_open(text) {
            return true;
        }
        let lost = self.directories.lost && matches!(text.trim_end_matches('/'), "." | ".." | "./." | "./..");
        lost || self
            .spell(text)
            .iter()
            .any(|path| [&path.lexical, &path.physical].into_iter().any(|path| places.hold(path)))
    }

    /// A glob is critical directly below a critical place, or if it becomes one.
    fn critical_glob(&self, glob: &str, places: &Places) -> bool {
        if self.directories.leave_open(glob) {
            return true;
        }
        let glob = glob.trim_end_matches('/');
        let (directory, name) = match glob.rsplit_once('/') {
            Some(("", name)) => ("/", name),
            Some((directory, name)) => (directory, name),
            None => ("", glob),
        };
        let below_place = |path: &Path| places.hold(path) || places.hold_for_globs(path);
        let spelled = |text: &str| {
            self.spell(text).iter().any(|path| below_place(&path.lexical) || below_place(&path.physical))
        };
        if is_wild(directory) {
            // Which directories these are is known only from the disk.
            let unresolved = self.directories.all().any(|at| {
                let expansion = self.expand(directory, at);
                !expansion.complete
                    || expansion.paths.is_empty()
                    || is_wild(name) && expansion.paths.iter().any(|path| spelled(&path.to_string_lossy()))
            });
            if unresolved && spelled(&static_prefix(directory).to_string_lossy()) {
                return true;
            }
        } else if is_wild(name) && spelled(&unescape(directory)) {
            return true;
        }
        self.directories.all().any(|at| {
            let expansion = self.expand(glob, at);
            expansion.paths.iter().any(|path| self.critical_path(&path.to_string_lossy(), places))
        }) || self.around.fs.gives_up()
    }

    /// A word with an unknown stretch is critical if it would be one with nothing in that place.
    fn critical_unknown(&self, before: &str, after: &str, places: &Places) -> Option<String> {
        let shown = format!("{before}${after}");
        if before.is_empty() {
            let below = after.strip_prefix('/').map(|rest| rest.trim_matches('/'));
            let all = below.is_some_and(|rest| {
                rest.is_empty() || is_wild(rest) && !rest.contains('/') || matches!(rest, "." | "..")
            });
            return (all || is_wild(after) && !after.contains('/')).then_some(shown);
        }
        let emptied = format!("{before}{}", unescape(after));
        let critical = if is_wild(after) {
            self.critical_glob(&format!("{before}{after}"), places)
        } else {
            self.critical_path(&emptied, places)
        };
        critical.then_some(shown)
    }
}

/// The places that cannot be given up, folded for comparing.
struct Places {
    /// Home, the working directory and the ancestors of it.
    exact: Vec<PathBuf>,
    /// Additional directories and their ancestors: critical only as `dir/*`.
    globs: Vec<PathBuf>,
}

impl Places {
    fn of(case: &Case<'_>, directories: &[&Path]) -> Self {
        let primary = &case.dirs.primary;
        let around = case.facts.surroundings();
        let shell = crate::paths::resolve_absolute(around.cwd, &around);
        let home = crate::paths::resolve_absolute(around.home, &around);
        let working = [&primary.lexical, &primary.physical, &shell.lexical, &shell.physical];
        let working = working.into_iter().map(PathBuf::as_path).chain(directories.iter().copied());
        let ancestors = working.flat_map(Path::ancestors);
        let exact = ancestors.chain([home.lexical.as_path(), home.physical.as_path()]).map(fold).collect();
        let extra = case.dirs.extra.iter().flat_map(|(dir, _)| [&dir.lexical, &dir.physical]);
        let globs = extra.flat_map(|path| path.ancestors()).map(fold).collect();
        Self { exact, globs }
    }

    fn hold(&self, path: &Path) -> bool {
        let path = fold(path);
        let top = path.parent().is_none_or(|parent| parent == Path::new("/"));
        top || self.exact.contains(&path)
    }

    fn hold_for_globs(&self, path: &Path) -> bool {
        self.globs.contains(&fold(path))
    }
}
