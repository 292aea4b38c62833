//! Paths that a command removes, for the check for critical removals.

use super::effects::program_name;
use super::find;
use crate::shell::{Word, WordValue};

/// Operands of `rm` and `rmdir`, and the starting points of a `find` that removes files.
pub(crate) fn removals(name: &str, arguments: &[Word]) -> Vec<WordValue> {
    match name {
        "rm" | "rmdir" | "unlink" => operands(arguments),
        "find" if find_removes(arguments) => find::starting_points(arguments),
        _ => Vec::new(),
    }
}

fn operands(arguments: &[Word]) -> Vec<WordValue> {
    let mut only_operands = false;
    let mut found = Vec::new();
    for word in arguments {
        match word.value.as_literal() {
            Some("--") if !only_operands => only_operands = true,
            Some(text) if !only_operands && text.starts_with('-') => {}
            _ => found.push(word.value.clone()),
        }
    }
    found
}

fn find_removes(arguments: &[Word]) -> bool {
    arguments.iter().any(|word| word.value.as_literal() == Some("-delete"))
        || find::exec_commands(arguments).iter().any(|command| {
            command.iter().any(|word| {
                word.value
                    .as_literal()
                    .is_some_and(|text| matches!(program_name(text).as_str(), "rm" | "rmdir"))
            })
        })
}
