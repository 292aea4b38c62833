//! Builtins that change the shell itself, and `cd`.

use super::facts::Facts;
use super::{By, Class, Word};

/// Those that can run or redefine anything.
const RUNNING: &[&str] = &[
    "eval", "exec", "source", ".", "trap", "alias", "let", "hash", "enable", "bind", "complete", "compgen",
    "compopt", "fc", "unalias",
];

/// Those that change what the shell knows.
const CHANGING: &[&str] = &[
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
const DECLARING: &[&str] = &["export", "declare", "typeset", "local", "readonly"];

/// The least that a rule must be to allow such a builtin.
pub(super) fn least_rule(name: &str) -> Option<By> {
    if RUNNING.contains(&name) {
        Some(By::ExactRule)
    } else if CHANGING.contains(&name) {
        Some(By::NamingRule)
    } else {
        None
    }
}

/// Whether arguments of the form `NAME=value` set variables.
pub(super) fn declares(name: &str) -> bool {
    DECLARING.contains(&name)
}

/// Whether a builtin may give variables other values.
pub(super) fn sets_variables(name: &str) -> bool {
    declares(name)
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
pub(super) fn holds_commands(name: &str) -> bool {
    matches!(
        name,
        "eval" | "trap" | "alias" | "bind" | "complete" | "compgen" | "mapfile" | "readarray" | "fc"
    )
}

/// Builtins that take arguments for names of variables or for arithmetic, and so expand a subscript in them.
pub(super) fn expands_subscripts(name: &str) -> bool {
    declares(name)
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
pub(super) fn change_directory(arguments: &[Word]) -> Facts {
    let plain = matches!(arguments, [only] if only.value.literal().is_some_and(|text| !text.is_empty() && !text.starts_with('-')));
    let class = if plain { Class::ReadOnly } else { Class::Other };
    Facts { class, scoped: true, minds_globs: true, ..Facts::default() }
}
