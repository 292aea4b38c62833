//! Tests of the shell analysis.

use super::*;

mod allow_analysis;
mod deny_analysis;
mod robustness;

const CONTEXT: ShellContext<'static> = ShellContext { home: "/home/u" };

fn script(text: &str) -> Script {
    analyze(text, &CONTEXT)
}

/// The only simple command that must be allowed.
fn only_checked_command(text: &str) -> SimpleCommand {
    let script = script(text);
    assert_eq!(script.unanalyzable, [], "{text}");
    let mut checked: Vec<SimpleCommand> = script.checked_commands().cloned().collect();
    assert_eq!(checked.len(), 1, "{text}");
    checked.remove(0)
}

/// Returns true if a rule for `command` would match some text.
fn is_found(script: &Script, command: &str) -> bool {
    script.commands.iter().flat_map(|command| &command.deny_spellings).any(|spelling| {
        match spelling.match_start {
            MatchStart::Beginning => spelling.text.starts_with(command),
            MatchStart::EveryWord => {
                spelling.text.split(' ').count() > 0
                    && format!(" {}", spelling.text).contains(&format!(" {command}"))
            }
        }
    })
}

fn literals(values: &[WordValue]) -> Vec<&str> {
    values.iter().map(|value| value.as_literal().unwrap_or("?")).collect()
}
