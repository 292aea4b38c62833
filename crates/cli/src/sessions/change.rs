//! Names for sessions, copies of them, and their removal.

use std::io::{self, BufRead, Write};

use whimbrel_engine::clock;
use whimbrel_engine::session::shelf::Stored;

use super::list::{line, readable};
use super::{Desk, Outcome, Trouble};
use crate::terminal;

/// Gives a session a title.
pub(super) fn rename(desk: &Desk, name: &str, title: &str, out: &mut impl Write) -> Result<Outcome, Trouble> {
    let stored = desk.shelf.find(name)?;
    stored.rename(title).map_err(|error| unwritable(&stored, &error))?;
    tell(desk, &stored, out)
}

/// Gives a session a tag, or takes it away.
pub(super) fn tag(
    desk: &Desk,
    name: &str,
    tag: Option<&str>,
    out: &mut impl Write,
) -> Result<Outcome, Trouble> {
    let stored = desk.shelf.find(name)?;
    stored.tag(tag).map_err(|error| unwritable(&stored, &error))?;
    tell(desk, &stored, out)
}

/// Copies a session, and says how to go on with the copy.
pub(super) fn fork(
    desk: &Desk,
    name: &str,
    at: Option<&str>,
    title: Option<&str>,
    out: &mut impl Write,
) -> Result<Outcome, Trouble> {
    let stored = desk.shelf.find(name)?;
    let forked = stored.fork(at, title).map_err(|error| Trouble::Said(error.to_string()))?;
    tell(desk, &forked, out)?;
    writeln!(out, "Go on with it: whimbrel --resume {}", forked.id)?;
    Ok(Outcome::Done)
}

/// Removes sessions, if the person agrees. None is removed if one of them cannot be found.
pub(super) fn delete(
    desk: &Desk,
    names: &[String],
    unasked: bool,
    out: &mut impl Write,
) -> Result<Outcome, Trouble> {
    let found: Result<Vec<Stored>, _> = names.iter().map(|name| desk.shelf.find(name)).collect();
    let mut found = found?;
    found.sort_by(|a, b| a.id.cmp(&b.id));
    found.dedup();
    if !unasked && !agreed(desk, &found, out)? {
        writeln!(out, "Nothing was removed.")?;
        return Ok(Outcome::Nothing);
    }
    for stored in &found {
        desk.shelf.delete(stored).map_err(|error| match error.kind() {
            io::ErrorKind::ResourceBusy => format!("{} is not removed: {error}.", stored.id),
            _ => {
                format!("{} could not be removed wholly: {error}. Try again when that is mended.", stored.id)
            }
        })?;
        writeln!(out, "Removed {}.", stored.id)?;
    }
    Ok(Outcome::Done)
}

/// Shows what would go, and asks.
fn agreed(desk: &Desk, found: &[Stored], out: &mut impl Write) -> Result<bool, Trouble> {
    if !desk.terminal.stdin || !desk.terminal.stdout {
        return Err(Trouble::Said("There is nobody to ask: give --yes to remove without a question.".into()));
    }
    for stored in found {
        tell(desk, stored, out)?;
    }
    write!(out, "Remove for good? [y/N] ")?;
    out.flush()?;
    let mut typed = String::new();
    io::stdin().lock().read_line(&mut typed)?;
    Ok(matches!(typed.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// Tells a session as it is now.
fn tell(desk: &Desk, stored: &Stored, out: &mut impl Write) -> Result<Outcome, Trouble> {
    match readable(stored) {
        Some(summary) => writeln!(out, "{}", line(&summary, clock::wall(), terminal::width(), desk))?,
        None => writeln!(out, "{}", stored.id)?,
    }
    Ok(Outcome::Done)
}

fn unwritable(stored: &Stored, error: &io::Error) -> Trouble {
    Trouble::Said(match error.kind() {
        io::ErrorKind::InvalidInput => error.to_string(),
        _ => format!("{} cannot be written: {error}.", stored.path.display()),
    })
}
