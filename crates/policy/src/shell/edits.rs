//! The file commands of the mode that accepts edits, with the flags that it takes.

use super::facts::Facts;
use super::operands;
use super::options::{NONE, Options, check};
use super::{Class, Word};

const ROWS: &[(&str, Options, usize)] = &[
    (
        "mkdir",
        Options { flags: "pv", values: "m", long: &["parents", "verbose"], long_values: &["mode"], ..NONE },
        1,
    ),
    ("touch", Options { flags: "acm", ..NONE }, 1),
    (
        "rm",
        Options {
            flags: "rRfivd",
            long: &["recursive", "force", "verbose", "dir"],
            long_optional: &["interactive"],
            ..NONE
        },
        1,
    ),
    ("rmdir", Options { flags: "pv", long: &["parents", "verbose"], ..NONE }, 1),
    ("mv", NONE, 2),
    ("cp", NONE, 2),
];

/// What such a command does, if it is one.
pub(super) fn facts(name: &str, arguments: &[Word]) -> Option<Facts> {
    let (_, options, least) = ROWS.iter().find(|(listed, ..)| *listed == name)?;
    let mut facts = operands::facts(name, arguments).unwrap_or_default();
    let literal = arguments.iter().all(|word| word.value.literal().is_some());
    if literal && check(arguments, options).is_some_and(|sorted| sorted.operands.len() >= *least) {
        facts.class = Class::AcceptEdits;
    }
    Some(facts)
}
