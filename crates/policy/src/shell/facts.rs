//! What one simple command does, by its name and arguments.

use super::{By, Class, Landing, Value, Word};
use super::{builtins, checked, critical, edits, find, git, jq, operands, readers, risks, sed, wrappers};

/// What is known of a command.
#[derive(Debug, Clone)]
pub(super) struct Facts {
    pub(super) class: Class,
    pub(super) reads: Vec<Value>,
    pub(super) writes: Vec<Value>,
    /// What it puts into directories.
    pub(super) lands: Vec<Landing>,
    pub(super) recursive: bool,
    /// Whether it changes all that lies below what it writes.
    pub(super) changes_below: bool,
    /// Directories in which it may change anything.
    pub(super) sweeps: Vec<Value>,
    pub(super) critical: Vec<Value>,
    /// Whether its files must be in scope even under a rule with a specifier.
    pub(super) scoped: bool,
    /// Whether an unquoted glob among its arguments asks.
    pub(super) minds_globs: bool,
    /// The least that an allow rule must be.
    pub(super) by: By,
}

impl Default for Facts {
    fn default() -> Self {
        Self {
            class: Class::Other,
            reads: Vec::new(),
            writes: Vec::new(),
            lands: Vec::new(),
            recursive: false,
            changes_below: false,
            sweeps: Vec::new(),
            critical: Vec::new(),
            scoped: false,
            minds_globs: false,
            by: By::AnyRule,
        }
    }
}

impl Facts {
    /// The same, never allowed by a rule with a star.
    pub(super) fn exact_only(self) -> Self {
        Self { class: Class::NeverByStar, by: By::ExactRule, ..self }
    }
}

/// The name that counts for refusing: the last part of the path, without `.exe`, in lower case.
pub(super) fn plain_name(name: &str) -> String {
    let last = name.rsplit('/').next().unwrap_or(name);
    let lowered = last.to_ascii_lowercase();
    lowered.strip_suffix(".exe").map_or_else(|| lowered.clone(), str::to_owned)
}

/// What a command does. Its class goes by the name exactly as written, the rest by the plain name.
pub(super) fn of(words: &[Word]) -> Facts {
    let Some((first, arguments)) = words.split_first() else {
        return Facts { class: Class::Nothing, ..Facts::default() };
    };
    let Some(name) = first.value.literal() else { return Facts::default() };
    let mut facts = by_name(name, arguments).unwrap_or_default();
    let plain = plain_name(name);
    if plain != name {
        // Another spelling of a known command: never allowed for what it is, but searched as such.
        let wide = by_name(&plain, arguments).unwrap_or_default();
        facts.reads.extend(wide.reads);
        facts.writes.extend(wide.writes);
        facts.lands.extend(wide.lands);
        facts.recursive |= wide.recursive;
        facts.changes_below |= wide.changes_below;
        facts.sweeps.extend(wide.sweeps);
    }
    facts.critical = critical::removals(&plain, arguments);
    if risks::found(name, arguments) { facts.exact_only() } else { facts }
}

fn by_name(name: &str, arguments: &[Word]) -> Option<Facts> {
    if let Some(by) = builtins::least_rule(name) {
        let facts = operands::facts(name, arguments).unwrap_or_default();
        return Some(if by == By::ExactRule { facts.exact_only() } else { Facts { by, ..facts } });
    }
    if wrappers::is_never_by_star(name) {
        return Some(Facts::default().exact_only());
    }
    match name {
        "git" => Some(git::facts(arguments)),
        "find" => Some(find::facts(arguments)),
        "sed" => Some(sed::facts(arguments)),
        "jq" => Some(jq::facts(arguments)),
        "cd" => Some(builtins::change_directory(arguments)),
        _ => readers::facts(name, arguments)
            .or_else(|| checked::facts(name, arguments))
            .or_else(|| edits::facts(name, arguments))
            .or_else(|| operands::facts(name, arguments)),
    }
}
