//! Commands and what is known of them.

use super::*;

mod allowing;
mod nasty;
mod searching;

const PLACE: Surroundings<'static> = Surroundings { home: "/home/u" };

fn script(text: &str) -> Script {
    analyse(text, &PLACE)
}

/// The only part that must be allowed.
fn only(text: &str) -> Part {
    let script = script(text);
    assert_eq!(script.unanalysable, [], "{text}");
    let mut judged: Vec<Part> = script.judged().cloned().collect();
    assert_eq!(judged.len(), 1, "{text}");
    judged.remove(0)
}

/// Whether a rule for `name` would see it at the start of some spelling.
fn is_found(script: &Script, command: &str) -> bool {
    script.parts.iter().flat_map(|part| &part.deny_spellings).any(|spelling| match spelling.start {
        Start::Front => spelling.text.starts_with(command),
        Start::EveryWord => {
            spelling.text.split(' ').count() > 0
                && format!(" {}", spelling.text).contains(&format!(" {command}"))
        }
    })
}

fn literals(values: &[Value]) -> Vec<&str> {
    values.iter().map(|value| value.literal().unwrap_or("?")).collect()
}
