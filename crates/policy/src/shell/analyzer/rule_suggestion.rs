//! Rules that may be suggested for a command: one for its first two words, such as `npm run *`, or only the exact one.

use super::simple_command::{ExpandedCommand, UnwrappedCommand, render_with_assignments};
use crate::shell::RequiredRule;
use crate::shell::nested::{shells, wrappers};
use crate::shell::programs::builtins;
use crate::shell::programs::effects::{CommandEffects, extract_program_name};

/// Basis for a suggested rule.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuleSuggestion {
    /// Exact text, without safe assignments and redirects.
    pub exact: String,
    /// Two words to put before ` *`, if a rule of that form may be suggested.
    pub prefix: Option<String>,
    /// True if no rule may be suggested.
    pub suppressed: bool,
}

/// Commands for which no rule of the form `W1 W2 *` is suggested, besides shells and interpreters.
const EXACT_SUGGESTIONS: &[&str] = &[
    "sudo", "doas", "env", "xargs", "timeout", "nice", "nohup", "time", "command", "find", "awk", "sed",
    "ssh", "scp", "rsync", "docker", "kubectl", "podman", "npx", "uvx", "curl", "wget", "rm", "mv", "cp",
    "touch", "mkdir", "ln", "chmod", "chown", "tee", "dd", "builtin", "noglob", "stdbuf", "pkexec", "su",
    "runuser", "setpriv",
];

/// Determines the rules that may be suggested for a command.
pub(super) fn build_suggestion(
    expanded: &ExpandedCommand<'_>,
    stripped: &UnwrappedCommand<'_>,
    effects: &CommandEffects,
    reads_input: bool,
) -> RuleSuggestion {
    let exact = render_with_assignments(expanded, |assignment| !assignment.safe);
    let literal =
        |at: usize| expanded.words.get(at).filter(|word| word.value.as_literal() == Some(word.raw.as_str()));
    let first = literal(0).map(|word| word.raw.as_str()).unwrap_or_default();
    let plain = extract_program_name(first);
    let runs = wrappers::is_exact_rule_wrapper(&plain)
        || builtins::find_required_rule(&plain) == Some(RequiredRule::ExactRule)
        || (plain == "find" && effects.required_rule == RequiredRule::ExactRule);
    let safe = expanded.assignments.iter().all(|(_, assignment)| assignment.safe);
    let bare = safe
        && !stripped.wrapped
        && expanded.command.stdin_texts.is_empty()
        && effects.required_rule == RequiredRule::AnyRule;
    let prefix = literal(1)
        .filter(|second| {
            bare && !first.is_empty()
                && !suggests_exact_rule_only(&plain)
                && looks_like_subcommand(&second.raw)
        })
        .map(|second| format!("{first} {}", second.raw));
    RuleSuggestion {
        exact,
        prefix,
        suppressed: runs || reads_input || expanded.words.is_empty() || expanded.command.is_test,
    }
}

/// Returns true if only an exact rule is suggested for the command.
pub(super) fn suggests_exact_rule_only(name: &str) -> bool {
    EXACT_SUGGESTIONS.contains(&name) || wrappers::is_wrapper(name) || shells::is_interpreter(name)
}

/// Returns true for words like `run` and `install-deps`: lower-case parts joined by dashes.
fn looks_like_subcommand(text: &str) -> bool {
    let part = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    text.starts_with(|c: char| c.is_ascii_lowercase()) && text.split('-').all(part)
}
