//! The list of sessions.

use std::io::{self, Write};
use std::time::{Duration, SystemTime};

use whimbrel_engine::clock;
use whimbrel_engine::session::shelf::Stored;
use whimbrel_engine::session::summary::Summary;

use super::command::{Form, Wish};
use super::shape::{ago, column, cut, path, size};
use super::{Desk, Outcome, Trouble, here, write_array};
use crate::human::{Rendering, clean};
use crate::stdio::note;
use crate::terminal;

/// How many letters of an id are shown: enough to name it by.
pub(super) const ID: usize = 8;
/// How wide the columns for time and size are.
const WHEN: usize = 11;
const SIZE: usize = 7;
/// How much of the rest is the title's.
const TITLE: (usize, usize) = (3, 5);

/// Lists sessions, the newest first. Only as many transcripts are opened as are shown.
pub(super) fn list(desk: &Desk, wish: &Wish, out: &mut impl Write) -> Result<Outcome, Trouble> {
    let stored = chosen(desk, wish)?;
    let total = stored.len();
    let mut summaries = stored.iter().filter_map(readable).take(wish.limit.unwrap_or(usize::MAX));
    match wish.form {
        Form::Json => write_array(summaries.map(Ok), out)?,
        Form::Person => {
            let (now, width) = (clock::wall(), terminal::width());
            let mut shown = 0;
            for summary in &mut summaries {
                writeln!(out, "{}", line(&summary, now, width, desk))?;
                shown += 1;
            }
            out.flush()?;
            match (shown, wish.here) {
                (0, true) => note("No session of this folder is kept. All of them: whimbrel sessions"),
                (0, false) => note("No session is kept yet."),
                _ if wish.limit == Some(shown) && total > shown => {
                    note(&format!("{} older ones are not shown: --limit 0 shows all.", total - shown));
                }
                _ => {}
            }
        }
    }
    Ok(Outcome::Done)
}

/// The sessions that are meant.
pub(super) fn chosen(desk: &Desk, wish: &Wish) -> Result<Vec<Stored>, Trouble> {
    let project = if wish.here { Some(here()?) } else { None };
    desk.shelf
        .sessions(project.as_deref())
        .map_err(|error| Trouble::Said(format!("The sessions cannot be read: {error}.")))
}

/// What a session is about. One that cannot be read is told and left out.
pub(super) fn readable(stored: &Stored) -> Option<Summary> {
    match stored.summary() {
        Ok(summary) => summary,
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => {
            note(&format!("{} cannot be read: {error}.", stored.path.display()));
            None
        }
    }
}

/// A session on one line: id, time, size, title, place.
pub(super) fn line(summary: &Summary, now: SystemTime, width: usize, desk: &Desk) -> String {
    let then = SystemTime::UNIX_EPOCH + Duration::from_millis(summary.last_modified);
    let rest = width.saturating_sub(ID + WHEN + SIZE + 8).max(20);
    let title = rest * TITLE.0 / TITLE.1;
    let mut place = summary.cwd.as_deref().map_or_else(String::new, |cwd| path(cwd, desk.home.as_deref()));
    if let Some(tag) = &summary.tag {
        place = format!("#{tag} {place}");
    }
    let clean = |text: &str| clean(text, Rendering::Line);
    format!(
        "{}  {}  {:>SIZE$}  {}  {}",
        &summary.session_id[..ID],
        column(&ago(now, then), WHEN),
        summary.file_size.map_or_else(String::new, size),
        column(&clean(&summary.summary), title),
        cut(&clean(&place), rest - title)
    )
    .trim_end()
    .to_owned()
}
