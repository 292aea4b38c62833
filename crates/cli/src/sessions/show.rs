//! One session to read, and to take elsewhere.

use std::fs::OpenOptions;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use serde_json::Value;
use whimbrel_engine::session::shelf::Stored;
use whimbrel_engine::session::summary::Summary;
use whimbrel_engine::session::transcript::{Message, Transcript};

use super::command::{Form, Format};
use super::shape::{date, path, size};
use super::{Desk, Outcome, Trouble, markdown, unreadable, write_array};
use crate::human::{Rendering, call_label, clean};
use crate::stdio::note;

/// How many lines of what a call gave back are shown.
const SHOWN: usize = 3;

/// Shows a session to a person, or to a program.
pub(super) fn show(desk: &Desk, name: &str, form: Form, out: &mut impl Write) -> Result<Outcome, Trouble> {
    let stored = desk.shelf.find(name)?;
    let transcript = open(&stored)?;
    match form {
        Form::Json => write_array(transcript.messages(), out)?,
        Form::Person => {
            for line in heading(&stored, desk)? {
                writeln!(out, "{line}")?;
            }
            for message in transcript.messages() {
                let text = told(&message.map_err(unreadable)?);
                if !text.is_empty() {
                    writeln!(out, "\n{text}")?;
                }
            }
        }
    }
    Ok(Outcome::Done)
}

/// Opens a transcript, and says what of it cannot be read.
fn open(stored: &Stored) -> Result<Transcript, Trouble> {
    let transcript = Transcript::open(&stored.path).map_err(unreadable)?;
    if let Some(warning) = transcript.repairs().warning() {
        note(&warning);
    }
    Ok(transcript)
}

/// Writes a session as a document or as messages. A file that is there is never written over.
pub(super) fn export(
    desk: &Desk,
    name: &str,
    format: Format,
    file: Option<&Path>,
    out: &mut impl Write,
) -> Result<Outcome, Trouble> {
    let stored = desk.shelf.find(name)?;
    let transcript = open(&stored)?;
    let Some(path) = file else {
        write(&stored, &transcript, format, desk, out)?;
        return Ok(Outcome::Done);
    };
    let cannot = |error: io::Error| {
        Trouble::Said(match error.kind() {
            io::ErrorKind::AlreadyExists => {
                format!("{} is there already. Name another file.", path.display())
            }
            _ => format!("{} cannot be written: {error}.", path.display()),
        })
    };
    let file = OpenOptions::new().write(true).create_new(true).open(path).map_err(cannot)?;
    let mut file = BufWriter::new(file);
    let written =
        write(&stored, &transcript, format, desk, &mut file).and_then(|()| file.flush().map_err(cannot));
    if written.is_err() {
        // Half a document is worse than none.
        let _ = std::fs::remove_file(path);
    }
    written?;
    note(&format!("Written to {}.", path.display()));
    Ok(Outcome::Done)
}

fn write(
    stored: &Stored,
    transcript: &Transcript,
    format: Format,
    desk: &Desk,
    out: &mut impl Write,
) -> Result<(), Trouble> {
    match format {
        Format::Json => write_array(transcript.messages(), out),
        Format::Markdown => {
            let lines = heading(stored, desk)?;
            let (title, facts) =
                lines.split_first().map_or(("", &[][..]), |(title, facts)| (title.as_str(), facts));
            writeln!(out, "# {title}\n\n{}\n", facts.join("  \n"))?;
            for message in transcript.messages() {
                out.write_all(markdown::message(&message.map_err(unreadable)?).as_bytes())?;
            }
            Ok(())
        }
    }
}

/// What a session is, line by line; its title first.
fn heading(stored: &Stored, desk: &Desk) -> Result<Vec<String>, Trouble> {
    let Summary { summary, cwd, git_branch, tag, .. } =
        stored.summary().map_err(unreadable)?.unwrap_or_default();
    let title =
        if summary.is_empty() { "(no prompt yet)".to_owned() } else { clean(&summary, Rendering::Line) };
    let place = cwd.map(|cwd| {
        let branch = git_branch.map_or_else(String::new, |branch| format!(" ({branch})"));
        clean(&format!("{}{branch}", path(&cwd, desk.home.as_deref())), Rendering::Line)
    });
    let tag = tag.map(|tag| clean(&format!("#{tag}"), Rendering::Line));
    let facts = format!("{}, {}", date(stored.modified), size(stored.size));
    Ok([Some(title), Some(stored.id.clone()), place, tag, Some(facts)].into_iter().flatten().collect())
}

/// A message as a person reads it: prompts behind `>`, calls on a line each, and how their output begins.
fn told(message: &Message) -> String {
    let parts: Vec<String> = match &message.message["content"] {
        Value::String(text) => vec![said(text, message)],
        Value::Array(blocks) => blocks.iter().map(|block| part(block, message)).collect(),
        _ => Vec::new(),
    };
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
}

fn part(block: &Value, message: &Message) -> String {
    match block["type"].as_str() {
        Some("text") => said(block["text"].as_str().unwrap_or_default(), message),
        Some("tool_use") => {
            let label = call_label(block["name"].as_str().unwrap_or("?"), &block["input"]);
            format!("  • {}", clean(&label, Rendering::Line))
        }
        Some("tool_result") => result(&markdown::plain(&block["content"])),
        Some("image" | "document") => "> (an attachment)".into(),
        _ => String::new(),
    }
}

fn said(text: &str, message: &Message) -> String {
    let text = clean(text.trim(), Rendering::Text);
    match message.kind.as_str() {
        "user" => text.lines().map(|line| format!("> {line}")).collect::<Vec<_>>().join("\n"),
        _ => text,
    }
}

fn result(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let mut shown: Vec<String> =
        lines.iter().take(SHOWN).map(|line| format!("    {}", clean(line, Rendering::Line))).collect();
    if lines.len() > SHOWN {
        shown.push(format!("    ... {} more lines", lines.len() - SHOWN));
    }
    shown.join("\n")
}
