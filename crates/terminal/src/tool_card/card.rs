//! Cards of calls that run and of calls that are done.

use std::time::Duration;

use super::summary::{Shown, change, shown, summary};
use super::{Call, Outcome, format_elapsed, title};
use crate::diff::{self, Fold};
use crate::text::{Flow, Line, Style};
use crate::theme::Theme;

/// Lines of output that a folded card shows.
const FOLDED_OUTPUT_LINES: usize = 6;
/// Lines of a diff that a folded card shows.
const FOLDED_DIFF_LINES: usize = 40;
/// What stands before the output of a call.
const OUTPUT_MARK: &str = "  │ ";
/// What stands before the lines of a diff.
const DIFF_INDENT: &str = "  ";

/// A call that runs: one line with its time, and the last lines that it printed.
pub(crate) fn running(
    call: &Call<'_>,
    elapsed: Duration,
    spinner: char,
    live: &[String],
    columns: usize,
    theme: &Theme,
) -> Vec<Line> {
    let time = if elapsed.as_secs() > 0 { format!(" · {}", format_elapsed(elapsed)) } else { String::new() };
    let mut head = Line::styled(&format!("{spinner} "), theme.accent);
    head.append(title(call, theme));
    let mut lines = vec![head.truncated(columns.saturating_sub(time.len())).with(&time, theme.dim)];
    lines.extend(live.iter().map(|text| output_line(text, theme).truncated(columns)));
    lines
}

/// A call that is done: one line with a summary, then its diff or the telling part of its output.
pub(crate) fn finished(
    call: &Call<'_>,
    outcome: &Outcome<'_>,
    columns: usize,
    theme: &Theme,
    fold: Fold,
) -> Vec<Line> {
    let mut lines = vec![head(call, outcome, columns, theme)];
    if let Some(change) = change(call, outcome) {
        let limit = if fold == Fold::None { Fold::None } else { Fold::At(FOLDED_DIFF_LINES) };
        let changed = diff::render(&change, theme, limit).into_iter();
        lines.extend(changed.map(|line| {
            let line = line.indented(DIFF_INDENT, DIFF_INDENT, Style::PLAIN);
            // The columns of a diff count, so a card cuts its lines; the transcript view wraps them.
            if fold == Fold::None { line } else { line.truncated(columns).flow(Flow::Cut) }
        }));
        return lines;
    }
    lines.extend(output(shown(call, outcome), fold, theme));
    lines
}

fn head(call: &Call<'_>, outcome: &Outcome<'_>, columns: usize, theme: &Theme) -> Line {
    let (mark, style) = if outcome.is_error { ("✗ ", theme.error) } else { ("✓ ", theme.success) };
    let words: String = summary(call, outcome).iter().map(|word| format!(" · {word}")).collect();
    let mut head = Line::styled(mark, style);
    head.append(title(call, theme));
    let room = columns.saturating_sub(crate::text::width(&words)).max(12);
    head.truncated(room).with(&words, if outcome.is_error { theme.error } else { theme.dim })
}

fn output(shown: Shown<'_>, fold: Fold, theme: &Theme) -> Vec<Line> {
    let lines = |text: &str| text.lines().map(|line| output_line(line, theme)).collect::<Vec<_>>();
    let note = |text: String| output_line("", theme).with(&text, theme.dim);
    match (shown, fold) {
        (Shown::Nothing, _) => Vec::new(),
        (Shown::Beginning(text) | Shown::End(text), Fold::None) => lines(text),
        (Shown::Beginning(text), Fold::At(_)) => {
            let mut lines = lines(text);
            let hidden = lines.len().saturating_sub(FOLDED_OUTPUT_LINES);
            if hidden > 1 {
                lines.truncate(FOLDED_OUTPUT_LINES);
                lines.push(note(format!("… {hidden} more lines (Ctrl+O shows all)")));
            }
            lines
        }
        (Shown::End(text), Fold::At(_)) => {
            let mut lines = lines(text);
            let hidden = lines.len().saturating_sub(FOLDED_OUTPUT_LINES);
            if hidden > 1 {
                lines.drain(..hidden);
                lines.insert(0, note(format!("… {hidden} lines above (Ctrl+O shows all)")));
            }
            lines
        }
    }
}

/// A line that a program printed. Colors and movements that it tried are left out.
fn output_line(text: &str, theme: &Theme) -> Line {
    // A carriage return overwrites a line, as progress bars do.
    let text = text.trim_end_matches('\r').rsplit('\r').next().unwrap_or_default();
    let line = Line::styled(&without_styles(text), theme.dim).flow(Flow::Anywhere);
    line.indented(OUTPUT_MARK, OUTPUT_MARK, theme.border)
}

/// Leaves out color sequences, which programs print without harm in mind. Everything else is made visible later.
fn without_styles(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("\x1b[") {
        plain.push_str(&rest[..at]);
        let parameters = &rest[at + 2..];
        let end = parameters.find(|c: char| !(c.is_ascii_digit() || matches!(c, ';' | ':')));
        match end.map(|end| (end, parameters.as_bytes()[end])) {
            Some((end, b'm' | b'K')) => rest = &parameters[end + 1..],
            _ => {
                plain.push_str("\x1b[");
                rest = parameters;
            }
        }
    }
    plain + rest
}
