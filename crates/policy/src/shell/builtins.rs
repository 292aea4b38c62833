//! Builtins that change the shell itself, and `cd`.

use super::effects::CommandEffects;
use super::{RequiredRule, CommandClass, Word};

/// Those that can run or redefine anything.
const RUNNING_BUILTINS: &[&str] = &[
    "eval", "exec", "source", ".", "trap", "alias", "let", "hash", "enable", "bind", "complete", "compgen",
    "compopt", "fc", "unalias",
];

/// Those that change what the shell knows.
const CHANGING_BUILTINS: &[&str] = &[
    "mapfile",
    "readarray",
    "read",
    "set",
    "shopt",
    "export",
    "declare",
    "typeset",
    "local",
    "readonly",
    "unset",
    "pushd",
    "popd",
    "umask",
    "ulimit",
    "getopts",
    "wait",
    "exit",
    "return",
    "kill",
    "jobs",
    "shift",
    "dirs",
    "disown",
    "fg",
    "bg",
    "suspend",
    "logout",
    "break",
    "continue",
    "times",
    "caller",
];

/// Builtins that give variables values by arguments of the form `NAME=value`.
const DECLARING_BUILTINS: &[&str] = &["export", "declare", "typeset", "local", "readonly"];

/// The least that a rule must be to allow such a builtin.
pub(super) fn required_rule(name: &str) -> Option<RequiredRule> {
    if RUNNING_BUILTINS.contains(&name) {
        Some(RequiredRule::ExactRule)
    } else if CHANGING_BUILTINS.contains(&name) {
        Some(RequiredRule::NamingRule)
    } else {
        None
    }
}

/// Whether arguments of the form `NAME=value` set variables.
pub(super) fn declares_variables(name: &str) -> bool {
    DECLARING_BUILTINS.contains(&name)
}

/// Whether a builtin may give variables other values.
pub(super) fn sets_variables(name: &str) -> bool {
    declares_variables(name)
        || matches!(
            name,
            "read"
                | "printf"
                | "mapfile"
                | "readarray"
                | "getopts"
                | "let"
                | "unset"
                | "wait"
                | "eval"
                | "trap"
                | "alias"
                | "enable"
                | "set"
                | "source"
                | "."
                | "builtin"
                | "command"
        )
}

/// Builtins whose arguments may hold the text of commands.
pub(super) fn takes_command_text(name: &str) -> bool {
    matches!(
        name,
        "eval" | "trap" | "alias" | "bind" | "complete" | "compgen" | "mapfile" | "readarray" | "fc"
    )
}

/// Builtins that take arguments for names of variables or for arithmetic, and so expand a subscript in them.
pub(super) fn expands_subscripts(name: &str) -> bool {
    declares_variables(name)
        || matches!(
            name,
            "test"
                | "["
                | "printf"
                | "read"
                | "unset"
                | "let"
                | "mapfile"
                | "readarray"
                | "getopts"
                | "wait"
                | "alias"
        )
}

/// `cd` to one plain directory.
pub(super) fn cd_effects(arguments: &[Word]) -> CommandEffects {
    let plain = matches!(arguments, [only] if only.value.as_literal().is_some_and(|text| !text.is_empty() && !text.starts_with('-')));
    let class = if plain { CommandClass::ReadOnly } else { CommandClass::Other };
    CommandEffects { class, restricts_paths: true, asks_for_globs: true, ..CommandEffects::default() }
}
