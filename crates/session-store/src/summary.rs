//! Summary of a stored session for lists, read from the head and tail of its transcript. Pure, except for
//! [`SessionSummary::read`].
//!
//! Fields and their precedence are those of the official SDKs, so that all lists agree: the user's title, a generated
//! title, the last prompt, a summary, the first prompt. Fields are searched as text, because lines are cut at the ends
//! of a long file.

use std::io;
use std::path::Path;
use std::time::SystemTime;

use serde::Serialize;
use serde_json::Value;
use whimbrel_os::files::{self, HeadTail};
use whimbrel_wire::codec;

use crate::entry::replace_lone_surrogates;

const HEAD_TAIL_BYTES: usize = 64 * 1024;
const MAX_PROMPT_CHARS: usize = 200;

/// Summary of a stored session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionSummary {
    /// Id of the session.
    pub session_id: String,
    /// The best text to identify the session by.
    pub summary: String,
    /// Time of the last change, in milliseconds since 1970.
    pub last_modified: u64,
    /// Size of the transcript in bytes, if it is a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_size: Option<u64>,
    /// Title set by the user, else a generated one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom_title: Option<String>,
    /// First prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_prompt: Option<String>,
    /// Last git branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub git_branch: Option<String>,
    /// Working directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Tag set by the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// Start time, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_at: Option<u64>,
}

impl SessionSummary {
    /// Reads the summary of a transcript. `None` for a subagent's, or if there is nothing to identify it by.
    pub fn read(session: &str, path: &Path) -> io::Result<Option<Self>> {
        let HeadTail { head, tail, stamp } = files::read_head_tail(path, HEAD_TAIL_BYTES)?;
        let found = from_head_tail(&String::from_utf8_lossy(&head), &String::from_utf8_lossy(&tail));
        Ok(found.map(|summary| Self {
            session_id: session.to_owned(),
            last_modified: unix_millis(stamp.modified),
            file_size: Some(stamp.size),
            ..summary
        }))
    }
}

pub(super) fn unix_millis(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

fn from_head_tail(head: &str, tail: &str) -> Option<SessionSummary> {
    if has_flag(head.lines().next()?, "isSidechain") {
        return None;
    }
    let newest = |key| last_value(tail, key).or_else(|| last_value(head, key));
    let custom_title = newest("customTitle").or_else(|| newest("aiTitle"));
    let first_prompt = first_prompt(head);
    let summary = custom_title
        .clone()
        .or_else(|| last_value(tail, "lastPrompt"))
        .or_else(|| last_value(tail, "summary"))
        .or_else(|| first_prompt.clone())?;
    let tag_line = tail.lines().rev().find(|line| line.starts_with("{\"type\":\"tag\""));
    Some(SessionSummary {
        summary,
        custom_title,
        first_prompt,
        git_branch: last_value(tail, "gitBranch").or_else(|| first_value(head, "gitBranch")),
        cwd: first_value(head, "cwd"),
        tag: tag_line.and_then(|line| last_value(line, "tag")),
        created_at: first_value(head, "timestamp")
            .and_then(|text| text.parse::<jiff::Timestamp>().ok())
            .and_then(|time| u64::try_from(time.as_millisecond()).ok()),
        ..SessionSummary::default()
    })
}

/// Checks for a field that is `true`.
fn has_flag(line: &str, key: &str) -> bool {
    line.contains(&format!("\"{key}\":true")) || line.contains(&format!("\"{key}\": true"))
}

/// The first value of a field, unless it is empty.
fn first_value(text: &str, key: &str) -> Option<String> {
    let found = find_values(text, key);
    found.iter().find_map(|values| parse_string(values.first()?)).filter(|value| !value.is_empty())
}

/// The last value of a field, unless it is empty.
fn last_value(text: &str, key: &str) -> Option<String> {
    let found = find_values(text, key);
    let last = found.iter().rev().find_map(|values| values.iter().rev().find_map(|rest| parse_string(rest)));
    last.filter(|value| !value.is_empty())
}

/// What follows the opening quote of each value of a field: of those without a space before it, and of those with one.
/// A list reads many megabytes, so the search compares many bytes at once.
fn find_values<'a>(text: &'a str, key: &str) -> [Vec<&'a str>; 2] {
    let name = format!("\"{key}\":");
    let (mut plain, mut spaced) = (Vec::new(), Vec::new());
    for at in memchr::memmem::find_iter(text.as_bytes(), &name) {
        let rest = &text[at + name.len()..];
        plain.extend(rest.strip_prefix('"'));
        spaced.extend(rest.strip_prefix(" \""));
    }
    [plain, spaced]
}

/// Parses a JSON string after its opening quote; `None` if it is cut off.
fn parse_string(text: &str) -> Option<String> {
    let text = text.lines().next()?;
    let mut escaped = false;
    let end = text.bytes().position(|byte| {
        let is_end = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        is_end
    })?;
    let raw = &text[..end];
    let quoted = format!("\"{raw}\"");
    let replaced = || serde_json::from_str(&codec::replace_lone_surrogates(&quoted)?).ok();
    Some(serde_json::from_str(&quoted).ok().or_else(replaced).unwrap_or_else(|| raw.to_owned()))
}

/// The first prompt of the user; a command only if there is no other prompt.
fn first_prompt(head: &str) -> Option<String> {
    let mut command = None;
    for line in head.lines() {
        if !line.contains("\"user\"")
            || line.contains("\"tool_result\"")
            || has_flag(line, "isMeta")
            || has_flag(line, "isCompactSummary")
        {
            continue;
        }
        let Ok(entry) = serde_json::from_slice::<Value>(&replace_lone_surrogates(line.as_bytes())) else {
            continue;
        };
        if entry["type"] != "user" {
            continue;
        }
        // A file of an editor may contain the tags of a command.
        let texts = content_texts(&entry["message"]["content"]);
        for text in texts.into_iter().filter(|text| !is_synthetic_prompt(text)) {
            if let Some(name) = command_name(text) {
                command.get_or_insert_with(|| name.to_owned());
            } else if let Some(prompt) = prompt_excerpt(text) {
                return Some(prompt);
            }
        }
    }
    command.filter(|name| !name.is_empty())
}

/// Text of a message to identify a session by: its beginning on one line, or the name of the command in it.
pub(super) fn prompt_excerpt(text: &str) -> Option<String> {
    let text = text.replace('\n', " ");
    let text = text.trim();
    let excerpt = command_name(text).unwrap_or(text).trim();
    (!excerpt.is_empty() && !is_synthetic_prompt(text)).then(|| truncate_prompt(excerpt))
}

pub(super) fn content_texts(content: &Value) -> Vec<&str> {
    match content {
        Value::String(text) => vec![text],
        Value::Array(blocks) => blocks
            .iter()
            .filter(|block| block["type"] == "text")
            .filter_map(|block| block["text"].as_str())
            .collect(),
        _ => Vec::new(),
    }
}

pub(super) fn command_name(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("<command-name>")?;
    rest.split_once("</command-name>").map(|(name, _)| name)
}

/// Recognises text with the role of the user that the engine or an editor wrote.
pub(super) fn is_synthetic_prompt(text: &str) -> bool {
    let enclosed = |tag: &str| text.starts_with(&format!("<{tag}>")) && text.ends_with(&format!("</{tag}>"));
    ["<local-command-stdout>", "<session-start-hook>", "<tick>", "<goal>", "<context ref=\""]
        .iter()
        .any(|start| text.starts_with(start))
        || text.strip_prefix("[Request interrupted by user").is_some_and(|rest| rest.contains(']'))
        || enclosed("ide_opened_file")
        || enclosed("ide_selection")
}

/// The command that a prompt invoked, as it was typed.
pub(super) fn typed_command(text: &str) -> Option<String> {
    let name = command_name(text)?;
    let arguments =
        text.split_once("<command-args>").and_then(|(_, rest)| rest.split_once("</command-args>"));
    let arguments = arguments.map_or("", |(arguments, _)| arguments);
    Some(format!("{name} {arguments}").trim_end().to_owned())
}

pub(super) fn truncate_prompt(text: &str) -> String {
    match text.char_indices().nth(MAX_PROMPT_CHARS) {
        Some((end, _)) => format!("{}…", text[..end].trim_end()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROMPT: &str = r#"{"type":"user","message":{"role":"user","content":"First \"thing\""},"cwd":"/w","gitBranch":"main","timestamp":"2026-11-16T03:00:00.123Z"}"#;

    fn summary_text(lines: &[&str]) -> Option<String> {
        let text = lines.join("\n");
        from_head_tail(&text, &text).map(|summary| summary.summary)
    }

    #[test]
    fn summary_text_follows_precedence() {
        let (custom, ai) = (r#"{"customTitle":"Mine"}"#, r#"{"type":"ai-title","aiTitle": "Its"}"#);
        let (prompt, summary) = (r#"{"lastPrompt":"And?"}"#, r#"{"summary":"S"}"#);
        let rows: [(&str, &[&str], Option<&str>); 14] = [
            ("a title set by the user", &[PROMPT, custom, ai, prompt, summary], Some("Mine")),
            ("a title from a model", &[PROMPT, ai, prompt, summary], Some("Its")),
            ("the last prompt", &[PROMPT, prompt, summary], Some("And?")),
            ("a summary", &[PROMPT, summary], Some("S")),
            ("the first prompt", &[PROMPT], Some("First \"thing\"")),
            ("the later title", &[r#"{"customTitle":"Old"}"#, PROMPT, custom], Some("Mine")),
            ("a title that was taken away", &[PROMPT, r#"{"customTitle":""}"#], Some("First \"thing\"")),
            ("nothing", &[r#"{"type":"queue-operation"}"#], None),
            ("an empty file", &[], None),
            ("a subagent", &[r#"{"isSidechain":true,"customTitle":"x"}"#, PROMPT], None),
            ("a line that is cut", &[r#"{"customTitle":"Cut"#, PROMPT], Some("First \"thing\"")),
            (
                "not what a program said",
                &[
                    r#"{"type":"user","isMeta":true,"message":{"content":"meta"}}"#,
                    r#"{"type":"user","message":{"content":[{"type":"tool_result","content":"r"}]}}"#,
                    r#"{"type":"user","message":{"content":"[Request interrupted by user]"}}"#,
                    r#"{"type":"user","message":{"content":"<ide_selection>x\ny</ide_selection> "}}"#,
                    r#"{"type":"user","message":{"content":"<context ref=\"file:///a\">\n<command-name>/x</command-name>\n</context>"}}"#,
                    "not JSON",
                    r#"{"type":"user","message":{"content":[{"type":"text","text":" two\nlines "}]}}"#,
                ],
                Some("two lines"),
            ),
            (
                "a prompt rather than a command",
                &[r#"{"type":"user","message":{"content":"<command-name>/compact</command-name>"}}"#, PROMPT],
                Some("First \"thing\""),
            ),
            (
                "a command rather than nothing",
                &[r#"{"type":"user","message":{"content":"<command-name>/compact</command-name>"}}"#],
                Some("/compact"),
            ),
        ];
        for (name, lines, expected) in rows {
            assert_eq!(summary_text(lines).as_deref(), expected, "{name}");
        }
    }

    #[test]
    fn other_fields_are_found() {
        let text = [
            PROMPT,
            r#"{"gitBranch":"side"}"#,
            r#"{"type":"tag","tag":"old"}"#,
            r#"{"type":"tag","tag":"new"}"#,
        ]
        .join("\n");
        let found = from_head_tail(&text, &text).unwrap();
        assert_eq!(
            (found.cwd.as_deref(), found.git_branch.as_deref(), found.tag.as_deref(), found.created_at),
            (Some("/w"), Some("side"), Some("new"), Some(1_794_798_000_123))
        );
        let cleared = format!("{text}\n{{\"type\":\"tag\",\"tag\":\"\"}}");
        assert_eq!(from_head_tail(&cleared, &cleared).unwrap().tag, None);
        let long = format!("{{\"type\":\"user\",\"message\":{{\"content\":\"{}\"}}}}", "é".repeat(300));
        assert_eq!(summary_text(&[&long]).unwrap().chars().count(), MAX_PROMPT_CHARS + 1);
    }
}
