//! Shows one session as text, and exports it.

use std::fs::OpenOptions;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use serde_json::Value;
use whimbrel_os::byte_size::format_size;
use whimbrel_session_store::session_files::SessionFile;
use whimbrel_session_store::summary::SessionSummary;
use whimbrel_session_store::transcript_reader::{Message, TranscriptReader};

use super::command::ExportFormat;
use super::format::{format_date, shorten_home};
use super::{CommandError, CommandOutcome, SessionsContext, markdown, read_error, write_json_array};
use crate::arg_list::ListFormat;
use crate::stdio::print_note;
use crate::terminal_ui::{LineBreaks, call_label, sanitize};

/// Lines of a tool result that are shown.
const MAX_RESULT_LINES: usize = 3;

/// Prints a session as text or as JSON.
pub(super) fn show(
    context: &SessionsContext,
    name: &str,
    format: ListFormat,
    out: &mut impl Write,
) -> Result<CommandOutcome, CommandError> {
    let stored = context.session_dir.find(name)?;
    let transcript = open_transcript(&stored)?;
    match format {
        ListFormat::Json => write_json_array(transcript.messages(), out)?,
        ListFormat::Text => {
            for line in render_heading(&stored, context)? {
                writeln!(out, "{line}")?;
            }
            for message in transcript.messages() {
                let text = render_message(&message.map_err(read_error)?);
                if !text.is_empty() {
                    writeln!(out, "\n{text}")?;
                }
            }
        }
    }
    Ok(CommandOutcome::Done)
}

/// Opens a transcript and warns about entries that cannot be read.
fn open_transcript(stored: &SessionFile) -> Result<TranscriptReader, CommandError> {
    let transcript = TranscriptReader::open(&stored.path).map_err(read_error)?;
    if let Some(warning) = transcript.repairs().warning() {
        print_note(&warning);
    }
    Ok(transcript)
}

/// Exports a session as Markdown or as JSON. An existing file is never overwritten.
pub(super) fn export(
    context: &SessionsContext,
    name: &str,
    format: ExportFormat,
    file: Option<&Path>,
    out: &mut impl Write,
) -> Result<CommandOutcome, CommandError> {
    let stored = context.session_dir.find(name)?;
    let transcript = open_transcript(&stored)?;
    let Some(path) = file else {
        write_document(&stored, &transcript, format, context, out)?;
        return Ok(CommandOutcome::Done);
    };
    let write_error = |error: io::Error| {
        CommandError::Message(match error.kind() {
            io::ErrorKind::AlreadyExists => {
                format!("{} exists already. Choose another file name.", path.display())
            }
            _ => format!("Cannot write {}: {error}.", path.display()),
        })
    };
    let file = OpenOptions::new().write(true).create_new(true).open(path).map_err(write_error)?;
    let mut file = BufWriter::new(file);
    let written = write_document(&stored, &transcript, format, context, &mut file)
        .and_then(|()| file.flush().map_err(write_error));
    if written.is_err() {
        // Half a document is worse than none.
        let _ = std::fs::remove_file(path);
    }
    written?;
    print_note(&format!("Written to {}.", path.display()));
    Ok(CommandOutcome::Done)
}

fn write_document(
    stored: &SessionFile,
    transcript: &TranscriptReader,
    format: ExportFormat,
    context: &SessionsContext,
    out: &mut impl Write,
) -> Result<(), CommandError> {
    match format {
        ExportFormat::Json => write_json_array(transcript.messages(), out),
        ExportFormat::Markdown => {
            let lines = render_heading(stored, context)?;
            let (title, facts) =
                lines.split_first().map_or(("", &[][..]), |(title, facts)| (title.as_str(), facts));
            writeln!(out, "# {title}\n\n{}\n", facts.join("  \n"))?;
            for message in transcript.messages() {
                out.write_all(markdown::render_message(&message.map_err(read_error)?).as_bytes())?;
            }
            Ok(())
        }
    }
}

/// Returns the heading of a session line by line, its title first.
fn render_heading(stored: &SessionFile, context: &SessionsContext) -> Result<Vec<String>, CommandError> {
    let SessionSummary { summary, cwd, git_branch, tag, .. } =
        stored.summary().map_err(read_error)?.unwrap_or_default();
    let title = if summary.is_empty() {
        "(no prompt yet)".to_owned()
    } else {
        sanitize(&summary, LineBreaks::Replace)
    };
    let location = cwd.map(|cwd| {
        let branch = git_branch.map_or_else(String::new, |branch| format!(" ({branch})"));
        sanitize(&format!("{}{branch}", shorten_home(&cwd, context.home_dir.as_deref())), LineBreaks::Replace)
    });
    let tag = tag.map(|tag| sanitize(&format!("#{tag}"), LineBreaks::Replace));
    let facts = format!("{}, {}", format_date(stored.modified), format_size(stored.size));
    Ok([Some(title), Some(stored.id.clone()), location, tag, Some(facts)].into_iter().flatten().collect())
}

/// Renders a message: prompts after `>`, one line per call, and the first lines of its output.
fn render_message(message: &Message) -> String {
    let parts: Vec<String> = match &message.message["content"] {
        Value::String(text) => vec![render_text(text, message)],
        Value::Array(blocks) => blocks.iter().map(|block| render_block(block, message)).collect(),
        _ => Vec::new(),
    };
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
}

fn render_block(block: &Value, message: &Message) -> String {
    match block["type"].as_str() {
        Some("text") => render_text(block["text"].as_str().unwrap_or_default(), message),
        Some("tool_use") => {
            let label = call_label(block["name"].as_str().unwrap_or("?"), &block["input"]);
            format!("  • {}", sanitize(&label, LineBreaks::Replace))
        }
        Some("tool_result") => render_result(&markdown::result_text(&block["content"])),
        Some("image" | "document") => "> (an attachment)".into(),
        _ => String::new(),
    }
}

fn render_text(text: &str, message: &Message) -> String {
    let text = sanitize(text.trim(), LineBreaks::Keep);
    match message.kind.as_str() {
        "user" => text.lines().map(|line| format!("> {line}")).collect::<Vec<_>>().join("\n"),
        _ => text,
    }
}

fn render_result(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let mut shown: Vec<String> = lines
        .iter()
        .take(MAX_RESULT_LINES)
        .map(|line| format!("    {}", sanitize(line, LineBreaks::Replace)))
        .collect();
    if lines.len() > MAX_RESULT_LINES {
        shown.push(format!("    ... {} more lines", lines.len() - MAX_RESULT_LINES));
    }
    shown.join("\n")
}
