//! Telling a person what the agent does, frame by frame: its words as they come, one line per tool call, what it cost.
//!
//! The rooms: [`Story`] here, [`label`] (pure: what a line says), [`spinner`] (that something is going on), [`question`]
//! (may it?), [`choice`] (which one?).

mod choice;
mod label;
mod question;
mod spinner;

use std::io::{self, Write};
use std::path::Path;

use serde::Deserialize;
use whimbrel_wire::Frame;
use whimbrel_wire::content::{Block, Content};
use whimbrel_wire::message::{Assistant, StreamEvent, TurnResult, User};
use whimbrel_wire::system::{InformationLevel, Informational, SystemEvent};

pub(crate) use label::failure;
use label::{Mark, closing, fit, gist};
pub(crate) use label::{Rendering, call_label, clean};
pub(crate) use question::Judge;
pub(crate) use spinner::{BEAT, Spinner};

/// How the marginal lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Paint {
    /// As they are.
    Plain,
    /// Fainter than the text.
    Dimmed,
}

impl Paint {
    fn dim(self, text: &str) -> String {
        match self {
            Self::Dimmed if text.is_empty() => String::new(),
            Self::Plain => text.to_owned(),
            Self::Dimmed => format!("\u{1b}[2m{text}\u{1b}[0m"),
        }
    }
}

/// A run as a person sees it: the agent's words go to `text`, everything else to `margin`. Files in `folder` are named by
/// their path below it.
pub(crate) struct Story<T, M> {
    text: T,
    margin: M,
    folder: String,
    paint: Paint,
    spinner: Option<Spinner>,
    /// How wide the margin is, where that is known.
    columns: fn() -> Option<usize>,
    /// Whether the text stands at the beginning of a line.
    at_line_start: bool,
    /// Whether the last line was beside the text.
    after_remark: bool,
    /// Whether the block that comes next was already told piece by piece.
    streamed: bool,
    /// Whether the turn has ended, so that nothing is going on.
    resting: bool,
    /// Calls without a result yet: id, tool, label.
    open: Vec<(String, String, String)>,
}

impl<T: Write, M: Write> Story<T, M> {
    /// A story that has not begun.
    pub(crate) fn new(
        (text, margin): (T, M),
        columns: fn() -> Option<usize>,
        folder: &Path,
        paint: Paint,
        spinner: Option<Spinner>,
    ) -> Self {
        let folder = format!("{}/", folder.display());
        Self {
            text,
            margin,
            folder,
            paint,
            spinner,
            columns,
            at_line_start: true,
            after_remark: false,
            streamed: false,
            resting: false,
            open: Vec::new(),
        }
    }

    /// Tells what a frame says. An error means that nobody reads any more.
    pub(crate) fn tell(&mut self, frame: &Frame) -> io::Result<()> {
        self.resting &= !matches!(frame, Frame::StreamEvent(_) | Frame::Assistant(_));
        match frame {
            Frame::StreamEvent(event) => self.piece(event),
            Frame::Assistant(assistant) => self.block(assistant),
            Frame::User(user) => self.results(user),
            Frame::System(system) => self.notice(&system.event),
            Frame::Result(result) => self.end(result),
            _ => Ok(()),
        }
    }

    /// A line beside the text.
    pub(crate) fn remark(&mut self, line: &str) -> io::Result<()> {
        self.break_line()?;
        self.hush();
        self.after_remark = true;
        writeln!(self.margin, "{}", self.paint.dim(&clean(line, Rendering::Line)))?;
        self.margin.flush()
    }

    /// Something is going on: called again and again while nothing else comes.
    pub(crate) fn tick(&mut self) {
        if let Some(spinner) = &mut self.spinner
            && self.at_line_start
            && !self.resting
        {
            spinner.turn(self.open.first().map_or("thinking", |(_, _, label)| label));
        }
    }

    /// Leaves the place free for a question, or for whatever comes after us.
    pub(crate) fn pause(&mut self) -> io::Result<()> {
        self.break_line()?;
        self.hush();
        Ok(())
    }

    /// More of the model's words. Those of subagents are not told.
    fn piece(&mut self, event: &StreamEvent) -> io::Result<()> {
        if event.parent_tool_use_id.is_some() {
            return Ok(());
        }
        match event.event.read::<Piece>() {
            Ok(Piece { delta: Some(Delta { text: Some(text) }) }) => {
                self.streamed = true;
                self.say(&text)
            }
            _ => Ok(()),
        }
    }

    /// A finished block: its text unless it was told already, or a call that begins.
    fn block(&mut self, assistant: &Assistant) -> io::Result<()> {
        // The report of a failed call of the model comes again with the result.
        if assistant.parent_tool_use_id.is_some() || assistant.error.is_some() {
            return Ok(());
        }
        for block in &assistant.message.content {
            match block {
                Block::Text { text, .. } => {
                    if !std::mem::take(&mut self.streamed) {
                        self.say(text)?;
                    }
                    self.break_line()?;
                }
                Block::ToolUse { id, name, input } => {
                    let label = call_label(name, input).replacen(&self.folder, "", 1);
                    self.open.push((id.clone(), name.clone(), label));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Results of calls, one line each.
    fn results(&mut self, user: &User) -> io::Result<()> {
        let Content::Blocks(blocks) = &user.message.content else { return Ok(()) };
        for block in blocks {
            let Block::ToolResult { tool_use_id, content, is_error } = block else { continue };
            let Some(at) = self.open.iter().position(|(id, ..)| id == tool_use_id) else { continue };
            let (_, name, label) = self.open.remove(at);
            let mark = Mark::of(*is_error);
            let gist =
                gist(&name, content.as_ref(), mark).map_or_else(String::new, |gist| format!("  → {gist}"));
            let line = format!("  {} {label}{gist}", mark.sign());
            self.remark(&(self.columns)().map_or_else(|| line.clone(), |columns| fit(&line, columns)))?;
        }
        Ok(())
    }

    fn notice(&mut self, event: &SystemEvent) -> io::Result<()> {
        match event {
            SystemEvent::ApiRetry(retry) => self.remark(&label::retry(retry)),
            SystemEvent::Informational(Informational {
                content, level: InformationLevel::Warning, ..
            }) => content.lines().try_for_each(|line| self.remark(&format!("! {line}"))),
            _ => Ok(()),
        }
    }

    fn end(&mut self, result: &TurnResult) -> io::Result<()> {
        self.resting = true;
        self.open.clear();
        if result.is_error {
            for line in format!("✗ {}", failure(result)).lines() {
                self.remark(line)?;
            }
        }
        self.remark(&closing(result))
    }

    fn say(&mut self, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        self.hush();
        if std::mem::take(&mut self.after_remark) {
            self.text.write_all(b"\n")?;
        }
        let text = clean(text, Rendering::Text);
        self.text.write_all(text.as_bytes())?;
        self.text.flush()?;
        self.at_line_start = text.ends_with('\n');
        Ok(())
    }

    fn break_line(&mut self) -> io::Result<()> {
        if !std::mem::replace(&mut self.at_line_start, true) {
            self.text.write_all(b"\n")?;
            self.text.flush()?;
        }
        Ok(())
    }

    fn hush(&mut self) {
        if let Some(spinner) = &mut self.spinner {
            spinner.clear();
        }
    }
}

/// As much of a stream event as is told.
#[derive(Deserialize)]
struct Piece {
    delta: Option<Delta>,
}

#[derive(Deserialize)]
struct Delta {
    text: Option<String>,
}

#[cfg(test)]
mod tests;
