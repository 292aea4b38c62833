//! Dangerous writes, which ask whatever the rules allow.

use std::collections::HashSet;

use super::glob_expansion::literal_prefix;
use super::{ShellCommand, literal_directory};
use crate::decision::Danger;
use crate::decision_input::DecisionInput;
use crate::dir_walk::WalkResult;
use crate::file_access::write_danger;
use crate::paths::ResolvedPath;
use crate::paths::protected::contains_any;
use crate::shell::{RedirectDirection, RedirectTargetKind, SimpleCommand, WordValue};

impl ShellCommand<'_> {
    /// The first protected or suspicious path that the command writes.
    pub(crate) fn dangerous_write(&self, case: &DecisionInput<'_>) -> Option<(Danger, String)> {
        let parts = self.script.commands.iter();
        let writes = parts
            .clone()
            .flat_map(|part| written_values(part).map(move |value| (value, is_removal_or_move(part))));
        // Each written value is checked once.
        let mut seen = HashSet::new();
        let mut writes = writes.filter(|write| seen.insert(*write));
        let written = writes.find_map(|(value, takes_away)| self.value_danger(value, takes_away, case));
        written.or_else(|| {
            let copied = parts.filter(|part| part.recursive && !part.dir_targets.is_empty());
            copied.flat_map(|part| &part.reads).find_map(|value| self.copy_danger(value))
        })
    }

    /// A recursive copy also copies protected files below its source.
    fn copy_danger(&self, value: &WordValue) -> Option<(Danger, String)> {
        let WordValue::Literal(text) = value else { return None };
        let spelled = self.resolve(text);
        let found = spelled.iter().find(|path| {
            match self.walked.find_protected(&path.physical, self.path_context.fs) {
                WalkResult::Found => true,
                WalkResult::LimitExceeded => self.path_context.fs.is_budget_exhausted(),
                WalkResult::NotFound => false,
            }
        });
        found.map(|path| (Danger::ProtectedPath, path.physical.display().to_string()))
    }

    fn value_danger(
        &self,
        value: &WordValue,
        takes_away: bool,
        case: &DecisionInput<'_>,
    ) -> Option<(Danger, String)> {
        let of_text = |text: &str| {
            if self.directories.may_be_elsewhere(text) {
                return Some((Danger::ProtectedPath, text.to_owned()));
            }
            let spellings = self.resolve(text);
            spellings.iter().find_map(|path| self.path_danger(path, takes_away, case))
        };
        match value {
            WordValue::Literal(text) => of_text(text),
            WordValue::Glob(glob) => {
                let prefix = literal_prefix(glob);
                let prefix = prefix.to_string_lossy();
                let in_prefix = (!prefix.is_empty()).then(|| self.prefix_danger(&prefix, case)).flatten();
                in_prefix.or_else(|| {
                    let matches =
                        self.directories.all().flat_map(|at| self.expand_glob(glob, at).paths.clone());
                    let found = matches.into_iter().find_map(|path| of_text(&path.to_string_lossy()));
                    found.or_else(|| {
                        self.path_context
                            .fs
                            .is_budget_exhausted()
                            .then(|| (Danger::ProtectedPath, glob.clone()))
                    })
                })
            }
            WordValue::Unknown { before, .. } => self.prefix_danger(literal_directory(before), case),
        }
    }

    fn prefix_danger(&self, directory: &str, case: &DecisionInput<'_>) -> Option<(Danger, String)> {
        let spellings = self.resolve(directory);
        let path = spellings
            .iter()
            .find(|path| path.spellings().any(|path| case.is_protected(path)))
            .filter(|_| !directory.is_empty())?;
        Some((Danger::ProtectedPath, path.physical.display().to_string()))
    }

    fn path_danger(
        &self,
        path: &ResolvedPath,
        takes_away: bool,
        case: &DecisionInput<'_>,
    ) -> Option<(Danger, String)> {
        let shown = || path.physical.display().to_string();
        if let Some(danger) = write_danger(case, path) {
            return Some((danger, shown()));
        }
        (takes_away && self.contains_protected(path, case)).then(|| (Danger::ProtectedPath, shown()))
    }

    /// Returns true if something protected lies below a directory that is removed or moved.
    fn contains_protected(&self, directory: &ResolvedPath, case: &DecisionInput<'_>) -> bool {
        directory.spellings().any(|directory| contains_any(directory, case.context.protected_paths))
            || self.walked.find_protected(&directory.lexical, self.path_context.fs) != WalkResult::NotFound
    }
}

/// Everything that a simple command writes. The target of a link counts, because it may be changed through the link.
fn written_values(part: &SimpleCommand) -> impl Iterator<Item = &WordValue> {
    let linked = part.reads.iter().filter(|_| part.program.as_deref() == Some("ln"));
    let redirects = part.redirects.iter();
    let redirects = redirects.filter(|redirect| {
        redirect.direction == RedirectDirection::Write && redirect.target_kind == RedirectTargetKind::File
    });
    part.writes.iter().chain(linked).chain(redirects.map(|redirect| &redirect.target))
}

/// Returns true if a simple command removes or moves its operands with everything below them.
fn is_removal_or_move(part: &SimpleCommand) -> bool {
    matches!(part.program.as_deref(), Some("rm" | "mv" | "rmdir"))
}
