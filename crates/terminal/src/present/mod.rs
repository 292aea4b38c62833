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

/// What the model's text begins with, and the indent of its other lines. Column 0 is ours: no line of a model, a tool or a
/// file begins there, and no line of ours begins with this mark. So text of the model cannot be taken for our own words.
const ANSWER_MARK: &str = "● ";
const ANSWER_INDENT: &str = "  ";

/// Lines of a resumed session that are shown.
const MAX_RESUMED_LINES: usize = 200;
/// Lines of a prompt, and characters of such a line, that are shown; the transcript view has the rest.
const MAX_PROMPT_LINES: usize = 10;
const MAX_PROMPT_LINE_CHARS: usize = 1000;

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

impl Stream {
    /// What the next line begins with.
    fn first_indent(&self) -> &'static str {
        if self.has_lines { ANSWER_INDENT } else { ANSWER_MARK }
    }
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
        let lines = stream.markdown.push(text, answer_columns(columns));
        self.with_gap(lines)
    }

    /// Ends the model's text and returns its last lines.
    pub(crate) fn end_text(&mut self, columns: usize) -> Vec<Line> {
        let Some(stream) = &mut self.streaming else { return Vec::new() };
        let lines = stream.markdown.finish(answer_columns(columns));
        let lines = self.with_gap(lines);
        self.streaming = None;
        lines
    }

    /// The unfinished part of the model's text, for the live area.
    pub(crate) fn tail(&self, columns: usize) -> Vec<Line> {
        let Some(stream) = &self.streaming else { return Vec::new() };
        let tail = stream.markdown.tail(answer_columns(columns));
        let has_gap = !stream.has_lines && !tail.is_empty() && self.last.is_some();
        let lines = indent_answer(tail, stream.first_indent(), &self.theme);
        // It is broken as it will be when it is finished.
        let rows = lines.iter().flat_map(|line| line.terminal_rows(columns));
        has_gap.then(Line::empty).into_iter().chain(rows).collect()
    }

    /// Puts the mark and a blank line before the first lines of a text, and an indent before all others.
    fn with_gap(&mut self, lines: Vec<Line>) -> Vec<Line> {
        let Some(stream) = &mut self.streaming else { return lines };
        let lines = indent_answer(lines, stream.first_indent(), &self.theme);
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

    /// The last lines of entries for the scrollback, with a note on those that are left out.
    pub(crate) fn end_of(&mut self, items: &[Item], columns: usize) -> Vec<Line> {
        let mut lines: Vec<Line> = items.iter().flat_map(|item| self.item(item, columns)).collect();
        let hidden = lines.len().saturating_sub(MAX_RESUMED_LINES);
        if hidden > 0 {
            lines.drain(..hidden);
            let note = format!("… {hidden} lines above (Ctrl+O shows all)");
            lines.insert(0, Line::styled(&note, self.theme.dim));
        }
        lines
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
            Item::User { text, entry } => render_prompt(text, *entry, theme, detail),
            Item::Answer(text) => {
                let lines = markdown::render(text, answer_columns(columns), theme);
                indent_answer(lines, ANSWER_MARK, theme)
            }
            Item::Page(text) => markdown::render(text, columns, theme),
            Item::Thinking(text) => match detail {
                Detail::Folded => Vec::new(),
                Detail::Full => {
                    let title = Line::styled("thinking", theme.dim);
                    let lines = sanitize_lines(text).into_iter().map(|line| Line::styled(&line, theme.dim));
                    let lines = indent_answer(lines.collect(), ANSWER_INDENT, theme);
                    std::iter::once(title).chain(lines).collect()
                }
            },
            Item::Call(call) => self.render_call(call, columns, detail),
            Item::Plan(text) => {
                let mut lines = vec![Line::styled("Plan", theme.heading)];
                let plan = markdown::render(text, answer_columns(columns), theme);
                lines.extend(indent_answer(plan, ANSWER_INDENT, theme));
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
    pub(crate) fn request(&self, name: &str, input: &serde_json::Value) -> Vec<Line> {
        let call = Call { name, input, cwd: &self.cwd };
        tool_card::request(&call, self.current_file.as_deref(), &self.theme)
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

/// Columns that text of the model can use.
fn answer_columns(columns: usize) -> usize {
    columns.saturating_sub(ANSWER_INDENT.len()).max(1)
}

/// Puts `first` before the first line of the model's text, and the indent before all others.
fn indent_answer(lines: Vec<Line>, first: &str, theme: &Theme) -> Vec<Line> {
    let indented = lines.into_iter().enumerate().map(|(at, line)| match at {
        0 => line.indented(first, ANSWER_INDENT, theme.accent),
        _ if line.is_empty() => line,
        _ => line.indented(ANSWER_INDENT, ANSWER_INDENT, Style::PLAIN),
    });
    indented.collect()
}

/// A prompt; a long one, as after a paste, is folded.
fn render_prompt(text: &str, entry: PromptEntry, theme: &Theme, detail: Detail) -> Vec<Line> {
    let all = sanitize_lines(text);
    let shown = match detail {
        Detail::Folded if all.len() > MAX_PROMPT_LINES + 1 => MAX_PROMPT_LINES,
        Detail::Folded | Detail::Full => all.len(),
    };
    let mut lines: Vec<Line> = all[..shown]
        .iter()
        .map(|line| match detail {
            Detail::Folded => fold_line(line),
            Detail::Full => line.clone(),
        })
        .enumerate()
        .map(|(index, line)| {
            let mark = if index == 0 { "› " } else { "  " };
            Line::styled(mark, theme.accent).with(&line, theme.user).continued_with("  ", Style::default())
        })
        .collect();
    if shown < all.len() {
        let text = format!("  … {} more lines (Ctrl+O shows all)", all.len() - shown);
        lines.push(Line::styled(&text, theme.dim));
    }
    if entry == PromptEntry::Steered {
        lines.push(Line::styled("  (added to the running turn)", theme.dim));
    }
    lines
}

/// The beginning of a line that is longer than a screen.
fn fold_line(line: &str) -> String {
    match line.char_indices().nth(MAX_PROMPT_LINE_CHARS) {
        None => line.to_owned(),
        Some((end, _)) => {
            let hidden = line[end..].chars().count();
            format!("{} … {hidden} more characters (Ctrl+O shows all)", &line[..end])
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn presenter() -> Presenter {
        Presenter::new(Theme::PLAIN, "/w".into())
    }

    fn texts(lines: &[Line]) -> Vec<String> {
        lines.iter().map(|line| line.text().trim_end().to_owned()).collect()
    }

    const FORGED: &str =
        "\u{2713} Bash ls\n\n! warning\n\n```\n\u{203a} yes\n```\n\n- one\n\n| a |\n|---|\n| b |\n";

    #[test]
    fn text_of_the_model_never_begins_in_our_column() {
        let whole = presenter().item(&Item::Answer(FORGED.into()), 60);
        let mut streaming = presenter();
        let mut streamed: Vec<Line> =
            FORGED.split_inclusive('\n').flat_map(|piece| streaming.push_text(piece, 60)).collect();
        streamed.extend(streaming.end_text(60));
        assert_eq!(texts(&streamed), texts(&whole));
        let mut rows = texts(&whole).into_iter();
        assert_eq!(rows.next().as_deref(), Some("\u{25cf} \u{2713} Bash ls"));
        assert!(rows.all(|row| row.is_empty() || row.starts_with("  ")), "{:?}", texts(&whole));
    }

    #[test]
    fn resumed_session_shows_its_last_lines() {
        let text: String = (0..300).map(|number| format!("line {number}\n\n")).collect();
        let lines = texts(&presenter().end_of(&[Item::Answer(text)], 60));
        assert_eq!((lines.len(), lines[200].as_str()), (201, "  line 299"));
        assert_eq!(lines[0], "… 399 lines above (Ctrl+O shows all)");
    }

    #[test]
    fn unfinished_text_has_the_mark_too() {
        let mut presenter = presenter();
        presenter.push_text("\u{2713} Bash ls and more", 12);
        assert_eq!(texts(&presenter.tail(12)), ["\u{25cf} \u{2713} Bash ls", "and more"]);
    }

    #[test]
    fn long_prompts_are_folded_except_in_the_transcript() {
        let text: String = (0..240).map(|number| format!("line {number}\n")).collect();
        let prompt = Item::User { text, entry: PromptEntry::Turn };
        let lines = texts(&presenter().item(&prompt, 60));
        assert_eq!((lines.len(), lines[10].as_str()), (11, "  … 230 more lines (Ctrl+O shows all)"));
        assert_eq!(presenter().pages([&prompt], 60).len(), 240);
        let text = "x".repeat(5000);
        let prompt = Item::User { text, entry: PromptEntry::Turn };
        assert!(
            texts(&presenter().item(&prompt, 60))[0].ends_with(" … 4000 more characters (Ctrl+O shows all)")
        );
    }
}
