//! Wrappers: commands that run another command.
//!
//! `table` lists them, `allowed_forms` has the forms that an allow rule looks through, `find_wrapped` finds the
//! wrapped command in any form for the deny analysis, `env_split` splits the text of `env -S`.

mod allowed_forms;
mod env_split;
mod find_wrapped;
mod table;

pub(crate) use allowed_forms::strip_length;
pub(crate) use find_wrapped::find_wrapped;
use table::WRAPPERS;

/// A wrapper and its options.
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
    /// Number of words between the options and the command.
    operands: usize,
    /// Options whose value is the text of a command.
    command_options: &'static [&'static str],
    /// True if such a text is split into further arguments of the wrapper.
    splits_text: bool,
    /// True if options may follow operands.
    permutes_options: bool,
    /// True if every later word may be the command.
    may_start_anywhere: bool,
    /// True if `NAME=value` may precede the command.
    takes_assignments: bool,
    /// True if only an exact rule may allow it.
    requires_exact_rule: bool,
}

impl Wrapper {
    /// Returns true if a long option is listed by its full name.
    fn knows_long_option(&self, long: &str) -> bool {
        self.long.contains(&long) || self.long_values.contains(&long)
    }
}

/// Returns true if only an exact rule may allow the wrapper.
pub(crate) fn is_exact_rule_wrapper(name: &str) -> bool {
    WRAPPERS.iter().any(|wrapper| wrapper.name == name && wrapper.requires_exact_rule)
}

/// Returns true if the command runs another one.
pub(crate) fn is_wrapper(name: &str) -> bool {
    WRAPPERS.iter().any(|wrapper| wrapper.name == name)
}
