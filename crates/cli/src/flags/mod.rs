//! The command line: what was typed, and what it means.
//!
//! Every flag is one row of [`table`]; reading, `--help` and the suggestions for a misspelt name are made from it. The
//! rooms: [`flag`] (what a row is), [`apply`] (what rows do with values), [`agents`] (kinds of agents), [`token`] (one
//! argument of the command line), [`read`] (arguments to [`Typed`]), [`list`] (comma lists), [`stranger`] (flags that
//! are not in the table), [`sense`] (values that mean nothing), [`settle`] (from what was typed to [`Args`]), [`help`]
//! (the page for a person).
//!
//! How values are taken:
//! - `--flag value` and `--flag=value` are the same. A value may be empty. A value may begin with a dash, but an argument
//!   that is itself a known flag is never taken for a value: then the value is missing.
//! - A flag with an optional value takes it only as `--flag=value`. An SDK host gives no positional prompt, so from it the
//!   next argument is taken, too, unless it begins with a dash.
//! - A list flag takes one argument, and further ones only while they cannot be meant as the prompt: for rules, names of
//!   built-in tools and what has the shape `Tool(..)` or `mcp__..`; for folders, what begins with `/`, `./`, `../` or `~/`;
//!   for MCP configurations, JSON and names that end in `.json`. So `-p --allowedTools Bash Read "prompt"` works.
//! - `--` ends the flags. An argument that begins with a dash but has a blank in its name is no flag but text.

mod agents;
mod apply;
mod flag;
mod help;
mod list;
mod parser;
mod validate;
mod finalize;
mod unknown;
mod table;
#[cfg(test)]
mod tests;
mod token;
mod raw;

use whimbrel_wire::options::Options;

pub(crate) use help::{help_page, usage_page, version_line};
pub(crate) use parser::parse;
pub(crate) use validate::check_directories;
pub(crate) use raw::{CliCommand, InputFormat, OutputFormat};

/// What the command line means.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Args {
    /// What to do.
    pub(crate) command: CliCommand,
    /// The prompt that was given as an argument.
    pub(crate) prompt: Option<String>,
    /// Whether `-p` was given: answer and leave, never ask.
    pub(crate) print: bool,
    /// What comes in.
    pub(crate) input_format: InputFormat,
    /// What goes out.
    pub(crate) output_format: OutputFormat,
    /// Whether everything is shown.
    pub(crate) verbose: bool,
    /// Whether a malformed line ends the program.
    pub(crate) strict_input: bool,
    /// What `--debug` is to tell of.
    pub(crate) debug_topics: Option<String>,
    /// What is asked of the session.
    pub(crate) options: Options,
}

/// A command line that was understood, and what should be said about it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ParsedArgs {
    /// What it means.
    pub(crate) args: Args,
    /// Warnings for stderr.
    pub(crate) warnings: Vec<String>,
}

/// Who started the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Caller {
    /// A person or a script.
    User,
    /// One of the official SDKs, perhaps one that is newer than we are.
    Sdk,
}

impl Caller {
    /// Goes by `CLAUDE_CODE_ENTRYPOINT`.
    pub(crate) fn from_entrypoint(entrypoint: Option<&str>) -> Self {
        match entrypoint {
            Some(name) if name.starts_with("sdk-") => Self::Sdk,
            _ => Self::User,
        }
    }
}
