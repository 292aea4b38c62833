//! Where something was said.

use std::io::Write;

use serde::Serialize;
use whimbrel_engine::clock;
use whimbrel_engine::session::search::{Hit, Query};
use whimbrel_engine::session::summary::Summary;

use super::command::{Form, Wish};
use super::list::{chosen, line, readable};
use super::{Desk, Outcome, Trouble, write_array};
use crate::human::{Rendering, clean};
use crate::stdio::note;
use crate::terminal;

/// How many places of one session a person is shown.
const PLACES: usize = 3;

/// A session in which the words were said.
#[derive(Serialize)]
struct Found {
    #[serde(flatten)]
    summary: Summary,
    matches: Vec<Hit>,
}

/// Looks through the sessions, the newest first, and tells each as it is found.
pub(super) fn search(
    desk: &Desk,
    words: &str,
    wish: &Wish,
    out: &mut impl Write,
) -> Result<Outcome, Trouble> {
    let query = Query::new(words).ok_or_else(|| "There is nothing to look for.".to_owned())?;
    let places = if wish.form == Form::Json { usize::MAX } else { PLACES };
    let stored = chosen(desk, wish)?;
    let found = stored.iter().filter_map(|stored| {
        let matches = query.hits(&stored.path, places).unwrap_or_else(|error| {
            note(&format!("{} cannot be read: {error}.", stored.path.display()));
            Vec::new()
        });
        if matches.is_empty() {
            return None;
        }
        Some(Found { summary: readable(stored)?, matches })
    });
    let mut count = 0;
    let mut found = found.take(wish.limit.unwrap_or(usize::MAX)).inspect(|_| count += 1);
    match wish.form {
        Form::Json => write_array(found.map(Ok), out)?,
        Form::Person => {
            let (now, width) = (clock::wall(), terminal::width());
            for Found { summary, matches } in &mut found {
                writeln!(out, "{}", line(&summary, now, width, desk))?;
                for hit in matches {
                    let who = if hit.kind == "user" { ">" } else { " " };
                    writeln!(out, "  {who} {}", clean(&hit.text, Rendering::Line))?;
                }
                out.flush()?;
            }
        }
    }
    if count == 0 {
        note("Nobody said that in a session that is kept.");
        return Ok(Outcome::Nothing);
    }
    Ok(Outcome::Done)
}
