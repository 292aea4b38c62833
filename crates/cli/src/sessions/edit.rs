//! Renames, tags, forks and deletes sessions.

use std::io::{self, BufRead, Write};

use whimbrel_os::clock;
use whimbrel_session_store::session_files::SessionFile;

use super::list::{format_line, read_summary};
use super::{CommandError, CommandOutcome, SessionsContext};
use crate::terminal;

/// Sets the title of a session.
pub(super) fn rename(
    desk: &SessionsContext,
    name: &str,
    title: &str,
    out: &mut impl Write,
) -> Result<CommandOutcome, CommandError> {
    let stored = desk.session_dir.find(name)?;
    stored.rename(title).map_err(|error| write_error(&stored, &error))?;
    print_summary(desk, &stored, out)
}

/// Sets or clears the tag of a session.
pub(super) fn tag(
    desk: &SessionsContext,
    name: &str,
    tag: Option<&str>,
    out: &mut impl Write,
) -> Result<CommandOutcome, CommandError> {
    let stored = desk.session_dir.find(name)?;
    stored.tag(tag).map_err(|error| write_error(&stored, &error))?;
    print_summary(desk, &stored, out)
}

/// Forks a session and prints how to resume the copy.
pub(super) fn fork(
    desk: &SessionsContext,
    name: &str,
    at: Option<&str>,
    title: Option<&str>,
    out: &mut impl Write,
) -> Result<CommandOutcome, CommandError> {
    let stored = desk.session_dir.find(name)?;
    let forked = stored.fork(at, title).map_err(|error| CommandError::Message(error.to_string()))?;
    print_summary(desk, &forked, out)?;
    writeln!(out, "Go on with it: whimbrel --resume {}", forked.id)?;
    Ok(CommandOutcome::Done)
}

/// Deletes sessions after a confirmation. None is deleted if one of them cannot be found.
pub(super) fn delete(
    desk: &SessionsContext,
    names: &[String],
    unasked: bool,
    out: &mut impl Write,
) -> Result<CommandOutcome, CommandError> {
    let found: Result<Vec<SessionFile>, _> = names.iter().map(|name| desk.session_dir.find(name)).collect();
    let mut found = found?;
    found.sort_by(|a, b| a.id.cmp(&b.id));
    found.dedup();
    if !unasked && !confirm_delete(desk, &found, out)? {
        writeln!(out, "Nothing was removed.")?;
        return Ok(CommandOutcome::NothingDone);
    }
    for stored in &found {
        desk.session_dir.delete(stored).map_err(|error| match error.kind() {
            io::ErrorKind::ResourceBusy => format!("{} is not removed: {error}.", stored.id),
            _ => {
                format!("{} could not be removed wholly: {error}. Try again when that is mended.", stored.id)
            }
        })?;
        writeln!(out, "Removed {}.", stored.id)?;
    }
    Ok(CommandOutcome::Done)
}

/// Lists the sessions and asks for a confirmation.
fn confirm_delete(
    desk: &SessionsContext,
    found: &[SessionFile],
    out: &mut impl Write,
) -> Result<bool, CommandError> {
    if !desk.terminal.stdin || !desk.terminal.stdout {
        return Err(CommandError::Message(
            "There is nobody to ask: give --yes to remove without a question.".into(),
        ));
    }
    for stored in found {
        print_summary(desk, stored, out)?;
    }
    write!(out, "Remove for good? [y/N] ")?;
    out.flush()?;
    let mut typed = String::new();
    io::stdin().lock().read_line(&mut typed)?;
    Ok(matches!(typed.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// Prints the summary line of a session.
fn print_summary(
    desk: &SessionsContext,
    stored: &SessionFile,
    out: &mut impl Write,
) -> Result<CommandOutcome, CommandError> {
    match read_summary(stored) {
        Some(summary) => {
            writeln!(out, "{}", format_line(&summary, clock::wall(), terminal::output_width(), desk))?
        }
        None => writeln!(out, "{}", stored.id)?,
    }
    Ok(CommandOutcome::Done)
}

fn write_error(stored: &SessionFile, error: &io::Error) -> CommandError {
    CommandError::Message(match error.kind() {
        io::ErrorKind::InvalidInput => error.to_string(),
        _ => format!("{} cannot be written: {error}.", stored.path.display()),
    })
}
