//! Builtins that change the shell itself, and `cd`.

use super::effects::CommandEffects;
use crate::shell::{CommandClass, RequiredRule, Word};

/// Builtins that can run or redefine anything.
const RUNNING_BUILTINS: &[&str] = &[
    "eval", "exec", "source", ".", "trap", "alias", "let", "hash", "enable", "bind", "complete", "compgen",
    "compopt", "fc", "unalias",
];

/// Builtins that change the state of the shell.
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

/// Builtins that set variables by arguments of the form `NAME=value`.
const DECLARING_BUILTINS: &[&str] = &["export", "declare", "typeset", "local", "readonly"];

/// Weakest kind of allow rule that may allow such a builtin.
pub(crate) fn required_rule(name: &str) -> Option<RequiredRule> {
    if RUNNING_BUILTINS.contains(&name) {
        Some(RequiredRule::ExactRule)
    } else if CHANGING_BUILTINS.contains(&name) {
        Some(RequiredRule::NamingRule)
    } else {
        None
    }
}

/// Returns true if arguments of the form `NAME=value` set variables.
pub(crate) fn declares_variables(name: &str) -> bool {
    DECLARING_BUILTINS.contains(&name)
}

/// Returns true if a builtin may change variables.
pub(crate) fn sets_variables(name: &str) -> bool {
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

/// Returns true if arguments of the builtin may be the text of commands.
pub(crate) fn takes_command_text(name: &str) -> bool {
    matches!(
        name,
        "eval" | "trap" | "alias" | "bind" | "complete" | "compgen" | "mapfile" | "readarray" | "fc"
    )
}

/// Returns true if the builtin treats arguments as variable names or arithmetic and so expands their subscripts.
pub(crate) fn expands_subscripts(name: &str) -> bool {
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

/// Effects of `cd`. Only a plain directory is read-only.
pub(crate) fn cd_effects(arguments: &[Word]) -> CommandEffects {
    let plain = matches!(arguments, [only] if only.value.as_literal().is_some_and(|text| !text.is_empty() && !text.starts_with('-')));
    let class = if plain { CommandClass::ReadOnly } else { CommandClass::Other };
    CommandEffects { class, restricts_paths: true, asks_for_globs: true, ..CommandEffects::default() }
}
