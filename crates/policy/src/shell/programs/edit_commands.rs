//! File commands that the accept-edits mode allows, with their accepted flags.

use super::allowed_options::{AllowedOptions, NONE_ALLOWED, check_args};
use super::effects::CommandEffects;
use super::operands;
use crate::shell::{CommandClass, Word};

const ROWS: &[(&str, AllowedOptions, usize)] = &[
    (
        "mkdir",
        AllowedOptions {
            flags: "pv",
            values: "m",
            long: &["parents", "verbose"],
            long_values: &["mode"],
            ..NONE_ALLOWED
        },
        1,
    ),
    ("touch", AllowedOptions { flags: "acm", ..NONE_ALLOWED }, 1),
    (
        "rm",
        AllowedOptions {
            flags: "rRfivd",
            long: &["recursive", "force", "verbose", "dir"],
            long_optional: &["interactive"],
            ..NONE_ALLOWED
        },
        1,
    ),
    ("rmdir", AllowedOptions { flags: "pv", long: &["parents", "verbose"], ..NONE_ALLOWED }, 1),
    ("mv", NONE_ALLOWED, 2),
    ("cp", NONE_ALLOWED, 2),
];

/// Effects of such a command; none if it is not listed.
pub(crate) fn effects(name: &str, arguments: &[Word]) -> Option<CommandEffects> {
    let (_, options, least) = ROWS.iter().find(|(listed, ..)| *listed == name)?;
    let mut facts = operands::effects(name, arguments).unwrap_or_default();
    let literal = arguments.iter().all(|word| word.value.as_literal().is_some());
    if literal && check_args(arguments, options).is_some_and(|sorted| sorted.operands.len() >= *least) {
        facts.class = CommandClass::AcceptEdits;
    }
    Some(facts)
}
