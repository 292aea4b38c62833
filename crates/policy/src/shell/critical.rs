//! What a command removes, for the search for removals that must never go unasked.

use super::facts::plain_name;
use super::{Value, Word, find};

/// The operands of `rm` and `rmdir`, and where a `find` that removes begins.
pub(super) fn removals(name: &str, arguments: &[Word]) -> Vec<Value> {
    match name {
        "rm" | "rmdir" | "unlink" => operands(arguments),
        "find" if removes(arguments) => find::starting_points(arguments),
        _ => Vec::new(),
    }
}

fn operands(arguments: &[Word]) -> Vec<Value> {
    let mut only_operands = false;
    let mut found = Vec::new();
    for word in arguments {
        match word.value.literal() {
            Some("--") if !only_operands => only_operands = true,
            Some(text) if !only_operands && text.starts_with('-') => {}
            _ => found.push(word.value.clone()),
        }
    }
    found
}

fn removes(arguments: &[Word]) -> bool {
    arguments.iter().any(|word| word.value.literal() == Some("-delete"))
        || find::executed(arguments).iter().any(|command| {
            command.iter().any(|word| {
                word.value.literal().is_some_and(|text| matches!(plain_name(text).as_str(), "rm" | "rmdir"))
            })
        })
}
