//! Suggestions for commands: a rule for each part that needs one, and what its paths need.

use std::path::{Path, PathBuf};

use whimbrel_wire::permission::{Destination, PermissionMode, PermissionUpdate, RuleValue};

use super::{accept_edits, below, may_be_opened, open_directory, rules, session};
use crate::bash::{Command, Obstacle, Verdict};
use crate::command_pattern::escape;
use crate::decide::Case;
use crate::fs::EntryKind;
use crate::shell::{Class, Part, Way};

/// More rules than this are no longer looked at one by one.
const MAX_RULES: usize = 5;

/// Nobody sees what a rule would mean for more parts than this.
const MAX_PARTS: usize = 100;

/// Longer texts make no rule that anybody reads.
const LONGEST_RULE: usize = 2_000;

pub(super) fn suggestions(command: &Command<'_>, case: &Case<'_>) -> Vec<PermissionUpdate> {
    if command.script.judged().count() > MAX_PARTS {
        return Vec::new();
    }
    let open: Vec<&Part> =
        command.script.judged().filter(|part| command.verdict(part, case) == Verdict::Open).collect();
    if open.is_empty() || command.directory_obstacle(case).is_some() {
        return Vec::new();
    }
    let Some(values) = rule_values(&open) else { return Vec::new() };
    let mut updates = vec![rules(values, Destination::LocalSettings)];
    let outside: Vec<PathBuf> = outside_directories(command, &open, case);
    let writes = open.iter().any(|part| is_writer(part));
    match outside.as_slice() {
        [] => {}
        [directory] if may_be_opened(directory, case) => updates.push(match writes {
            true => open_directory(directory),
            false => session("Read", below(directory)),
        }),
        _ => return Vec::new(),
    }
    if writes && case.mode != PermissionMode::AcceptEdits {
        updates.push(accept_edits());
    }
    updates
}

/// One rule for each part, in order, none twice.
fn rule_values(open: &[&Part]) -> Option<Vec<RuleValue>> {
    let mut values: Vec<RuleValue> = Vec::new();
    for part in open {
        let suggestion = &part.suggestion;
        if suggestion.never || suggestion.exact.is_empty() || suggestion.exact.len() > LONGEST_RULE {
            return None;
        }
        let content = match &suggestion.prefix {
            Some(prefix) if !touches_outside_rules(part) => format!("{} *", escape(prefix)),
            _ => escape(&suggestion.exact),
        };
        let value = RuleValue { tool_name: "Bash".to_owned(), rule_content: Some(content) };
        if !values.contains(&value) {
            values.push(value);
        }
        if values.len() > MAX_RULES {
            return None;
        }
    }
    Some(values)
}

/// Whether a part only reads and is asked about for its paths alone: then the rule is exact.
fn touches_outside_rules(part: &Part) -> bool {
    part.class == Class::ReadOnly
}

fn is_writer(part: &Part) -> bool {
    part.class == Class::AcceptEdits
        || part
            .redirects
            .iter()
            .any(|redirect| redirect.way == Way::Write && redirect.place == crate::shell::Place::File)
}

/// The directories outside that the parts touch, each once: a directory itself, or the parent of a file.
fn outside_directories(command: &Command<'_>, open: &[&Part], case: &Case<'_>) -> Vec<PathBuf> {
    let mut directories = Vec::new();
    for part in open {
        for path in command.outside_paths(part, case) {
            let directory = containing(&path, part, case);
            if !directories.contains(&directory) {
                directories.push(directory);
            }
        }
    }
    directories
}

fn containing(path: &Path, part: &Part, case: &Case<'_>) -> PathBuf {
    let reads = part.class == Class::ReadOnly;
    if reads && case.facts.fs.lstat(path) == Some(EntryKind::Directory) {
        return path.to_owned();
    }
    path.parent().unwrap_or(path).to_owned()
}

impl Command<'_> {
    /// The paths outside the working directories that a part touches.
    fn outside_paths(&self, part: &Part, case: &Case<'_>) -> Vec<PathBuf> {
        let paths = self.path_obstacles(part, case).filter_map(|obstacle| match obstacle {
            Obstacle::Path(path) => Some(path),
            Obstacle::Unknown => None,
        });
        paths.filter(|path| !case.dirs.all().any(|dir| dir.holds(path))).collect()
    }
}
