//! Effects of one simple command, by its name and arguments.

use super::{
    builtins, edit_commands, find, flag_checked, git, jq, operands, readers, removals, risky_arguments, sed,
};
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
    /// True if an unquoted glob among its arguments asks.
    pub(crate) asks_for_globs: bool,
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
            asks_for_globs: false,
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

/// Program name for deny rules: last component of the path, without `.exe`, in lower case.
pub(crate) fn program_name(name: &str) -> String {
    let last = name.rsplit('/').next().unwrap_or(name);
    let lowered = last.to_ascii_lowercase();
    lowered.strip_suffix(".exe").map_or_else(|| lowered.clone(), str::to_owned)
}

/// Determines the effects of a command. The class follows the name as written, everything else the normalized program
/// name.
pub(crate) fn command_effects(words: &[Word]) -> CommandEffects {
    let Some((first, arguments)) = words.split_first() else {
        return CommandEffects { class: CommandClass::NoCommand, ..CommandEffects::default() };
    };
    let Some(name) = first.value.as_literal() else { return CommandEffects::default() };
    let mut facts = effects_by_name(name, arguments).unwrap_or_default();
    let plain = program_name(name);
    if plain != name {
        // Another spelling of a known command: not classified as that command, but its files are reported.
        let wide = effects_by_name(&plain, arguments).unwrap_or_default();
        facts.reads.extend(wide.reads);
        facts.writes.extend(wide.writes);
        facts.dir_targets.extend(wide.dir_targets);
        facts.recursive |= wide.recursive;
        facts.writes_recursively |= wide.writes_recursively;
        facts.bulk_write_dirs.extend(wide.bulk_write_dirs);
    }
    facts.removals = removals::removals(&plain, arguments);
    if risky_arguments::has_risky_arguments(name, arguments) { facts.requiring_exact_rule() } else { facts }
}

fn effects_by_name(name: &str, arguments: &[Word]) -> Option<CommandEffects> {
    if let Some(by) = builtins::required_rule(name) {
        let facts = operands::effects(name, arguments).unwrap_or_default();
        return Some(if by == RequiredRule::ExactRule {
            facts.requiring_exact_rule()
        } else {
            CommandEffects { required_rule: by, ..facts }
        });
    }
    if wrappers::is_exact_rule_wrapper(name) {
        return Some(CommandEffects::default().requiring_exact_rule());
    }
    match name {
        "git" => Some(git::effects(arguments)),
        "find" => Some(find::effects(arguments)),
        "sed" => Some(sed::effects(arguments)),
        "jq" => Some(jq::effects(arguments)),
        "cd" => Some(builtins::cd_effects(arguments)),
        _ => readers::effects(name, arguments)
            .or_else(|| flag_checked::effects(name, arguments))
            .or_else(|| edit_commands::effects(name, arguments))
            .or_else(|| operands::effects(name, arguments)),
    }
}
