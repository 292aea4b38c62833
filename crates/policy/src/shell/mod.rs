//! What a bash command would do, as far as its text says it: facts only, no judgement.
//!
//! [`analyse`] takes the text apart into [`Part`]s, one for each simple command at every depth. It knows no rules, no
//! disk and no working directories; who judges adds those. Two readings are kept apart throughout:
//!
//! * the **narrow** one, for allowing: only what is certain. Whatever is not understood completely is named in
//!   [`Script::unanalysable`];
//! * the **wide** one, for refusing, asking and critical removals: everything that might run, under every spelling.

mod ansi_quotes;
mod branches;
mod arithmetic;
mod assignment_words;
mod safe_assignment;
mod nested_commands;
mod braces;
mod builtins;
mod command_options;
mod word_certainty;
mod flag_checked;
mod compound;
mod test_operands;
mod removals;
mod cursor;
mod edit_commands;
mod expansions;
mod effects;
mod unparsed_text;
mod stdin;
mod find;
mod fixpoint;
mod git;
mod argv;
mod hidden_characters;
mod analyzer;
mod interpreters;
mod jq;
mod lexer;
mod limits;
mod brackets;
mod operands;
mod allowed_options;
mod path_limits;
mod parser;
mod simple_command;
mod directories;
mod stdout;
mod readers;
mod alternatives;
mod redirects;
mod memo;
mod risky_arguments;
mod env;
mod script;
mod foreign_code;
mod sed;
mod set_builtins;
mod definite;
mod shells;
mod spelling;
mod syntax;
#[cfg(test)]
mod tests;
mod placeholders;
mod value;
mod assign;
mod expand;
mod wrappers;

pub use script::{
    AllowSpelling, Assignment, RequiredRule, CommandClass, DenySpelling, UnanalyzableCause, DirTarget, SimpleCommand, RedirectTargetKind, CheckScope, Redirect, Script,
    MatchStart, RuleSuggestion, RedirectDirection,
};
pub use value::{WordValue, Word};

/// What the analysis knows of the place where the command would run.
#[derive(Debug, Clone, Copy)]
pub struct ShellContext<'a> {
    /// The home directory, for `~` and `$HOME`.
    pub home: &'a str,
}

/// Stands in [`AllowSpelling::text`] for a blank that was quoted, so that a blank in a rule does not match it
/// (`npm "run build"` is not `npm run build`) while a `*` does.
pub const QUOTED_BLANK: char = '\u{1f}';

/// Longer commands are not analysed for allowing; for refusing they are searched all the same.
pub const MAX_ANALYZED_LENGTH: usize = 10_000;

/// Takes a command apart. Never fails and never panics: what is not understood is named in the result.
pub fn analyze(text: &str, surroundings: &ShellContext<'_>) -> Script {
    analyzer::Analyzer::run(text, surroundings)
}
