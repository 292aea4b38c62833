//! `whimbrel sessions`: lists, shows, searches, exports, renames, forks and deletes stored sessions.
//!
//! Modules: [`command`] (command line), [`list`], [`show`] (a conversation as text), [`markdown`] (as a document),
//! [`search`], [`edit`] (rename, tag, fork, delete), `format` (times, sizes, columns; pure).

mod command;
mod edit;
mod format;
mod list;
mod markdown;
mod search;
mod show;

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use serde::Serialize;
use whimbrel_config::settings::home_dir;
use whimbrel_engine::setup::config_dir;
use whimbrel_session_store::session_files::{FindError, SessionFiles};

use crate::environment::{Env, resolve_home};
use crate::exit_code::FAILURE;
use crate::stdio::report_error;
use crate::terminal::Terminal;
use command::SessionsCommand;

/// Dependencies of a subcommand.
struct SessionsContext {
    session_dir: SessionFiles,
    terminal: Terminal,
    /// The user's home, to shorten paths.
    home_dir: Option<PathBuf>,
}

/// Error of a subcommand.
enum CommandError {
    /// The output is no longer read; not reported.
    OutputClosed,
    /// The text for stderr.
    Message(String),
}

impl From<io::Error> for CommandError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::OutputClosed,
            _ => Self::Message(format!("Cannot write the output: {error}.")),
        }
    }
}

impl From<FindError> for CommandError {
    fn from(error: FindError) -> Self {
        Self::Message(error.to_string())
    }
}

impl From<String> for CommandError {
    fn from(text: String) -> Self {
        Self::Message(text)
    }
}

/// Outcome of a subcommand that did not fail.
enum CommandOutcome {
    Done,
    /// Nothing was found, or the user declined.
    NothingDone,
}

/// Help page of `whimbrel sessions`.
pub(crate) fn help_page() -> &'static str {
    command::HELP_PAGE
}

/// Runs a subcommand and returns the exit code.
pub(crate) fn main(argv: &[String], mut env: Env, terminal: Terminal) -> i32 {
    let command = match command::parse(argv) {
        Ok(command) => command,
        Err(text) => return report_error(&text),
    };
    resolve_home(&mut env);
    let Some(config) = config_dir(&env) else {
        return report_error("The directory of the sessions is unknown. Set HOME or CLAUDE_CONFIG_DIR.");
    };
    let home = home_dir(env.get("HOME").map(String::as_str));
    let context = SessionsContext { session_dir: SessionFiles::new(config), terminal, home_dir: home };
    let mut out = BufWriter::new(io::stdout().lock());
    let done = execute(&context, command, &mut out).and_then(|outcome| {
        out.flush()?;
        Ok(outcome)
    });
    match done {
        Ok(CommandOutcome::Done) | Err(CommandError::OutputClosed) => 0,
        Ok(CommandOutcome::NothingDone) => FAILURE,
        Err(CommandError::Message(text)) => report_error(&text),
    }
}

fn execute(
    context: &SessionsContext,
    command: SessionsCommand,
    out: &mut impl Write,
) -> Result<CommandOutcome, CommandError> {
    match command {
        SessionsCommand::Help => {
            out.write_all(help_page().as_bytes())?;
            Ok(CommandOutcome::Done)
        }
        SessionsCommand::List(options) => list::print_list(context, &options, out),
        SessionsCommand::Show { name, format } => show::show(context, &name, format, out),
        SessionsCommand::Export { name, format, file } => {
            show::export(context, &name, format, file.as_deref(), out)
        }
        SessionsCommand::Search { words, options } => search::search(context, &words, &options, out),
        SessionsCommand::Rename { name, title } => edit::rename(context, &name, &title, out),
        SessionsCommand::Tag { name, tag } => edit::tag(context, &name, tag.as_deref(), out),
        SessionsCommand::Fork { name, at, title } => {
            edit::fork(context, &name, at.as_deref(), title.as_deref(), out)
        }
        SessionsCommand::Delete { names, confirmed } => edit::delete(context, &names, confirmed, out),
    }
}

/// Writes a JSON array, one item per line, while the items are read.
fn write_json_array<T: Serialize>(
    items: impl Iterator<Item = io::Result<T>>,
    out: &mut impl Write,
) -> Result<(), CommandError> {
    out.write_all(b"[")?;
    for (number, item) in items.enumerate() {
        let item = item.map_err(read_error)?;
        out.write_all(if number == 0 { b"\n" } else { b",\n" })?;
        serde_json::to_writer(&mut *out, &item).map_err(io::Error::from)?;
    }
    out.write_all(b"\n]\n")?;
    Ok(())
}

fn read_error(error: impl std::fmt::Display) -> CommandError {
    CommandError::Message(format!("Cannot read the session: {error}."))
}

/// Returns the current directory, for `--here`.
fn current_project_dir() -> Result<PathBuf, CommandError> {
    std::env::current_dir()
        .map_err(|error| CommandError::Message(format!("Cannot determine the working directory: {error}.")))
}
