//! What one simple command does, by its name and arguments.

use super::{RequiredRule, CommandClass, DirTarget, WordValue, Word};
use super::{builtins, flag_checked, removals, edit_commands, find, git, jq, operands, readers, risky_arguments, sed, wrappers};

/// What is known of a command.
#[derive(Debug, Clone)]
pub(super) struct CommandEffects {
    pub(super) class: CommandClass,
    pub(super) reads: Vec<WordValue>,
    pub(super) writes: Vec<WordValue>,
    /// What it puts into directories.
    pub(super) dir_targets: Vec<DirTarget>,
    pub(super) recursive: bool,
    /// Whether it changes all that lies below what it writes.
    pub(super) writes_recursively: bool,
    /// Directories in which it may change anything.
    pub(super) bulk_write_dirs: Vec<WordValue>,
    pub(super) removals: Vec<WordValue>,
    /// Whether its files must be in scope even under a rule with a specifier.
    pub(super) restricts_paths: bool,
    /// Whether an unquoted glob among its arguments asks.
    pub(super) asks_for_globs: bool,
    /// The least that an allow rule must be.
    pub(super) required_rule: RequiredRule,
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
    /// The same, never allowed by a rule with a star.
    pub(super) fn requiring_exact_rule(self) -> Self {
        Self { class: CommandClass::ExactRuleOnly, required_rule: RequiredRule::ExactRule, ..self }
    }
}

/// The name that counts for refusing: the last part of the path, without `.exe`, in lower case.
pub(super) fn program_name(name: &str) -> String {
    let last = name.rsplit('/').next().unwrap_or(name);
    let lowered = last.to_ascii_lowercase();
    lowered.strip_suffix(".exe").map_or_else(|| lowered.clone(), str::to_owned)
}

/// What a command does. Its class goes by the name exactly as written, the rest by the plain name.
pub(super) fn command_effects(words: &[Word]) -> CommandEffects {
    let Some((first, arguments)) = words.split_first() else {
        return CommandEffects { class: CommandClass::NoCommand, ..CommandEffects::default() };
    };
    let Some(name) = first.value.as_literal() else { return CommandEffects::default() };
    let mut facts = effects_by_name(name, arguments).unwrap_or_default();
    let plain = program_name(name);
    if plain != name {
        // Another spelling of a known command: never allowed for what it is, but searched as such.
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
        return Some(if by == RequiredRule::ExactRule { facts.requiring_exact_rule() } else { CommandEffects { required_rule: by, ..facts } });
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
