//! Builtins that change the shell itself, `cd`, and tests that evaluate their operands.

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

/// Finds the weakest kind of allow rule that may allow such a builtin.
pub(crate) fn find_required_rule(name: &str) -> Option<RequiredRule> {
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

/// Determines the effects of `cd`. Only a plain directory is read-only.
pub(crate) fn determine_cd_effects(arguments: &[Word]) -> CommandEffects {
    let is_plain = |text: &str| !text.is_empty() && !text.starts_with('-');
    let plain = matches!(arguments, [only] if only.value.as_literal().is_some_and(is_plain));
    let class = if plain { CommandClass::ReadOnly } else { CommandClass::Other };
    CommandEffects {
        class,
        restricts_paths: true,
        globs_require_permission: true,
        ..CommandEffects::default()
    }
}

/// Operators of `[[`, `[` and `test` that evaluate their operands as arithmetic.
const NUMERIC_OPERATORS: &[&str] = &["-eq", "-ne", "-lt", "-le", "-gt", "-ge"];

/// Returns true if a test does more than compare strings, integers and file properties: it evaluates operands as
/// arithmetic or as variable names.
pub(crate) fn evaluates_operands<'a>(words: impl Iterator<Item = &'a str>) -> bool {
    let words: Vec<&str> = words.collect();
    let number =
        |index: Option<usize>| index.and_then(|index| words.get(index)).is_some_and(|word| is_number(word));
    words.iter().enumerate().any(|(index, word)| {
        matches!(*word, "-v" | "-R")
            || (NUMERIC_OPERATORS.contains(word)
                && !(number(index.checked_sub(1)) && number(Some(index + 1))))
    })
}

fn is_number(word: &str) -> bool {
    let word = match word.as_bytes() {
        [open @ (b'"' | b'\''), .., close] if open == close => {
            word.get(1..word.len() - 1).unwrap_or_default()
        }
        _ => word,
    };
    let digits = word.strip_prefix(['-', '+']).unwrap_or(word);
    !digits.is_empty() && digits.len() < 18 && digits.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::evaluates_operands;

    #[test]
    fn tests_that_evaluate_operands() {
        let rows = [
            ("-f x", false),
            ("a == b*", false),
            ("1 -eq 2", false),
            ("\"3\" -lt -4", false),
            ("-v a[0]", true),
            ("-R a", true),
            ("x -eq 1", true),
            ("1 -gt a[$(id)]", true),
            ("-eq 1", true),
        ];
        for (text, expected) in rows {
            assert_eq!(evaluates_operands(text.split(' ')), expected, "{text}");
        }
    }
}
