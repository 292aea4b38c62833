//! File commands that the accept-edits mode allows, with the listed flags only.

use super::allowed_options::{AllowedOptions, NONE_ALLOWED, check_args};
use super::effects::CommandEffects;
use crate::shell::{CommandClass, Word};

/// File commands that the accept-edits mode allows: name, accepted options, minimum number of operands.
const EDIT_COMMANDS: &[(&str, AllowedOptions, usize)] = &[
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

/// Determines the effects of a file command that the accept-edits mode allows; `None` if it is not listed.
pub(crate) fn determine_edit_effects(name: &str, arguments: &[Word]) -> Option<CommandEffects> {
    let (_, options, min_operands) = EDIT_COMMANDS.iter().find(|(listed, ..)| *listed == name)?;
    let mut effects = super::operands::determine_effects(name, arguments).unwrap_or_default();
    let literal = arguments.iter().all(|word| word.value.as_literal().is_some());
    if literal
        && check_args(arguments, options).is_some_and(|checked| checked.operands.len() >= *min_operands)
    {
        effects.class = CommandClass::AcceptEdits;
    }
    Some(effects)
}
