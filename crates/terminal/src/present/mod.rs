//! Entries of the transcript as lines of the scrollback, with the text of the model while it streams.

use std::path::PathBuf;
use std::time::Duration;

use crate::diff::Fold;
use crate::markdown::{self, StreamingMarkdown};
use crate::text::{Flow, Line, Style, sanitize_lines};
use crate::theme::Theme;
use crate::tool_card::{self, Call, Outcome};
use crate::transcript::{FinishedCall, Item, NoteLevel, PromptEntry, ShellExit};

/// Lines of a command line's output that are shown; the transcript view has the rest.
const MAX_SHELL_LINES: usize = 20;

/// Turns entries into lines. It remembers what came last, for the blank lines between them.
pub(crate) struct Presenter {
    theme: Theme,
    cwd: PathBuf,
    /// Content of the file that the open permission prompt is about.
    current_file: Option<String>,
    streaming: Option<Stream>,
    last: Option<Spacing>,
}

/// Text that is being streamed.
struct Stream {
    markdown: StreamingMarkdown,
    has_lines: bool,
}

/// Entries of one kind that stand close together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spacing {
    Call,
    Note,
    Other,
}

impl Presenter {
    pub(crate) fn new(theme: Theme, cwd: PathBuf) -> Self {
        Self { theme, cwd, current_file: None, streaming: None, last: None }
    }

    pub(crate) fn theme(&self) -> &Theme {
        &self.theme
    }

    /// Sets the content of the file that the open permission prompt is about, for its diff.
    pub(crate) fn set_current_file(&mut self, text: Option<String>) {
        self.current_file = text;
    }

    /// Uses another theme from the next entry on.
    pub(crate) fn set_theme(&mut self, theme: Theme) {
        self.theme = theme;
    }

    /// Adds a piece of the model's text and returns the lines that are final.
    pub(crate) fn push_text(&mut self, text: &str, columns: usize) -> Vec<Line> {
        if self.streaming.is_none() {
            let markdown = StreamingMarkdown::new(self.theme);
            self.streaming = Some(Stream { markdown, has_lines: false });
        }
        let Some(stream) = &mut self.streaming else { return Vec::new() };
        let lines = stream.markdown.push(text, columns);
        self.with_gap(lines)
    }

    /// Ends the model's text and returns its last lines.
    pub(crate) fn end_text(&mut self, columns: usize) -> Vec<Line> {
        let Some(stream) = &mut self.streaming else { return Vec::new() };
        let lines = stream.markdown.finish(columns);
        let lines = self.with_gap(lines);
        self.streaming = None;
        lines
    }

    /// The unfinished part of the model's text, for the live area.
    pub(crate) fn tail(&self, columns: usize) -> Vec<Line> {
        let Some(stream) = &self.streaming else { return Vec::new() };
        let tail = stream.markdown.tail(columns);
        if stream.has_lines || tail.is_empty() || self.last.is_none() {
            return tail;
        }
        std::iter::once(Line::empty()).chain(tail).collect()
    }

    /// Puts a blank line before the first lines of a text.
    fn with_gap(&mut self, lines: Vec<Line>) -> Vec<Line> {
        let Some(stream) = &mut self.streaming else { return lines };
        if lines.is_empty() || std::mem::replace(&mut stream.has_lines, true) {
            return lines;
        }
        let gap = self.last.is_some().then(Line::empty);
        self.last = Some(Spacing::Other);
        gap.into_iter().chain(lines).collect()
    }

    /// The lines of an entry for the scrollback.
    pub(crate) fn item(&mut self, item: &Item, columns: usize) -> Vec<Line> {
        let spacing = match item {
            Item::Call(_) => Spacing::Call,
            Item::Note(..) => Spacing::Note,
            _ => Spacing::Other,
        };
        let lines = self.render(item, columns, Detail::Folded);
        if lines.is_empty() {
            return lines;
        }
        let is_close = self.last == Some(spacing) && spacing != Spacing::Other;
        let gap = (self.last.is_some() && !is_close).then(Line::empty);
        self.last = Some(spacing);
        gap.into_iter().chain(lines).collect()
    }

    /// Lines that belong to no entry, such as the call of a permission prompt that is too long for the live area.
    pub(crate) fn loose(&mut self, lines: Vec<Line>) -> Vec<Line> {
        let gap = self.last.is_some().then(Line::empty);
        self.last = Some(Spacing::Other);
        gap.into_iter().chain(lines).collect()
    }

    /// The lines of all entries, unfolded, for the transcript view.
    pub(crate) fn pages<'a>(&self, items: impl IntoIterator<Item = &'a Item>, columns: usize) -> Vec<Line> {
        let mut lines = Vec::new();
        for item in items {
            if !lines.is_empty() {
                lines.push(Line::empty());
            }
            lines.extend(self.render(item, columns, Detail::Full));
        }
        lines
    }

    fn render(&self, item: &Item, columns: usize, detail: Detail) -> Vec<Line> {
        let theme = &self.theme;
        match item {
            Item::User { text, entry } => render_prompt(text, *entry, theme),
            Item::Answer(text) | Item::Page(text) => markdown::render(text, columns, theme),
            Item::Thinking(text) => match detail {
                Detail::Folded => Vec::new(),
                Detail::Full => {
                    let title = Line::styled("thinking", theme.dim);
                    let lines = sanitize_lines(text).into_iter();
                    std::iter::once(title).chain(lines.map(|line| Line::styled(&line, theme.dim))).collect()
                }
            },
            Item::Call(call) => self.render_call(call, columns, detail),
            Item::Plan(text) => {
                let mut lines = vec![Line::styled("Plan", theme.heading)];
                lines.extend(markdown::render(text, columns, theme));
                lines
            }
            Item::Shell { command, output, exit } => render_shell(command, output, *exit, theme, detail),
            Item::Note(level, text) => render_note(*level, text, theme),
            Item::Mark(text) => vec![Line::styled(&format!("── {text}"), theme.dim)],
        }
    }

    fn render_call(&self, finished: &FinishedCall, columns: usize, detail: Detail) -> Vec<Line> {
        let call = Call { name: &finished.name, input: &finished.input, cwd: &self.cwd };
        let outcome = Outcome {
            text: &finished.text,
            is_error: finished.is_error,
            structured: finished.structured.as_ref(),
            elapsed: finished.elapsed,
        };
        let fold = match detail {
            Detail::Folded => Fold::At(40),
            Detail::Full => Fold::None,
        };
        tool_card::finished(&call, &outcome, columns, &self.theme, fold)
    }

    /// The lines of a call that runs.
    pub(crate) fn running_call(
        &self,
        name: &str,
        input: &serde_json::Value,
        elapsed: Duration,
        live: &[String],
        columns: usize,
    ) -> Vec<Line> {
        let call = Call { name, input, cwd: &self.cwd };
        let spinner = tool_card::spinner_frame(elapsed);
        tool_card::running(&call, elapsed, spinner, live, columns, &self.theme)
    }

    /// The lines of a call that needs permission, in full.
    pub(crate) fn request(&self, name: &str, input: &serde_json::Value, columns: usize) -> Vec<Line> {
        let call = Call { name, input, cwd: &self.cwd };
        tool_card::request(&call, self.current_file.as_deref(), columns, &self.theme)
    }

    /// The title of a call.
    pub(crate) fn call_title(&self, name: &str, input: &serde_json::Value) -> Line {
        tool_card::title(&Call { name, input, cwd: &self.cwd }, &self.theme)
    }
}

/// How much of an entry is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Detail {
    Folded,
    Full,
}

fn render_prompt(text: &str, entry: PromptEntry, theme: &Theme) -> Vec<Line> {
    let mut lines: Vec<Line> = sanitize_lines(text)
        .iter()
        .enumerate()
        .map(|(index, line)| {
            let mark = if index == 0 { "› " } else { "  " };
            Line::styled(mark, theme.accent).with(line, theme.user).continued_with("  ", Style::default())
        })
        .collect();
    if entry == PromptEntry::Steered {
        lines.push(Line::styled("  (added to the running turn)", theme.dim));
    }
    lines
}

fn render_note(level: NoteLevel, text: &str, theme: &Theme) -> Vec<Line> {
    let (mark, style) = match level {
        NoteLevel::Info => ("· ", theme.dim),
        NoteLevel::Warning => ("! ", theme.warning),
        NoteLevel::Error => ("✗ ", theme.error),
    };
    let lines = sanitize_lines(text);
    let marked = lines.iter().enumerate().map(|(index, line)| {
        let mark = if index == 0 { mark } else { "  " };
        Line::styled(mark, style).with(line, style).continued_with("  ", Style::default())
    });
    marked.collect()
}

fn render_shell(command: &str, output: &str, exit: ShellExit, theme: &Theme, detail: Detail) -> Vec<Line> {
    let mut lines = vec![Line::styled("! ", theme.accent).with(command, theme.user)];
    let output = sanitize_lines(output.trim_end_matches('\n'));
    let output: Vec<&String> =
        if output.len() == 1 && output[0].is_empty() { Vec::new() } else { output.iter().collect() };
    let hidden = match detail {
        Detail::Folded => output.len().saturating_sub(MAX_SHELL_LINES),
        Detail::Full => 0,
    };
    if hidden > 0 {
        lines.push(Line::styled(&format!("  … {hidden} more lines above (Ctrl+O shows them)"), theme.dim));
    }
    lines.extend(output[hidden..].iter().map(|line| Line::plain(&format!("  {line}")).flow(Flow::Anywhere)));
    let end = match exit {
        ShellExit::Code(0) => None,
        ShellExit::Code(code) => Some(format!("exit {code}")),
        ShellExit::Signal(signal) => Some(format!("ended by signal {signal}")),
        ShellExit::Stopped => Some("stopped".into()),
    };
    if let Some(end) = end {
        lines.push(Line::styled(&format!("  {end}"), theme.warning));
    }
    lines
}
