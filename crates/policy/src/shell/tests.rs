//! Tests of the shell analysis.

use super::*;

mod allow_analysis;
mod deny_analysis;
mod robustness;

const CONTEXT: ShellContext<'static> = ShellContext { home: "/home/u" };

fn analyze_text(text: &str) -> CommandAnalysis {
    analyze(text, &CONTEXT)
}

/// The only simple command that must be allowed.
fn only_checked_command(text: &str) -> SimpleCommand {
    let analysis = analyze_text(text);
    assert_eq!(analysis.unanalyzable, [], "{text}");
    let mut checked: Vec<SimpleCommand> = analysis.checked_commands().cloned().collect();
    assert_eq!(checked.len(), 1, "{text}");
    checked.remove(0)
}

/// Returns true if a rule for `command` would match some text.
fn is_found(analysis: &CommandAnalysis, command: &str) -> bool {
    analysis.commands.iter().flat_map(|command| &command.deny_texts).any(|deny_text| {
        match deny_text.match_start {
            MatchStart::Beginning => deny_text.text.starts_with(command),
            MatchStart::EveryWord => {
                deny_text.text.split(' ').count() > 0
                    && format!(" {}", deny_text.text).contains(&format!(" {command}"))
            }
        }
    })
}

fn literals(values: &[WordValue]) -> Vec<&str> {
    values.iter().map(|value| value.as_literal().unwrap_or("?")).collect()
}
