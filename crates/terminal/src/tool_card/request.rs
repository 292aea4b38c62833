//! What a call would do, in full: the tool is named and nothing is cut, because the user decides by it.

use serde_json::Value;
use whimbrel::wire::tool_names::{BASH, SKILL};

use super::Call;
use crate::diff::{self, FileDiff, Fold};
use crate::markdown::highlight;
use crate::text::{Flow, Line, Style, sanitize_lines};
use crate::theme::Theme;

const INDENT: &str = "  ";

/// Lines for a permission request. `current` is the text of the file that the call would change, if there is one.
pub(crate) fn request(call: &Call<'_>, current: Option<&str>, theme: &Theme) -> Vec<Line> {
    let name = Line::styled(call.name, theme.strong).indented(INDENT, INDENT, Style::PLAIN);
    std::iter::once(name).chain(details(call, current, theme)).collect()
}

/// What a call would do, without the name of the tool.
fn details(call: &Call<'_>, current: Option<&str>, theme: &Theme) -> Vec<Line> {
    match call.name {
        BASH | "Monitor" => command(call, theme),
        "Write" | "Edit" => match change(call, current) {
            Some(change) => {
                let mut lines = vec![path_line(call, &change, theme)];
                let changed = diff::render(&change, theme, Fold::None);
                lines.extend(changed.into_iter().map(|line| line.indented(INDENT, INDENT, Style::PLAIN)));
                lines
            }
            None => fields(call.input, theme),
        },
        "Read" | "NotebookEdit" | "WebFetch" | "WebSearch" | SKILL => fields(call.input, theme),
        _ => {
            let mut lines = Vec::new();
            if let Some((server, tool)) = call.mcp_names() {
                lines.push(field_line("server", server, theme));
                lines.push(field_line("tool", tool, theme));
            }
            lines.extend(fields(call.input, theme));
            lines
        }
    }
}

/// The whole command, in the colors of a shell.
fn command(call: &Call<'_>, theme: &Theme) -> Vec<Line> {
    let mut lines = Vec::new();
    if let Some(description) = call.field("description") {
        lines.push(Line::styled(description, theme.dim).indented(INDENT, INDENT, Style::PLAIN));
    }
    let text = call.field("command").unwrap_or_default();
    let code = highlight::lines(text, "bash", *theme);
    lines.extend(
        code.into_iter().map(|line| line.flow(Flow::Anywhere).indented(INDENT, INDENT, Style::PLAIN)),
    );
    lines
}

/// The change that a call would make.
fn change(call: &Call<'_>, current: Option<&str>) -> Option<FileDiff> {
    let path = call.field("file_path")?;
    if call.name == "Write" {
        let kept = current.filter(|_| call.field("mode") == Some("append")).unwrap_or_default();
        let text = format!("{kept}{}", call.field("content")?);
        return Some(FileDiff::from_texts(path, current, Some(&text)));
    }
    let (old, new) = (call.field("old_string")?, call.field("new_string")?);
    let edited = current.filter(|text| !old.is_empty() && text.contains(old)).map(|text| {
        let all = call.input.get("replace_all").and_then(Value::as_bool) == Some(true);
        (text, if all { text.replace(old, new) } else { text.replacen(old, new, 1) })
    });
    Some(match edited {
        Some((before, after)) => FileDiff::from_texts(path, Some(before), Some(&after)),
        None => FileDiff::from_excerpts(path, old, new),
    })
}

fn path_line(call: &Call<'_>, change: &FileDiff, theme: &Theme) -> Line {
    let what = match change.change {
        diff::FileChange::Created => "new file",
        diff::FileChange::Deleted => "deleted file",
        diff::FileChange::Edited => "",
    };
    let mut line = Line::styled(call.short_path(&change.path), theme.strong);
    line.push(&format!("  +{} -{}  {what}", change.added(), change.removed()), theme.dim);
    line.indented(INDENT, INDENT, Style::PLAIN)
}

/// Each field of an input: its name, then its value, on lines of its own if it has several.
fn fields(input: &Value, theme: &Theme) -> Vec<Line> {
    let Some(fields) = input.as_object() else {
        return vec![field_line("input", &input.to_string(), theme)];
    };
    let mut lines = Vec::new();
    for (name, value) in fields {
        match value {
            Value::String(text) if text.contains('\n') => {
                lines.push(field_line(name, "", theme));
                let rows = sanitize_lines(text);
                lines.extend(
                    rows.iter().map(|row| {
                        Line::plain(row).flow(Flow::Anywhere).indented("    ", "    ", Style::PLAIN)
                    }),
                );
            }
            Value::String(text) => lines.push(field_line(name, text, theme)),
            value => lines.push(field_line(name, &value.to_string(), theme)),
        }
    }
    lines
}

fn field_line(name: &str, value: &str, theme: &Theme) -> Line {
    let line = Line::styled(&format!("{name}: "), theme.dim).with(value, Style::PLAIN);
    line.flow(Flow::Anywhere).indented(INDENT, "    ", Style::PLAIN)
}
