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

use crate::session::Env;
use crate::stdio::print_note;
use crate::terminal::Terminal;
use crate::{exit, home_dir};
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
            _ => Self::Message(format!("The output could not be written: {error}.")),
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

/// Runs a subcommand and returns the exit code.
pub(crate) fn main(argv: &[String], mut env: Env, terminal: Terminal) -> i32 {
    let command = match command::parse(argv) {
        Ok(command) => command,
        Err(text) => return report_error(&text),
    };
    home_dir::resolve_home(&mut env);
    let Some(config) = config_dir(&env) else {
        return report_error("Nobody knows where sessions are kept: set HOME or CLAUDE_CONFIG_DIR.");
    };
    let home = home_dir(env.get("HOME").map(String::as_str));
    let desk = SessionsContext { session_dir: SessionFiles::new(config), terminal, home_dir: home };
    let mut out = BufWriter::new(io::stdout().lock());
    let done = execute(&desk, command, &mut out).and_then(|outcome| {
        out.flush()?;
        Ok(outcome)
    });
    match done {
        Ok(CommandOutcome::Done) | Err(CommandError::OutputClosed) => 0,
        Ok(CommandOutcome::NothingDone) => exit::FAILURE,
        Err(CommandError::Message(text)) => report_error(&text),
    }
}

fn execute(
    desk: &SessionsContext,
    command: SessionsCommand,
    out: &mut impl Write,
) -> Result<CommandOutcome, CommandError> {
    match command {
        SessionsCommand::Help => {
            out.write_all(command::HELP_PAGE.as_bytes())?;
            Ok(CommandOutcome::Done)
        }
        SessionsCommand::List(wish) => list::print_list(desk, &wish, out),
        SessionsCommand::Show { name, form } => show::show(desk, &name, form, out),
        SessionsCommand::Export { name, format, file } => {
            show::export(desk, &name, format, file.as_deref(), out)
        }
        SessionsCommand::Search { words, wish } => search::search(desk, &words, &wish, out),
        SessionsCommand::Rename { name, title } => edit::rename(desk, &name, &title, out),
        SessionsCommand::Tag { name, tag } => edit::tag(desk, &name, tag.as_deref(), out),
        SessionsCommand::Fork { name, at, title } => {
            edit::fork(desk, &name, at.as_deref(), title.as_deref(), out)
        }
        SessionsCommand::Delete { names, unasked } => edit::delete(desk, &names, unasked, out),
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
    CommandError::Message(format!("The session cannot be read: {error}."))
}

/// Returns the current directory, for `--here`.
fn current_project_dir() -> Result<PathBuf, CommandError> {
    std::env::current_dir()
        .map_err(|error| CommandError::Message(format!("The working directory is gone: {error}.")))
}

fn report_error(text: &str) -> i32 {
    print_note(text);
    exit::FAILURE
}
