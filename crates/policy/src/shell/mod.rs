//! What a bash command would do, as far as its text says it: facts only, no judgement.
//!
//! [`analyse`] takes the text apart into [`Part`]s, one for each simple command at every depth. It knows no rules, no
//! disk and no working directories; who judges adds those. Two readings are kept apart throughout:
//!
//! * the **narrow** one, for allowing: only what is certain. Whatever is not understood completely is named in
//!   [`Script::unanalysable`];
//! * the **wide** one, for refusing, asking and critical removals: everything that might run, under every spelling.

mod ansi;
mod apart;
mod arithmetic;
mod assigned;
mod assignment;
mod behind;
mod braces;
mod builtins;
mod carriers;
mod certainty;
mod checked;
mod compound;
mod conditions;
mod critical;
mod cursor;
mod edits;
mod expansions;
mod facts;
mod fallback;
mod feeding;
mod find;
mod foresight;
mod git;
mod given;
mod hidden;
mod inspect;
mod interpreters;
mod jq;
mod lexer;
mod limits;
mod matched;
mod operands;
mod options;
mod overlong;
mod parser;
mod part;
mod places;
mod printed;
mod readers;
mod readings;
mod redirects;
mod repeats;
mod risks;
mod scope;
mod script;
mod scripts;
mod sed;
mod setting;
mod settled;
mod shells;
mod spelling;
mod syntax;
#[cfg(test)]
mod tests;
mod unknown;
mod value;
mod values;
mod word;
mod wrappers;

pub use script::{
    AllowSpelling, Assignment, By, Class, DenySpelling, Kind, Landing, Part, Place, Reach, Redirect, Script,
    Start, Suggestion, Way,
};
pub use value::{Value, Word};

/// What the analysis knows of the place where the command would run.
#[derive(Debug, Clone, Copy)]
pub struct Surroundings<'a> {
    /// The home directory, for `~` and `$HOME`.
    pub home: &'a str,
}

/// Stands in [`AllowSpelling::text`] for a blank that was quoted, so that a blank in a rule does not match it
/// (`npm "run build"` is not `npm run build`) while a `*` does.
pub const QUOTED_BLANK: char = '\u{1f}';

/// Longer commands are not analysed for allowing; for refusing they are searched all the same.
pub const LONGEST: usize = 10_000;

/// Takes a command apart. Never fails and never panics: what is not understood is named in the result.
pub fn analyse(text: &str, surroundings: &Surroundings<'_>) -> Script {
    inspect::Inspector::run(text, surroundings)
}
