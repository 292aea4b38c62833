//! The title of a call: the tool, and the most telling part of its input.

use whimbrel::wire::tool_names::{AGENT, BASH, SKILL, TOOL_SEARCH};

use super::Call;
use crate::text::Line;
use crate::theme::Theme;

/// One line, which may be wider than the screen.
pub(crate) fn title(call: &Call<'_>, theme: &Theme) -> Line {
    let (name, subject) = name_and_subject(call);
    let mut line = Line::styled(&name, theme.strong);
    if let Some(subject) = subject.filter(|subject| !subject.trim().is_empty()) {
        line.push(" ", theme.text).push(&first_line(&subject), theme.text);
    }
    line
}

fn name_and_subject(call: &Call<'_>) -> (String, Option<String>) {
    if let Some((server, tool)) = call.mcp_names() {
        return (format!("{server}: {tool}"), compact_input(call));
    }
    let field = |name: &str| call.field(name).map(str::to_owned);
    let path = |name: &str| call.field(name).map(|path| call.short_path(path).to_owned());
    let subject = match call.name {
        BASH | "Monitor" => field("command"),
        "Read" => path("file_path").map(|path| path + &read_range(call)),
        "Write" | "Edit" => path("file_path"),
        "NotebookEdit" => path("notebook_path"),
        "Glob" | "Grep" => field("pattern").map(|pattern| pattern + &search_place(call)),
        "WebFetch" => field("url"),
        "WebSearch" | TOOL_SEARCH => field("query"),
        AGENT | "Task" => {
            let kind = call.field("subagent_type");
            let what = field("description").or_else(|| field("prompt"));
            what.map(|what| kind.map_or_else(|| what.clone(), |kind| format!("{kind}: {what}")))
        }
        SKILL => field("skill"),
        "TaskOutput" | "TaskStop" => field("task_id").or_else(|| field("shell_id")),
        _ => compact_input(call),
    };
    (call.name.to_owned(), subject)
}

/// Where a search looks, unless it is everywhere.
fn search_place(call: &Call<'_>) -> String {
    let place = call.field("path").map(|path| call.short_path(path)).or_else(|| call.field("glob"));
    place.map_or_else(String::new, |place| format!(" in {place}"))
}

/// The lines that are read, unless it is all of them.
fn read_range(call: &Call<'_>) -> String {
    let number = |name: &str| call.input.get(name).and_then(serde_json::Value::as_u64);
    match (number("offset"), number("limit")) {
        (Some(offset), Some(limit)) => format!(":{offset}-{}", offset + limit.saturating_sub(1)),
        (Some(offset), None) => format!(":{offset}-"),
        (None, Some(limit)) => format!(":1-{limit}"),
        (None, None) => String::new(),
    }
}

/// The short values of an input.
fn compact_input(call: &Call<'_>) -> Option<String> {
    let fields = call.input.as_object()?;
    let value = |value: &serde_json::Value| match value {
        serde_json::Value::String(text) => Some(first_line(text)),
        serde_json::Value::Number(number) => Some(number.to_string()),
        serde_json::Value::Bool(flag) => Some(flag.to_string()),
        _ => None,
    };
    let values: Vec<String> =
        fields.iter().filter_map(|(name, field)| Some(format!("{name}: {}", value(field)?))).collect();
    (!values.is_empty()).then(|| values.join(", "))
}

/// The first line of a text, with a sign if there are more.
fn first_line(text: &str) -> String {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let line = lines.next().unwrap_or_default().to_owned();
    if lines.next().is_some() { line + " …" } else { line }
}
