//! Commands that run another command.
//!
//! Rooms: `table` (the wrappers, one row each), `plain` (the forms that an allow rule looks through), `behind` (what is
//! behind a wrapper in any form, for refusing), `split` (the text of `env -S`).

mod behind;
mod plain;
mod split;
mod table;

pub(super) use behind::behind;
pub(super) use plain::allow_strips;

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
    texts: &'static [&'static str],
    /// Whether such a text is split into more arguments of the wrapper itself.
    splits: bool,
    /// Whether options may come after operands.
    permutes: bool,
    /// Whether every later word may be the command.
    anywhere: bool,
    /// Whether `NAME=value` may stand before the command.
    assigns: bool,
    /// Whether only an exact rule may allow it.
    never_by_star: bool,
}

impl Wrapper {
    /// Whether a long option is known by its whole name.
    fn knows(&self, long: &str) -> bool {
        self.long.contains(&long) || self.long_values.contains(&long)
    }
}

/// Commands of which no rule of the form `W1 W2 *` is suggested, besides shells and interpreters.
const EXACT_ONLY: &[&str] = &[
    "sudo", "doas", "env", "xargs", "timeout", "nice", "nohup", "time", "command", "find", "awk", "sed",
    "ssh", "scp", "rsync", "docker", "kubectl", "podman", "npx", "uvx", "curl", "wget", "rm", "mv", "cp",
    "touch", "mkdir", "ln", "chmod", "chown", "tee", "dd", "builtin", "noglob", "stdbuf", "pkexec", "su",
    "runuser", "setpriv",
];

/// Whether only an exact rule may allow the command.
pub(super) fn is_never_by_star(name: &str) -> bool {
    WRAPPERS.iter().any(|wrapper| wrapper.name == name && wrapper.never_by_star)
}

/// Whether the command runs another one.
pub(super) fn is_wrapper(name: &str) -> bool {
    WRAPPERS.iter().any(|wrapper| wrapper.name == name)
}

/// Whether only an exact rule is suggested for the command.
pub(super) fn is_exact_only(name: &str) -> bool {
    EXACT_ONLY.contains(&name) || is_wrapper(name) || interpreters::is_interpreter(name)
}
