//! Full-text search in sessions.

use std::io::Write;

use serde::Serialize;
use whimbrel_os::clock;
use whimbrel_session_store::search::{SearchHit, SearchQuery};
use whimbrel_session_store::summary::SessionSummary;

use super::command::ListOptions;
use super::list::{format_line, read_summary, select_sessions};
use super::{CommandError, CommandOutcome, SessionsContext, write_json_array};
use crate::arg_list::ListFormat;
use crate::stdio::print_note;
use crate::terminal;
use crate::terminal_ui::{LineBreaks, sanitize};

/// Hits per session that are shown as text.
const MAX_SHOWN_HITS: usize = 3;

/// A session with its hits.
#[derive(Serialize)]
struct SessionHits {
    #[serde(flatten)]
    summary: SessionSummary,
    matches: Vec<SearchHit>,
}

/// Searches the sessions, the newest first, and prints each one as it is found.
pub(super) fn search(
    context: &SessionsContext,
    words: &str,
    options: &ListOptions,
    out: &mut impl Write,
) -> Result<CommandOutcome, CommandError> {
    let query = SearchQuery::new(words).ok_or_else(|| "The search text is empty.".to_owned())?;
    let max_hits = if options.format == ListFormat::Json { usize::MAX } else { MAX_SHOWN_HITS };
    let stored = select_sessions(context, options)?;
    let found = stored.iter().filter_map(|stored| {
        let matches = query.search_file(&stored.path, max_hits).unwrap_or_else(|error| {
            print_note(&format!("Cannot read {}: {error}.", stored.path.display()));
            Vec::new()
        });
        if matches.is_empty() {
            return None;
        }
        Some(SessionHits { summary: read_summary(stored)?, matches })
    });
    let mut count = 0;
    let mut found = found.take(options.limit.unwrap_or(usize::MAX)).inspect(|_| count += 1);
    match options.format {
        ListFormat::Json => write_json_array(found.map(Ok), out)?,
        ListFormat::Text => {
            let (now, width) = (clock::wall(), terminal::output_width());
            for SessionHits { summary, matches } in &mut found {
                writeln!(out, "{}", format_line(&summary, now, width, context))?;
                for hit in matches {
                    let mark = if hit.kind == "user" { ">" } else { " " };
                    writeln!(out, "  {mark} {}", sanitize(&hit.text, LineBreaks::Replace))?;
                }
                out.flush()?;
            }
        }
    }
    if count == 0 {
        print_note("No session contains this text.");
        return Ok(CommandOutcome::NothingDone);
    }
    Ok(CommandOutcome::Done)
}
