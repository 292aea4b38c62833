//! Commands that run another command.
//!
//! Rooms: `table` (the wrappers, one row each), `plain` (the forms that an allow rule looks through), `behind` (what is
//! behind a wrapper in any form, for refusing), `split` (the text of `env -S`).

mod find_wrapped;
mod allowed_forms;
mod env_split;
mod table;

pub(super) use find_wrapped::find_wrapped;
pub(super) use allowed_forms::strip_length;

use super::interpreters;
use table::WRAPPERS;

/// One wrapper and its options, for finding the command behind it.
struct Wrapper {
    name: &'static str,
    /// Letters without a value.
    flags: &'static str,
    /// Letters with a value.
    values: &'static str,
    /// Long options without a value, or with one after `=`.
    long: &'static [&'static str],
    /// Long options with a value in the next word.
    long_values: &'static [&'static str],
    /// How many words stand between the options and the command.
    operands: usize,
    /// Options whose value is the text of a command.
    command_options: &'static [&'static str],
    /// Whether such a text is split into more arguments of the wrapper itself.
    splits_text: bool,
    /// Whether options may come after operands.
    permutes_options: bool,
    /// Whether every later word may be the command.
    may_start_anywhere: bool,
    /// Whether `NAME=value` may stand before the command.
    takes_assignments: bool,
    /// Whether only an exact rule may allow it.
    requires_exact_rule: bool,
}

impl Wrapper {
    /// Whether a long option is known by its whole name.
    fn knows_long_option(&self, long: &str) -> bool {
        self.long.contains(&long) || self.long_values.contains(&long)
    }
}

/// Commands of which no rule of the form `W1 W2 *` is suggested, besides shells and interpreters.
const EXACT_SUGGESTIONS: &[&str] = &[
    "sudo", "doas", "env", "xargs", "timeout", "nice", "nohup", "time", "command", "find", "awk", "sed",
    "ssh", "scp", "rsync", "docker", "kubectl", "podman", "npx", "uvx", "curl", "wget", "rm", "mv", "cp",
    "touch", "mkdir", "ln", "chmod", "chown", "tee", "dd", "builtin", "noglob", "stdbuf", "pkexec", "su",
    "runuser", "setpriv",
];

/// Whether only an exact rule may allow the command.
pub(super) fn is_exact_rule_wrapper(name: &str) -> bool {
    WRAPPERS.iter().any(|wrapper| wrapper.name == name && wrapper.requires_exact_rule)
}

/// Whether the command runs another one.
pub(super) fn is_wrapper(name: &str) -> bool {
    WRAPPERS.iter().any(|wrapper| wrapper.name == name)
}

/// Whether only an exact rule is suggested for the command.
pub(super) fn suggests_exact_rule_only(name: &str) -> bool {
    EXACT_SUGGESTIONS.contains(&name) || is_wrapper(name) || interpreters::is_interpreter(name)
}
