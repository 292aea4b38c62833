//! The command line: raw arguments, and their meaning.
//!
//! Every flag is one row of [`table`]; the parser, `--help` and the suggestions for a misspelled name are made from it.
//! Modules: [`flag`] (a row), [`apply`] (actions of the rows), [`agents`] (agent definitions), [`token`] (one
//! argument), [`parser`] (arguments to `RawArgs`), [`list_values`] (comma lists), [`unknown_flags`] (flags that are not
//! in the table), [`validate`] (values that refer to nothing), [`settings`] (repeated settings), [`finalize`]
//! (`RawArgs` to [`Args`]), [`inspect`] (flags of subcommands that look at a session), `help` (help page),
//! [`description`] (the flags for completions and the man page).
//!
//! How values are taken:
//! - `--flag value` and `--flag=value` are the same. A value may be empty or begin with a dash, but an argument that is
//!   itself a known flag is never taken for a value: then the value is missing.
//! - A flag with an optional value takes it as `--flag=value`, and the next argument only if that cannot be the prompt:
//!   topics for `--debug`. An SDK passes no positional prompt, so from an SDK the next argument is taken as well, unless
//!   it begins with a dash.
//! - A list flag takes one argument, and further ones only while they cannot be the prompt: for rules, names of
//!   built-in tools and arguments of the form `Tool(..)` or `mcp__..`; for directories, arguments that begin with `/`,
//!   `./`, `../` or `~/`; for MCP configurations, JSON and names that end in `.json`. So `-p --allowedTools Bash Read
//!   "prompt"` works.
//! - `--` ends the flags. An argument that begins with a dash but has a blank in its name is text, not a flag.

mod agents;
mod apply;
mod description;
mod finalize;
mod flag;
mod help;
mod inspect;
mod list_values;
mod parser;
mod raw_args;
mod settings;
mod table;
#[cfg(test)]
mod tests;
mod token;
mod unknown_flags;
mod validate;

use whimbrel_wire::options::Options;

pub(crate) use description::{FlagDescription, FlagValue, describe_flags};
pub(crate) use help::{help_page, usage_page, version_line};
pub(crate) use inspect::{InspectArgs, parse_inspect_args};
pub(crate) use parser::parse;
pub(crate) use raw_args::{CliCommand, InputFormat, OutputFormat};
pub(crate) use validate::check_directories;

/// Flag that records the replies of models.
pub(crate) const RECORD_FLAG: &str = "record";

/// Flag that replays a recording instead of asking a model.
pub(crate) const REPLAY_FLAG: &str = "replay";

/// Flag whose text is appended to the system prompts of subagents.
const SUBAGENT_PROMPT_FLAG: &str = "append-subagent-system-prompt";

/// Meaning of a command line.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Args {
    /// Command to run.
    pub(crate) command: CliCommand,
    /// Prompt given as an argument.
    pub(crate) prompt: Option<String>,
    /// `-p`: answer and exit, never ask.
    pub(crate) print: bool,
    /// Format of the input.
    pub(crate) input_format: InputFormat,
    /// Format of the output.
    pub(crate) output_format: OutputFormat,
    /// `--verbose`: print every frame.
    pub(crate) verbose: bool,
    /// A malformed input line ends the program.
    pub(crate) strict_input: bool,
    /// `--rewind-files`: the prompt to which files are rewound.
    pub(crate) rewind_files: Option<String>,
    /// `--resume` without a session: the user chooses from a list.
    pub(crate) choose_session: bool,
    /// `--ax-screen-reader`: no colors, and no line is overwritten.
    pub(crate) plain_output: bool,
    /// Topics of `--debug`.
    pub(crate) debug_topics: Option<String>,
    /// Options of the session.
    pub(crate) options: Options,
}

/// A parsed command line with its warnings.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ParsedArgs {
    pub(crate) args: Args,
    /// Warnings for stderr.
    pub(crate) warnings: Vec<String>,
}
