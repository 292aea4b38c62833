//! Analysis of a shell command from its text alone. It makes no decisions.
//!
//! [`analyze`] splits the text into [`SimpleCommand`]s at every depth of nesting. It knows no rules, no disk and no
//! working directories; `command` adds those. Two analyses are kept apart throughout:
//!
//! * the **allow analysis** reports only what is certain. Every construct that it does not fully understand is listed
//!   in [`CommandAnalysis::unanalyzable`];
//! * the **deny analysis**, for deny rules, ask rules and critical removals, reports everything that might run, in
//!   every form.

mod analyzer;
mod command_analysis;
mod nested;
mod parser;
mod programs;
#[cfg(test)]
mod tests;
mod vars;
mod words;

pub use analyzer::budget::MAX_ANALYZED_LENGTH;
pub use analyzer::rule_suggestion::RuleSuggestion;
pub use command_analysis::{
    AllowText, Assignment, CheckScope, CommandAnalysis, CommandClass, DenyText, DirTarget, MatchStart,
    Redirect, RedirectDirection, RedirectTargetKind, RequiredRule, SimpleCommand, UnanalyzableCause,
};
pub use words::{Word, WordValue};

/// Environment of the command, as far as the analysis needs it.
#[derive(Debug, Clone, Copy)]
pub struct ShellContext<'a> {
    /// The home directory, for `~` and `$HOME`.
    pub home: &'a str,
}

/// Represents a quoted blank in [`AllowText::text`], so that a blank in a rule does not match it (`npm "run
/// build"` is not `npm run build`) while a `*` does.
pub const QUOTED_BLANK: char = '\u{1f}';

/// Analyzes a command. Never fails and never panics: constructs that are not understood are listed in the result.
pub fn analyze(text: &str, context: &ShellContext<'_>) -> CommandAnalysis {
    analyzer::Analyzer::run(text, context)
}
