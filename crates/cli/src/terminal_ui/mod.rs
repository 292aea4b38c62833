//! Terminal output for a user, frame by frame: streamed text, one line per tool call, cost.
//!
//! Modules: [`FrameRenderer`] here, `format` (text of a line; pure), [`spinner`], [`permission_prompt`] (allow or
//! deny), [`question_tool`] (choices).

mod format;
mod permission_prompt;
mod question_tool;
mod spinner;

use std::io::{self, Write};
use std::path::Path;

use serde::Deserialize;
use whimbrel_wire::Frame;
use whimbrel_wire::content::{Block, Content};
use whimbrel_wire::message::{Assistant, StreamEvent, TurnResult, User};
use whimbrel_wire::system::{InformationLevel, Informational, SystemEvent};

pub(crate) use format::failure_text;
use format::{CallOutcome, fit_to_columns, summarize_result, summary_line};
pub(crate) use format::{LineBreaks, call_label, sanitize};
pub(crate) use permission_prompt::PermissionPrompter;
pub(crate) use spinner::{Spinner, TICK_INTERVAL};

/// Style of note lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// Unstyled.
    Plain,
    /// Fainter than the text.
    Dimmed,
}

impl Style {
    fn dim(self, text: &str) -> String {
        match self {
            Self::Dimmed if text.is_empty() => String::new(),
            Self::Plain => text.to_owned(),
            Self::Dimmed => format!("\u{1b}[2m{text}\u{1b}[0m"),
        }
    }
}

/// Renders a run for a user: the agent's text goes to `text`, everything else to `notes`. Paths below the working
/// directory are shown relative to it.
pub(crate) struct FrameRenderer<T, M> {
    text: T,
    notes: M,
    dir_prefix: String,
    style: Style,
    spinner: Option<Spinner>,
    /// Returns the width of the terminal, if it is known.
    columns: fn() -> Option<usize>,
    /// True if the text output is at the start of a line.
    at_line_start: bool,
    /// True if the last line was a note.
    after_note: bool,
    /// True if the next text block was already written while it streamed.
    has_streamed_text: bool,
    /// True if the turn has ended, so that the spinner stays hidden.
    has_turn_ended: bool,
    /// Calls without a result yet: id, tool, label.
    open_calls: Vec<(String, String, String)>,
}

impl<T: Write, M: Write> FrameRenderer<T, M> {
    pub(crate) fn new(
        (text, notes): (T, M),
        columns: fn() -> Option<usize>,
        dir: &Path,
        style: Style,
        spinner: Option<Spinner>,
    ) -> Self {
        let dir_prefix = format!("{}/", dir.display());
        Self {
            text,
            notes,
            dir_prefix,
            style,
            spinner,
            columns,
            at_line_start: true,
            after_note: false,
            has_streamed_text: false,
            has_turn_ended: false,
            open_calls: Vec::new(),
        }
    }

    /// Renders a frame. An error means that the output is no longer read.
    pub(crate) fn render(&mut self, frame: &Frame) -> io::Result<()> {
        self.has_turn_ended &= !matches!(frame, Frame::StreamEvent(_) | Frame::Assistant(_));
        match frame {
            Frame::StreamEvent(event) => self.render_delta(event),
            Frame::Assistant(assistant) => self.render_blocks(assistant),
            Frame::User(user) => self.render_results(user),
            Frame::System(system) => self.render_system_event(&system.event),
            Frame::Result(result) => self.render_result(result),
            _ => Ok(()),
        }
    }

    /// Writes a note line.
    pub(crate) fn write_note(&mut self, line: &str) -> io::Result<()> {
        self.end_line()?;
        self.clear_spinner();
        self.after_note = true;
        writeln!(self.notes, "{}", self.style.dim(&sanitize(line, LineBreaks::Replace)))?;
        self.notes.flush()
    }

    /// Advances the spinner; called repeatedly while no frame arrives.
    pub(crate) fn tick(&mut self) {
        if let Some(spinner) = &mut self.spinner
            && self.at_line_start
            && !self.has_turn_ended
        {
            spinner.advance(self.open_calls.first().map_or("thinking", |(_, _, label)| label));
        }
    }

    /// Ends the current line and clears the spinner, for a prompt or for the end of the program.
    pub(crate) fn pause(&mut self) -> io::Result<()> {
        self.end_line()?;
        self.clear_spinner();
        Ok(())
    }

    /// Renders a streamed delta. Those of subagents are skipped.
    fn render_delta(&mut self, event: &StreamEvent) -> io::Result<()> {
        if event.parent_tool_use_id.is_some() {
            return Ok(());
        }
        match event.event.decode::<StreamDelta>() {
            Ok(StreamDelta { delta: Some(Delta { text: Some(text) }) }) => {
                self.has_streamed_text = true;
                self.write_text(&text)
            }
            _ => Ok(()),
        }
    }

    /// Renders finished blocks: text unless it was streamed, and tool calls that start.
    fn render_blocks(&mut self, assistant: &Assistant) -> io::Result<()> {
        // The error text of a failed model call comes again with the result.
        if assistant.parent_tool_use_id.is_some() || assistant.error.is_some() {
            return Ok(());
        }
        for block in &assistant.message.content {
            match block {
                Block::Text { text, .. } => {
                    if !std::mem::take(&mut self.has_streamed_text) {
                        self.write_text(text)?;
                    }
                    self.end_line()?;
                }
                Block::ToolUse { id, name, input } => {
                    let label = call_label(name, input).replacen(&self.dir_prefix, "", 1);
                    self.open_calls.push((id.clone(), name.clone(), label));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Renders tool results, one line each.
    fn render_results(&mut self, user: &User) -> io::Result<()> {
        let Content::Blocks(blocks) = &user.message.content else { return Ok(()) };
        for block in blocks {
            let Block::ToolResult { tool_use_id, content, is_error } = block else { continue };
            let Some(at) = self.open_calls.iter().position(|(id, ..)| id == tool_use_id) else { continue };
            let (_, name, label) = self.open_calls.remove(at);
            let outcome = CallOutcome::from_is_error(*is_error);
            let summary = summarize_result(&name, content.as_ref(), outcome)
                .map_or_else(String::new, |summary| format!("  → {summary}"));
            let line = format!("  {} {label}{summary}", outcome.symbol());
            self.write_note(
                &(self.columns)().map_or_else(|| line.clone(), |columns| fit_to_columns(&line, columns)),
            )?;
        }
        Ok(())
    }

    fn render_system_event(&mut self, event: &SystemEvent) -> io::Result<()> {
        match event {
            SystemEvent::ApiRetry(retry) => self.write_note(&format::retry_line(retry)),
            SystemEvent::Informational(Informational {
                content, level: InformationLevel::Warning, ..
            }) => content.lines().try_for_each(|line| self.write_note(&format!("! {line}"))),
            _ => Ok(()),
        }
    }

    fn render_result(&mut self, result: &TurnResult) -> io::Result<()> {
        self.has_turn_ended = true;
        self.open_calls.clear();
        if result.is_error {
            for line in format!("✗ {}", failure_text(result)).lines() {
                self.write_note(line)?;
            }
        }
        self.write_note(&summary_line(result))
    }

    fn write_text(&mut self, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        self.clear_spinner();
        if std::mem::take(&mut self.after_note) {
            self.text.write_all(b"\n")?;
        }
        let text = sanitize(text, LineBreaks::Keep);
        self.text.write_all(text.as_bytes())?;
        self.text.flush()?;
        self.at_line_start = text.ends_with('\n');
        Ok(())
    }

    fn end_line(&mut self) -> io::Result<()> {
        if !std::mem::replace(&mut self.at_line_start, true) {
            self.text.write_all(b"\n")?;
            self.text.flush()?;
        }
        Ok(())
    }

    fn clear_spinner(&mut self) {
        if let Some(spinner) = &mut self.spinner {
            spinner.clear();
        }
    }
}

/// The part of a stream event that is rendered.
#[derive(Deserialize)]
struct StreamDelta {
    delta: Option<Delta>,
}

#[derive(Deserialize)]
struct Delta {
    text: Option<String>,
}

#[cfg(test)]
mod tests;
