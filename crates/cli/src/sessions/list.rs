//! The list of sessions.

use std::io::{self, Write};
use std::time::{Duration, SystemTime};

use whimbrel_os::byte_size::format_size;
use whimbrel_os::clock;
use whimbrel_session_store::session_files::SessionFile;
use whimbrel_session_store::summary::SessionSummary;

use super::command::ListOptions;
use super::format::{format_age, pad, shorten_home, truncate};
use super::{CommandError, CommandOutcome, SessionsContext, current_project_dir, write_json_array};
use crate::arg_list::ListFormat;
use crate::stdio::print_note;
use crate::terminal;
use crate::terminal_ui::{LineBreaks, sanitize};

/// Characters of an id that are shown: enough to name the session.
pub(super) const ID_CHARS: usize = 8;
/// Widths of the columns for age and size.
const AGE_WIDTH: usize = 11;
const SIZE_WIDTH: usize = 9;
/// Share of the remaining width that the title gets.
const TITLE_SHARE: (usize, usize) = (3, 5);

/// Lists sessions, the newest first. Only the transcripts of listed sessions are opened.
pub(super) fn print_list(
    context: &SessionsContext,
    options: &ListOptions,
    out: &mut impl Write,
) -> Result<CommandOutcome, CommandError> {
    let stored = select_sessions(context, options)?;
    let total = stored.len();
    let mut summaries = stored.iter().filter_map(read_summary).take(options.limit.unwrap_or(usize::MAX));
    match options.format {
        ListFormat::Json => write_json_array(summaries.map(Ok), out)?,
        ListFormat::Text => {
            let (now, width) = (clock::wall(), terminal::output_width());
            let mut shown = 0;
            for summary in &mut summaries {
                writeln!(out, "{}", format_line(&summary, now, width, context))?;
                shown += 1;
            }
            out.flush()?;
            match (shown, options.this_dir_only) {
                (0, true) => {
                    print_note("There are no sessions of this directory. To list all: whimbrel sessions");
                }
                (0, false) => print_note("There are no sessions."),
                _ if options.limit == Some(shown) && total > shown => {
                    print_note(&format!(
                        "{} older sessions are not shown; --limit 0 shows all.",
                        total - shown
                    ));
                }
                _ => {}
            }
        }
    }
    Ok(CommandOutcome::Done)
}

/// Returns the sessions that the options select.
pub(super) fn select_sessions(
    context: &SessionsContext,
    options: &ListOptions,
) -> Result<Vec<SessionFile>, CommandError> {
    let project = if options.this_dir_only { Some(current_project_dir()?) } else { None };
    context
        .session_dir
        .list(project.as_deref())
        .map_err(|error| CommandError::Message(format!("Cannot read the sessions: {error}.")))
}

/// Reads the summary of a session. If it cannot be read, prints a warning and returns `None`.
pub(super) fn read_summary(stored: &SessionFile) -> Option<SessionSummary> {
    match stored.summary() {
        Ok(summary) => summary,
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => {
            print_note(&format!("Cannot read {}: {error}.", stored.path.display()));
            None
        }
    }
}

/// Formats a session as one line: id, age, size, title, directory.
pub(super) fn format_line(
    summary: &SessionSummary,
    now: SystemTime,
    width: usize,
    context: &SessionsContext,
) -> String {
    let then = SystemTime::UNIX_EPOCH + Duration::from_millis(summary.last_modified);
    let rest = width.saturating_sub(ID_CHARS + AGE_WIDTH + SIZE_WIDTH + 8).max(20);
    let title = rest * TITLE_SHARE.0 / TITLE_SHARE.1;
    let mut location =
        summary.cwd.as_deref().map_or_else(String::new, |cwd| shorten_home(cwd, context.home_dir.as_deref()));
    if let Some(tag) = &summary.tag {
        location = format!("#{tag} {location}");
    }
    let clean = |text: &str| sanitize(text, LineBreaks::Replace);
    format!(
        "{}  {}  {:>SIZE_WIDTH$}  {}  {}",
        &summary.session_id[..ID_CHARS],
        pad(&format_age(now, then), AGE_WIDTH),
        summary.file_size.map_or_else(String::new, format_size),
        pad(&clean(&summary.summary), title),
        truncate(&clean(&location), rest - title)
    )
    .trim_end()
    .to_owned()
}
