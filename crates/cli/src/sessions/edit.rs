//! Renames, tags, forks and deletes sessions.

use std::io::{self, BufRead, Write};

use whimbrel_os::clock;
use whimbrel_session_store::session_files::SessionFile;

use super::list::{format_line, read_summary};
use super::{CommandError, CommandOutcome, SessionsContext};
use crate::terminal;

/// Sets the title of a session.
pub(super) fn rename(
    context: &SessionsContext,
    name: &str,
    title: &str,
    out: &mut impl Write,
) -> Result<CommandOutcome, CommandError> {
    let stored = context.session_dir.find(name)?;
    stored.rename(title).map_err(|error| write_error(&stored, &error))?;
    print_summary(context, &stored, out)
}

/// Sets or clears the tag of a session.
pub(super) fn tag(
    context: &SessionsContext,
    name: &str,
    tag: Option<&str>,
    out: &mut impl Write,
) -> Result<CommandOutcome, CommandError> {
    let stored = context.session_dir.find(name)?;
    stored.tag(tag).map_err(|error| write_error(&stored, &error))?;
    print_summary(context, &stored, out)
}

/// Forks a session and prints how to resume the copy.
pub(super) fn fork(
    context: &SessionsContext,
    name: &str,
    at: Option<&str>,
    title: Option<&str>,
    out: &mut impl Write,
) -> Result<CommandOutcome, CommandError> {
    let stored = context.session_dir.find(name)?;
    let forked = stored.fork(at, title).map_err(|error| CommandError::Message(error.to_string()))?;
    print_summary(context, &forked, out)?;
    writeln!(out, "To resume it: whimbrel --resume {}", forked.id)?;
    Ok(CommandOutcome::Done)
}

/// Deletes sessions after a confirmation. None is deleted if one of them cannot be found.
pub(super) fn delete(
    context: &SessionsContext,
    names: &[String],
    confirmed: bool,
    out: &mut impl Write,
) -> Result<CommandOutcome, CommandError> {
    let found: Result<Vec<SessionFile>, _> =
        names.iter().map(|name| context.session_dir.find(name)).collect();
    let mut found = found?;
    found.sort_by(|a, b| a.id.cmp(&b.id));
    found.dedup();
    if !confirmed && !confirm_delete(context, &found, out)? {
        writeln!(out, "Nothing was deleted.")?;
        return Ok(CommandOutcome::NothingDone);
    }
    for stored in &found {
        context.session_dir.delete(stored).map_err(|error| match error.kind() {
            io::ErrorKind::ResourceBusy => format!("{} was not deleted: {error}.", stored.id),
            _ => {
                format!(
                    "{} could not be deleted completely: {error}. Fix the cause and try again.",
                    stored.id
                )
            }
        })?;
        writeln!(out, "Deleted {}.", stored.id)?;
    }
    Ok(CommandOutcome::Done)
}

/// Lists the sessions and asks for a confirmation.
fn confirm_delete(
    context: &SessionsContext,
    found: &[SessionFile],
    out: &mut impl Write,
) -> Result<bool, CommandError> {
    if !context.terminal.stdin || !context.terminal.stdout {
        return Err(CommandError::Message(
            "There is no terminal to ask on. Use --yes to delete without a confirmation.".into(),
        ));
    }
    for stored in found {
        print_summary(context, stored, out)?;
    }
    write!(out, "Delete permanently? [y/N] ")?;
    out.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// Prints the summary line of a session.
fn print_summary(
    context: &SessionsContext,
    stored: &SessionFile,
    out: &mut impl Write,
) -> Result<CommandOutcome, CommandError> {
    match read_summary(stored) {
        Some(summary) => {
            writeln!(out, "{}", format_line(&summary, clock::wall(), terminal::output_width(), context))?;
        }
        None => writeln!(out, "{}", stored.id)?,
    }
    Ok(CommandOutcome::Done)
}

fn write_error(stored: &SessionFile, error: &io::Error) -> CommandError {
    CommandError::Message(match error.kind() {
        io::ErrorKind::InvalidInput => error.to_string(),
        _ => format!("Cannot write {}: {error}.", stored.path.display()),
    })
}
