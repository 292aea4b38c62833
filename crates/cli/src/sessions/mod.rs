//! `whimbrel sessions`: what was done before, for people: list, show, search, export, name, copy and
//! remove stored sessions.
//!
//! The rooms: [`command`] (what was typed), [`list`], [`show`] (a conversation to read), [`markdown`] (the same as a
//! document), [`search`], [`change`] (names, copies, removal), [`shape`] (times, sizes, columns; pure).

mod change;
mod command;
mod list;
mod markdown;
mod search;
mod shape;
mod show;

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use serde::Serialize;
use whimbrel_engine::session::shelf::{FindError, Shelf};
use whimbrel_engine::settings::home_folder;
use whimbrel_engine::setup::config_folder;

use crate::session::Env;
use crate::stdio::note;
use crate::terminal::Terminal;
use crate::{exit, home};
use command::Command;

/// What is at hand while a command is carried out.
struct Desk {
    shelf: Shelf,
    terminal: Terminal,
    /// The user's home, for paths below it.
    home: Option<PathBuf>,
}

/// Why a command could not be carried out.
enum Trouble {
    /// Nobody reads any more: no reason to complain.
    NobodyReads,
    /// The text for stderr.
    Said(String),
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::NobodyReads,
            _ => Self::Said(format!("The output could not be written: {error}.")),
        }
    }
}

impl From<FindError> for Trouble {
    fn from(error: FindError) -> Self {
        Self::Said(error.to_string())
    }
}

impl From<String> for Trouble {
    fn from(text: String) -> Self {
        Self::Said(text)
    }
}

/// How a command ended that was carried out.
enum Outcome {
    Done,
    /// There was nothing to be found, or somebody said no.
    Nothing,
}

/// Carries out what was typed after `sessions`, and gives the exit code.
pub(crate) fn main(argv: &[String], mut env: Env, terminal: Terminal) -> i32 {
    let command = match command::parse(argv) {
        Ok(command) => command,
        Err(text) => return fail(&text),
    };
    home::settle(&mut env);
    let Some(config) = config_folder(&env) else {
        return fail("Nobody knows where sessions are kept: set HOME or CLAUDE_CONFIG_DIR.");
    };
    let home = home_folder(env.get("HOME").map(String::as_str));
    let desk = Desk { shelf: Shelf::new(config), terminal, home };
    let mut out = BufWriter::new(io::stdout().lock());
    let done = carry_out(&desk, command, &mut out).and_then(|outcome| {
        out.flush()?;
        Ok(outcome)
    });
    match done {
        Ok(Outcome::Done) | Err(Trouble::NobodyReads) => 0,
        Ok(Outcome::Nothing) => exit::FAILED,
        Err(Trouble::Said(text)) => fail(&text),
    }
}

fn carry_out(desk: &Desk, command: Command, out: &mut impl Write) -> Result<Outcome, Trouble> {
    match command {
        Command::Help => {
            out.write_all(command::PAGE.as_bytes())?;
            Ok(Outcome::Done)
        }
        Command::List(wish) => list::list(desk, &wish, out),
        Command::Show { name, form } => show::show(desk, &name, form, out),
        Command::Export { name, format, file } => show::export(desk, &name, format, file.as_deref(), out),
        Command::Search { words, wish } => search::search(desk, &words, &wish, out),
        Command::Rename { name, title } => change::rename(desk, &name, &title, out),
        Command::Tag { name, tag } => change::tag(desk, &name, tag.as_deref(), out),
        Command::Fork { name, at, title } => change::fork(desk, &name, at.as_deref(), title.as_deref(), out),
        Command::Delete { names, unasked } => change::delete(desk, &names, unasked, out),
    }
}

/// Writes a JSON array, one item per line, as the items come.
fn write_array<T: Serialize>(
    items: impl Iterator<Item = io::Result<T>>,
    out: &mut impl Write,
) -> Result<(), Trouble> {
    out.write_all(b"[")?;
    for (number, item) in items.enumerate() {
        let item = item.map_err(unreadable)?;
        out.write_all(if number == 0 { b"\n" } else { b",\n" })?;
        serde_json::to_writer(&mut *out, &item).map_err(io::Error::from)?;
    }
    out.write_all(b"\n]\n")?;
    Ok(())
}

fn unreadable(error: impl std::fmt::Display) -> Trouble {
    Trouble::Said(format!("The session cannot be read: {error}."))
}

/// The folder that we are in, for `--here`.
fn here() -> Result<PathBuf, Trouble> {
    std::env::current_dir().map_err(|error| Trouble::Said(format!("The working directory is gone: {error}.")))
}

fn fail(text: &str) -> i32 {
    note(text);
    exit::FAILED
}
