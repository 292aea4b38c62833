//! Text search in the messages of stored sessions.

use std::collections::HashSet;
use std::io::{self, Cursor};
use std::path::Path;

use grep_matcher::Matcher;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use serde::Serialize;
use serde_json::Value;
use whimbrel_os::files;
use whimbrel_wire::RawJson;

use crate::entry::{CONVERSATION_REWOUND, IdKey};
use crate::load::rewind;
use crate::resumed_session::join_lines;
use crate::transcript_reader::{self, Message};

/// Characters shown on each side of a match.
const EXCERPT_CONTEXT: usize = 50;

/// A case-insensitive search for a text.
pub struct SearchQuery {
    matcher: RegexMatcher,
    /// The text has the same form in raw JSON, so lines can be filtered before parsing.
    can_match_raw: bool,
}

/// A message that matches a search.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SearchHit {
    /// Uuid of the message.
    pub uuid: String,
    /// `user` or `assistant`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The match with some text around it.
    pub text: String,
}

impl SearchQuery {
    /// Creates a query; `None` for blank text.
    pub fn new(words: &str) -> Option<Self> {
        let words = words.trim();
        if words.is_empty() {
            return None;
        }
        let matcher =
            RegexMatcherBuilder::new().case_insensitive(true).fixed_strings(true).build(words).ok()?;
        let is_plain = words
            .bytes()
            .all(|byte| (byte.is_ascii_graphic() || byte == b' ') && !b"\"\\/<>&".contains(&byte));
        Some(Self { matcher, can_match_raw: is_plain })
    }

    /// The first matching messages of a transcript, at most `limit`; without those that rewinds dropped.
    pub fn search_file(&self, path: &Path, limit: usize) -> io::Result<Vec<SearchHit>> {
        let hits = self.scan_file(path, limit, &HashSet::new())?;
        // Few sessions have rewinds, and only those with hits matter.
        if hits.is_empty() || !transcript_reader::contains(path, CONVERSATION_REWOUND)? {
            return Ok(hits);
        }
        let (file, _) = files::open(path)?;
        self.scan_file(path, limit, &rewind::dropped_messages(file)?)
    }

    fn scan_file(&self, path: &Path, limit: usize, dropped: &HashSet<IdKey>) -> io::Result<Vec<SearchHit>> {
        let mut hits = Vec::new();
        let may_match = |line: &[u8]| !self.can_match_raw || self.matcher.is_match(line).unwrap_or(true);
        transcript_reader::scan_messages(path, may_match, |message| {
            hits.extend(self.match_message(message, dropped));
            hits.len() < limit
        })?;
        Ok(hits)
    }

    /// Like [`Self::search_file`], for lines in memory.
    pub(crate) fn search_lines(&self, lines: &[RawJson], limit: usize) -> Vec<SearchHit> {
        let dropped = match lines.iter().any(|line| line.as_str().contains(CONVERSATION_REWOUND)) {
            // Reading from memory does not fail.
            true => rewind::dropped_messages(Cursor::new(join_lines(lines))).unwrap_or_default(),
            false => HashSet::new(),
        };
        let messages = lines.iter().filter_map(transcript_reader::message_from_line);
        messages.filter_map(|message| self.match_message(message, &dropped)).take(limit).collect()
    }

    fn match_message(&self, message: Message, dropped: &HashSet<IdKey>) -> Option<SearchHit> {
        let text =
            content_texts(&message.message["content"]).into_iter().find_map(|text| self.excerpt(&text))?;
        if dropped.contains(&IdKey::new(&message.uuid)) {
            return None;
        }
        Some(SearchHit { uuid: message.uuid, kind: message.kind, text })
    }

    /// The match with some text around it, on one line.
    fn excerpt(&self, text: &str) -> Option<String> {
        let found = self.matcher.find(text.as_bytes()).ok()??;
        let (before, rest) = text.split_at_checked(found.start())?;
        let (words, after) = rest.split_at_checked(found.end() - found.start())?;
        let start = before.char_indices().rev().nth(EXCERPT_CONTEXT - 1).map(|(at, _)| at);
        let end = after.char_indices().nth(EXCERPT_CONTEXT).map(|(at, _)| at);
        let dots = |cut: Option<usize>| if cut.is_some_and(|at| at > 0) { "…" } else { "" };
        let shown = [
            dots(start),
            &before[start.unwrap_or(0)..],
            words,
            &after[..end.unwrap_or(after.len())],
            dots(end),
        ];
        Some(shown.concat().split_whitespace().collect::<Vec<_>>().join(" "))
    }
}

/// All texts in a message's content: text blocks, inputs of calls and their results.
fn content_texts(content: &Value) -> Vec<String> {
    match content {
        Value::String(text) => vec![text.clone()],
        Value::Array(blocks) => blocks
            .iter()
            .flat_map(|block| match block["type"].as_str() {
                Some("text") => content_texts(&block["text"]),
                Some("tool_use") => string_values(&block["input"]),
                Some("tool_result") => content_texts(&block["content"]),
                _ => Vec::new(),
            })
            .collect(),
        _ => Vec::new(),
    }
}

fn string_values(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(items) => items.iter().flat_map(string_values).collect(),
        Value::Object(fields) => fields.values().flat_map(string_values).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn text_is_found_in_messages_calls_and_results() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.jsonl");
        let lines = [
            json!({"type": "user", "uuid": "1", "message": {"content": "Count the CURLEWS, please"}}),
            json!({"type": "assistant", "uuid": "2", "message": {"content": [{"type": "tool_use", "input": {"command": "grep -c curlews \"a b\""}}]}}),
            json!({"type": "user", "uuid": "3", "message": {"content": [{"type": "tool_result", "content": [{"type": "text", "text": "2 curlews"}]}]}}),
            json!({"type": "system", "uuid": "4", "content": "curlews"}),
            json!({"type": "user", "uuid": "5", "isMeta": true, "message": {"content": "curlews"}}),
            json!({"type": "assistant", "uuid": "6", "message": {"content": [{"type": "text", "text": "Größe\n und  so"}]}}),
        ];
        std::fs::write(&path, lines.map(|line| line.to_string()).join("\n") + "\n{\"torn curlews").unwrap();
        let found = |words: &str| {
            let hits = SearchQuery::new(words).unwrap().search_file(&path, 9).unwrap();
            hits.into_iter().map(|hit| hit.uuid).collect::<Vec<_>>()
        };
        assert_eq!(found("curlews"), ["1", "2", "3"]);
        assert_eq!(found("\"a B\""), ["2"]);
        assert_eq!(found("GRÖSSE"), [""; 0]);
        assert_eq!(found("größe"), ["6"]);
        assert_eq!(found("[a-z]+"), [""; 0]);
        let hits = SearchQuery::new("größe").unwrap().search_file(&path, 1).unwrap();
        assert_eq!(hits[0].text, "Größe und so");
        assert_eq!(SearchQuery::new("curlews").unwrap().search_file(&path, 2).unwrap().len(), 2);
        assert!(SearchQuery::new(" ").is_none());
    }

    #[test]
    fn messages_dropped_by_a_rewind_are_not_found() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.jsonl");
        let prompt = |uuid: &str, parent: Option<&str>| json!({"type": "user", "uuid": uuid, "parentUuid": parent, "message": {"content": "curlews"}});
        let rewind = |uuid: &str, to: &str, left: &str| json!({"type": "system", "subtype": "conversation_rewound", "uuid": uuid, "parentUuid": to, "leftUuid": left});
        let mut lines =
            vec![prompt("1", None), prompt("2", Some("1")), rewind("m", "1", "2"), prompt("3", Some("m"))];
        let found = |lines: &[Value], limit: usize| {
            std::fs::write(&path, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
            let query = SearchQuery::new("curlews").unwrap();
            let raw: Vec<RawJson> = lines.iter().map(|line| RawJson::from_value(line).unwrap()).collect();
            let hits = query.search_file(&path, limit).unwrap();
            assert_eq!(query.search_lines(&raw, limit), hits);
            hits.into_iter().map(|hit| hit.uuid).collect::<Vec<_>>()
        };
        assert_eq!(found(&lines, 9), ["1", "3"]);
        assert_eq!(found(&lines, 2), ["1", "3"], "the limit counts what is left");
        lines.push(rewind("n", "2", "3"));
        assert_eq!(found(&lines, 9), ["1", "2"], "undone");
    }

    #[test]
    fn excerpt_is_cut_at_character_boundaries() {
        let text = format!("{}needle{}", "é".repeat(200), "ü".repeat(200));
        let shown = SearchQuery::new("NEEDLE").unwrap().excerpt(&text).unwrap();
        assert_eq!(shown, format!("…{}needle{}…", "é".repeat(50), "ü".repeat(50)));
    }
}
