//! A session as one file: Markdown, the frames as JSON lines, or HTML without scripts.

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::Value as Json;

use super::Api;
use super::forms::{Parameters, PathParts};
use crate::error::ApiResult;
use crate::session_actor::Command;
use crate::store::events::EventRow;
use crate::store::sessions::SessionRow;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExportParameters {
    #[serde(default)]
    format: ExportFormat,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ExportFormat {
    #[default]
    Md,
    Jsonl,
    Html,
}

/// Events that are read at once.
const PAGE: i64 = 500;

pub(crate) async fn export(
    State(api): State<Api>,
    PathParts(id): PathParts<String>,
    Parameters(ExportParameters { format }): Parameters<ExportParameters>,
) -> ApiResult<Response> {
    // A session of the terminal may not have been read yet.
    let actor = api.actors.get(&api.host, &id).await?;
    let session = actor.call(|reply| Command::Read { reply }).await?;
    let mut events = Vec::new();
    loop {
        let after = events.last().map(|event: &EventRow| event.seq);
        let page = api.host.store.events(&id, after.or(Some(0)), None, PAGE).await?;
        if page.is_empty() {
            break;
        }
        events.extend(page);
    }
    let (name, content_type, text) = match format {
        ExportFormat::Jsonl => {
            let lines = events.iter().map(|event| format!("{}\n", event.body)).collect::<String>();
            ("jsonl", "application/x-ndjson", lines)
        }
        ExportFormat::Md => {
            ("md", "text/markdown; charset=utf-8", to_markdown(&session, &to_entries(&events)))
        }
        ExportFormat::Html => ("html", "text/html; charset=utf-8", to_html(&session, &to_entries(&events))),
    };
    let headers = [
        (header::CONTENT_TYPE, content_type.to_owned()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename=\"session-{id}.{name}\"")),
        (
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; style-src 'unsafe-inline'; sandbox".to_owned(),
        ),
    ];
    Ok((headers, text).into_response())
}

/// What is said or done, for a reader.
#[derive(Debug, PartialEq)]
struct Entry {
    heading: String,
    text: String,
    /// Shown as it is, not as prose.
    is_verbatim: bool,
}

fn to_entries(events: &[EventRow]) -> Vec<Entry> {
    let mut entries = Vec::new();
    for event in events {
        let Ok(frame) = serde_json::from_str::<Json>(&event.body) else { continue };
        let content = &frame["message"]["content"];
        match frame["type"].as_str().unwrap_or_default() {
            kind @ ("user" | "assistant") => {
                let speaker = if kind == "user" { "You" } else { "Assistant" };
                if let Some(text) = content.as_str() {
                    entries.push(Entry { heading: speaker.into(), text: text.into(), is_verbatim: false });
                }
                let blocks = content.as_array().into_iter().flatten();
                entries.extend(blocks.filter_map(|block| block_entry(speaker, block)));
            }
            "host" if frame["subtype"] == "answered" => {
                let by = frame["by"]["name"].as_str().unwrap_or_default();
                let text = format!("{} by {by}", frame["decision"].as_str().unwrap_or_default());
                entries.push(Entry { heading: "Answer".into(), text, is_verbatim: false });
            }
            _ => {}
        }
    }
    entries
}

fn block_entry(speaker: &str, block: &Json) -> Option<Entry> {
    let entry = |heading: String, text: String, is_verbatim| Some(Entry { heading, text, is_verbatim });
    match block["type"].as_str()? {
        "text" => entry(speaker.into(), block["text"].as_str()?.into(), false),
        "tool_use" => {
            let input = serde_json::to_string_pretty(&block["input"]).unwrap_or_default();
            entry(format!("Tool: {}", block["name"].as_str().unwrap_or_default()), input, true)
        }
        "tool_result" => {
            let text = match &block["content"] {
                Json::String(text) => text.clone(),
                Json::Array(parts) => {
                    parts.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n")
                }
                _ => String::new(),
            };
            entry("Result".into(), text, true)
        }
        "image" | "document" => entry(speaker.into(), "[attachment]".into(), false),
        _ => None,
    }
}

fn to_markdown(session: &SessionRow, entries: &[Entry]) -> String {
    let mut text = format!("# {}\n\nFolder: `{}`\n", session.title, session.folder);
    for entry in entries {
        let body = if entry.is_verbatim { fence(&entry.text) } else { entry.text.clone() };
        text.push_str(&format!("\n## {}\n\n{body}\n", entry.heading));
    }
    text
}

/// A code block whose fence does not occur in the text.
fn fence(text: &str) -> String {
    let longest = text.split(|letter| letter != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}\n{}\n{fence}", text.trim_end())
}

fn to_html(session: &SessionRow, entries: &[Entry]) -> String {
    let title = escape(&session.title);
    let mut text = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>{title}</title><style>body{{font:16px/1.5 system-ui;\
         max-width:50rem;margin:2rem auto;padding:0 1rem}}pre,p{{white-space:pre-wrap;overflow-wrap:anywhere}}pre{{background:#8881;\
         padding:.5rem}}</style><h1>{title}</h1><p>Folder: <code>{}</code></p>\n",
        escape(&session.folder)
    );
    for entry in entries {
        let tag = if entry.is_verbatim { "pre" } else { "p" };
        text.push_str(&format!(
            "<h2>{}</h2><{tag}>{}</{tag}>\n",
            escape(&entry.heading),
            escape(&entry.text)
        ));
    }
    text.push_str("</html>\n");
    text
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(frame: &Json) -> EventRow {
        EventRow { seq: 1, at: 0, body: frame.to_string() }
    }

    #[test]
    fn exports_hold_text_calls_and_results_without_markup() {
        let events = [
            event(&json!({"type": "user", "message": {"content": "hi <script>"}})),
            event(&json!({"type": "assistant", "message": {"content": [
                {"type": "text", "text": "Hello."}, {"type": "tool_use", "name": "Bash", "input": {"command": "ls"}}]}})),
            event(
                &json!({"type": "user", "message": {"content": [{"type": "tool_result", "content": "```"}]}}),
            ),
        ];
        let entries = to_entries(&events);
        let headings: Vec<_> = entries.iter().map(|entry| entry.heading.as_str()).collect();
        assert_eq!(headings, ["You", "Assistant", "Tool: Bash", "Result"]);
        let session = SessionRow::new("/w".into(), "<b>".into(), "web");
        assert!(!to_html(&session, &entries).contains("<script>"));
        assert!(to_markdown(&session, &entries).contains("````\n```\n````"));
    }
}
