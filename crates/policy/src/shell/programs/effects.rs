//! Effects of one simple command, by its name and arguments.

use super::risky_arguments::has_risky_arguments;
use super::{accepted_edits, builtins, find, git, jq, operands, read_only, read_only_with_flags, sed};
use crate::shell::nested::wrappers;
use crate::shell::{CommandClass, DirTarget, RequiredRule, Word, WordValue};

/// Effects of a command.
#[derive(Debug, Clone)]
pub(crate) struct CommandEffects {
    pub(crate) class: CommandClass,
    pub(crate) reads: Vec<WordValue>,
    pub(crate) writes: Vec<WordValue>,
    /// Files that it writes into a directory.
    pub(crate) dir_targets: Vec<DirTarget>,
    pub(crate) recursive: bool,
    /// True if it changes everything below what it writes.
    pub(crate) writes_recursively: bool,
    /// Directories in which it may change any file.
    pub(crate) bulk_write_dirs: Vec<WordValue>,
    pub(crate) removals: Vec<WordValue>,
    /// True if its paths must be in the working directories even under a rule with a specifier.
    pub(crate) restricts_paths: bool,
    /// True if an unquoted glob among its arguments requires permission.
    pub(crate) globs_require_permission: bool,
    /// Weakest kind of allow rule that may allow it.
    pub(crate) required_rule: RequiredRule,
}

impl Default for CommandEffects {
    fn default() -> Self {
        Self {
            class: CommandClass::Other,
            reads: Vec::new(),
            writes: Vec::new(),
            dir_targets: Vec::new(),
            recursive: false,
            writes_recursively: false,
            bulk_write_dirs: Vec::new(),
            removals: Vec::new(),
            restricts_paths: false,
            globs_require_permission: false,
            required_rule: RequiredRule::AnyRule,
        }
    }
}

impl CommandEffects {
    /// Restricts the command to exact allow rules.
    pub(crate) fn requiring_exact_rule(self) -> Self {
        Self { class: CommandClass::ExactRuleOnly, required_rule: RequiredRule::ExactRule, ..self }
    }
}

/// Extracts the program name for deny rules: last component of the path, without `.exe`, in lower case.
pub(crate) fn extract_program_name(name: &str) -> String {
    let last = name.rsplit('/').next().unwrap_or(name);
    let lowered = last.to_ascii_lowercase();
    lowered.strip_suffix(".exe").map_or_else(|| lowered.clone(), str::to_owned)
}

/// Determines the effects of a command. The class follows the name as written, everything else the normalized program
/// name.
pub(crate) fn determine_command_effects(words: &[Word]) -> CommandEffects {
    let Some((first, arguments)) = words.split_first() else {
        return CommandEffects { class: CommandClass::NoCommand, ..CommandEffects::default() };
    };
    let Some(name) = first.value.as_literal() else { return CommandEffects::default() };
    let mut effects = determine_effects_by_name(name, arguments).unwrap_or_default();
    let plain = extract_program_name(name);
    if plain != name {
        // Another name of a known command: not classified as that command, but its files are reported.
        let plain_effects = determine_effects_by_name(&plain, arguments).unwrap_or_default();
        effects.reads.extend(plain_effects.reads);
        effects.writes.extend(plain_effects.writes);
        effects.dir_targets.extend(plain_effects.dir_targets);
        effects.recursive |= plain_effects.recursive;
        effects.writes_recursively |= plain_effects.writes_recursively;
        effects.bulk_write_dirs.extend(plain_effects.bulk_write_dirs);
    }
    effects.removals = find_removals(&plain, arguments);
    if has_risky_arguments(name, arguments) { effects.requiring_exact_rule() } else { effects }
}

fn determine_effects_by_name(name: &str, arguments: &[Word]) -> Option<CommandEffects> {
    if let Some(required_rule) = builtins::find_required_rule(name) {
        let effects = operands::determine_effects(name, arguments).unwrap_or_default();
        return Some(if required_rule == RequiredRule::ExactRule {
            effects.requiring_exact_rule()
        } else {
            CommandEffects { required_rule, ..effects }
        });
    }
    if wrappers::is_exact_rule_wrapper(name) {
        return Some(CommandEffects::default().requiring_exact_rule());
    }
    match name {
        "git" => Some(git::determine_effects(arguments)),
        "find" => Some(find::determine_effects(arguments)),
        "sed" => Some(sed::determine_effects(arguments)),
        "jq" => Some(jq::determine_effects(arguments)),
        "cd" => Some(builtins::determine_cd_effects(arguments)),
        _ => read_only::determine_effects(name, arguments)
            .or_else(|| read_only_with_flags::determine_effects(name, arguments))
            .or_else(|| accepted_edits::determine_edit_effects(name, arguments))
            .or_else(|| operands::determine_effects(name, arguments)),
    }
}

/// Operands of `rm` and `rmdir`, and the starting points of a `find` that removes files.
fn find_removals(name: &str, arguments: &[Word]) -> Vec<WordValue> {
    match name {
        "rm" | "rmdir" | "unlink" => find_removal_operands(arguments),
        "find" if find_removes(arguments) => find::find_starting_points(arguments),
        _ => Vec::new(),
    }
}

fn find_removal_operands(arguments: &[Word]) -> Vec<WordValue> {
    let mut only_operands = false;
    let mut found = Vec::new();
    for word in arguments {
        match word.value.as_literal() {
            Some("--") if !only_operands => only_operands = true,
            Some(text) if !only_operands && text.starts_with('-') => {}
            _ => found.push(word.value.clone()),
        }
    }
    found
}

fn find_removes(arguments: &[Word]) -> bool {
    arguments.iter().any(|word| word.value.as_literal() == Some("-delete"))
        || find::find_exec_commands(arguments).iter().any(|command| {
            command.iter().any(|word| {
                word.value
                    .as_literal()
                    .is_some_and(|text| matches!(extract_program_name(text).as_str(), "rm" | "rmdir"))
            })
        })
}
