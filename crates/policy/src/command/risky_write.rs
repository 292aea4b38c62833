//! Risky writes, which require permission whatever the rules allow.

use std::collections::HashSet;

use super::globs::extract_literal_prefix;
use super::{ShellCommand, extract_literal_directory};
use crate::decision::SafetyRisk;
use crate::decision_input::DecisionInput;
use crate::dir_walk::WalkResult;
use crate::file_access::find_write_risk;
use crate::paths::ResolvedPath;
use crate::paths::protected::contains_any;
use crate::shell::{RedirectDirection, RedirectTargetKind, SimpleCommand, WordValue};

impl ShellCommand<'_> {
    /// Finds the first protected or suspicious path that the command writes.
    pub(crate) fn find_risky_write(&self, input: &DecisionInput<'_>) -> Option<(SafetyRisk, String)> {
        let simple_commands = self.analysis.commands.iter();
        let writes = simple_commands.clone().flat_map(|simple_command| {
            written_values(simple_command).map(move |value| (value, is_removal_or_move(simple_command)))
        });
        // Each written value is checked once.
        let mut seen = HashSet::new();
        let mut writes = writes.filter(|write| seen.insert(*write));
        let written = writes.find_map(|(value, removes)| self.find_value_risk(value, removes, input));
        written.or_else(|| {
            let copied = simple_commands
                .filter(|simple_command| simple_command.recursive && !simple_command.dir_targets.is_empty());
            copied
                .flat_map(|simple_command| &simple_command.reads)
                .find_map(|value| self.find_copy_risk(value))
        })
    }

    /// Finds protected files below the source of a recursive copy, which copies them too.
    fn find_copy_risk(&self, value: &WordValue) -> Option<(SafetyRisk, String)> {
        let WordValue::Literal(text) = value else { return None };
        let paths = self.resolve(text);
        let found = paths.iter().find(|path| {
            match self.disk.walk_cache.find_protected(&path.physical, self.disk.context.fs) {
                WalkResult::Found => true,
                WalkResult::LimitExceeded => self.disk.context.fs.is_budget_exhausted(),
                WalkResult::NotFound => false,
            }
        });
        found.map(|path| (SafetyRisk::ProtectedPath, path.physical.display().to_string()))
    }

    fn find_value_risk(
        &self,
        value: &WordValue,
        removes: bool,
        input: &DecisionInput<'_>,
    ) -> Option<(SafetyRisk, String)> {
        let of_text = |text: &str| {
            if self.directories.may_be_elsewhere(text) {
                return Some((SafetyRisk::ProtectedPath, text.to_owned()));
            }
            let paths = self.resolve(text);
            paths.iter().find_map(|path| self.find_path_risk(path, removes, input))
        };
        match value {
            WordValue::Literal(text) => of_text(text),
            WordValue::Glob(glob) => {
                let prefix = extract_literal_prefix(glob);
                let prefix = prefix.to_string_lossy();
                let in_prefix = (!prefix.is_empty()).then(|| self.find_prefix_risk(&prefix, input)).flatten();
                in_prefix.or_else(|| {
                    let matches = self
                        .directories
                        .all()
                        .flat_map(|directory| self.expand_glob(glob, directory).paths.clone());
                    let found = matches.into_iter().find_map(|path| of_text(&path.to_string_lossy()));
                    found.or_else(|| {
                        self.disk
                            .context
                            .fs
                            .is_budget_exhausted()
                            .then(|| (SafetyRisk::ProtectedPath, glob.clone()))
                    })
                })
            }
            WordValue::Unknown { before, .. } => {
                self.find_prefix_risk(extract_literal_directory(before), input)
            }
        }
    }

    fn find_prefix_risk(&self, directory: &str, input: &DecisionInput<'_>) -> Option<(SafetyRisk, String)> {
        let paths = self.resolve(directory);
        let path = paths
            .iter()
            .find(|path| path.forms().any(|path| input.is_protected(path)))
            .filter(|_| !directory.is_empty())?;
        Some((SafetyRisk::ProtectedPath, path.physical.display().to_string()))
    }

    fn find_path_risk(
        &self,
        path: &ResolvedPath,
        removes: bool,
        input: &DecisionInput<'_>,
    ) -> Option<(SafetyRisk, String)> {
        let shown = || path.physical.display().to_string();
        if let Some(risk) = find_write_risk(input, path) {
            return Some((risk, shown()));
        }
        (removes && self.contains_protected(path, input)).then(|| (SafetyRisk::ProtectedPath, shown()))
    }

    /// Returns true if something protected lies below a directory that is removed or moved.
    fn contains_protected(&self, directory: &ResolvedPath, input: &DecisionInput<'_>) -> bool {
        directory.forms().any(|directory| contains_any(directory, input.context.protected_paths))
            || self.disk.walk_cache.find_protected(&directory.lexical, self.disk.context.fs)
                != WalkResult::NotFound
    }
}

/// Everything that a simple command writes. The target of a link counts, because it may be changed through the link.
fn written_values(simple_command: &SimpleCommand) -> impl Iterator<Item = &WordValue> {
    let linked = simple_command.reads.iter().filter(|_| simple_command.program.as_deref() == Some("ln"));
    let redirects = simple_command.redirects.iter();
    let redirects = redirects.filter(|redirect| {
        redirect.direction == RedirectDirection::Write && redirect.target_kind == RedirectTargetKind::File
    });
    simple_command.writes.iter().chain(linked).chain(redirects.map(|redirect| &redirect.target))
}

/// Returns true if a simple command removes or moves its operands with everything below them.
fn is_removal_or_move(simple_command: &SimpleCommand) -> bool {
    matches!(simple_command.program.as_deref(), Some("rm" | "mv" | "rmdir"))
}
