//! Suggestions for shell commands: a rule for each simple command that needs one, and access to its paths.

use std::path::{Path, PathBuf};

use whimbrel_wire::permission::{Destination, PermissionMode, PermissionUpdate, RuleValue};

use super::{
    build_accept_edits_update, build_add_directory_update, build_add_rules_update, build_contents_pattern,
    build_session_rule_update, can_open_directory,
};
use crate::command::{Approval, BlockingPath, ShellCommand};
use crate::decision_input::DecisionInput;
use crate::fs::FileType;
use crate::rules::command_pattern::escape;
use crate::shell::{CommandClass, RedirectDirection, SimpleCommand};

/// With more rules than this, a user would not review them one by one.
const MAX_RULES: usize = 5;

/// With more simple commands than this, a user cannot see what the rules would cover.
const MAX_COMMANDS: usize = 100;

/// Longer rules would not be read.
const MAX_RULE_LENGTH: usize = 2_000;

pub(super) fn build_suggestions(
    command: &ShellCommand<'_>,
    input: &DecisionInput<'_>,
) -> Vec<PermissionUpdate> {
    if command.analysis.checked_commands().count() > MAX_COMMANDS {
        return Vec::new();
    }
    let unapproved: Vec<&SimpleCommand> = command
        .analysis
        .checked_commands()
        .filter(|simple_command| command.determine_approval(simple_command, input) == Approval::NotApproved)
        .collect();
    if unapproved.is_empty() || command.find_directory_change_block(input).is_some() {
        return Vec::new();
    }
    let Some(values) = build_rule_values(&unapproved) else { return Vec::new() };
    let mut updates = vec![build_add_rules_update(values, Destination::LocalSettings)];
    let outside: Vec<PathBuf> = find_outside_directories(command, &unapproved, input);
    let writes = unapproved.iter().any(|simple_command| writes_files(simple_command));
    match outside.as_slice() {
        [] => {}
        [directory] if can_open_directory(directory, input) => updates.push(match writes {
            true => build_add_directory_update(directory),
            false => build_session_rule_update("Read", build_contents_pattern(directory)),
        }),
        _ => return Vec::new(),
    }
    if writes && input.mode != PermissionMode::AcceptEdits {
        updates.push(build_accept_edits_update());
    }
    updates
}

/// Builds one rule per simple command, in order, without duplicates.
fn build_rule_values(unapproved: &[&SimpleCommand]) -> Option<Vec<RuleValue>> {
    let mut values: Vec<RuleValue> = Vec::new();
    for simple_command in unapproved {
        let suggestion = &simple_command.suggestion;
        if suggestion.suppressed || suggestion.exact.is_empty() || suggestion.exact.len() > MAX_RULE_LENGTH {
            return None;
        }
        let content = match &suggestion.prefix {
            Some(prefix) if !needs_exact_rule(simple_command) => format!("{} *", escape(prefix)),
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

/// Returns true if a simple command is read-only and requires permission only because of its paths, so that the rule
/// must be exact.
fn needs_exact_rule(simple_command: &SimpleCommand) -> bool {
    simple_command.class == CommandClass::ReadOnly
}

fn writes_files(simple_command: &SimpleCommand) -> bool {
    simple_command.class == CommandClass::AcceptEdits
        || simple_command.redirects.iter().any(|redirect| {
            redirect.direction == RedirectDirection::Write
                && redirect.target_kind == crate::shell::RedirectTargetKind::File
        })
}

/// Finds directories outside the working directories that the commands access, each once: a directory itself, or the
/// parent of a file.
fn find_outside_directories(
    command: &ShellCommand<'_>,
    unapproved: &[&SimpleCommand],
    input: &DecisionInput<'_>,
) -> Vec<PathBuf> {
    let mut directories = Vec::new();
    for simple_command in unapproved {
        for path in find_outside_paths(command, simple_command, input) {
            let directory = find_containing_directory(&path, simple_command, input);
            if !directories.contains(&directory) {
                directories.push(directory);
            }
        }
    }
    directories
}

fn find_containing_directory(
    path: &Path,
    simple_command: &SimpleCommand,
    input: &DecisionInput<'_>,
) -> PathBuf {
    let reads = simple_command.class == CommandClass::ReadOnly;
    if reads && input.context.fs.lstat(path) == Some(FileType::Directory) {
        return path.to_owned();
    }
    path.parent().unwrap_or(path).to_owned()
}

/// Finds paths outside the working directories that a simple command accesses.
fn find_outside_paths(
    command: &ShellCommand<'_>,
    simple_command: &SimpleCommand,
    input: &DecisionInput<'_>,
) -> Vec<PathBuf> {
    let paths = command.find_blocking_paths(simple_command, input).filter_map(|blocking| match blocking {
        BlockingPath::Known(path) => Some(path),
        BlockingPath::Unknown => None,
    });
    paths.filter(|path| !input.dirs.all().any(|dir| dir.contains(path))).collect()
}
