//! Reads the messages of a transcript for display. The conversation is the one that would be resumed, with the same
//! repairs; texts hidden from the user are left out.

use std::fs::File;
use std::io::{self, BufReader, Cursor};
use std::path::Path;

use memchr::memmem;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use whimbrel_os::files;
use whimbrel_wire::RawJson;
use whimbrel_wire::message::CommandExit;

use crate::entry::{TranscriptEntry, replace_lone_surrogates};
use crate::line_reader::{LineReader, ScannedLine};
use crate::load;
use crate::load::index::{RepairCounts, Span};
use crate::resumed_session::join_lines;

const READ_BUFFER_SIZE: usize = 64 * 1024;

/// A message of a conversation, in the format of the official SDKs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Message {
    /// `user` or `assistant`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Uuid of the message.
    pub uuid: String,
    /// Id of the session.
    pub session_id: String,
    /// The message, in the format of the Messages API.
    pub message: Value,
    /// Always null in the main conversation.
    pub parent_tool_use_id: Option<String>,
    /// Time of the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<String>,
    /// The tool's own result, structured, if the message holds the result of a call. Not part of the serialized format.
    #[serde(skip)]
    pub tool_use_result: Option<Value>,
    /// How the command of a failed call ended. Not part of the serialized format.
    #[serde(skip)]
    pub command_exit: Option<CommandExit>,
}

/// The fields needed here. Values of the wrong type count as absent.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct EntryFields {
    #[serde(rename = "type")]
    kind: Value,
    uuid: Value,
    session_id: Value,
    is_sidechain: Value,
    is_meta: Value,
    team_name: Value,
    timestamp: Value,
    message: Value,
    tool_use_result: Value,
    command_exit: Value,
}

/// An open transcript with the positions of its visible messages.
pub struct TranscriptReader {
    file: File,
    /// Positions of the messages, in order.
    spans: Vec<Span>,
    repairs: RepairCounts,
}

impl TranscriptReader {
    pub fn open(path: &Path) -> io::Result<Self> {
        let (file, _) = files::open(path)?;
        let (order, repairs) = load::conversation_spans(&file)?;
        Ok(Self { file, spans: order, repairs })
    }

    pub fn repairs(&self) -> RepairCounts {
        self.repairs
    }

    pub fn messages(&self) -> impl Iterator<Item = io::Result<Message>> {
        self.spans.iter().filter_map(|span| {
            let line = files::read_range(&self.file, span.offset, span.length as usize);
            line.map(|line| parse_message(&line)).transpose()
        })
    }
}

/// The messages of a conversation given as lines, in order.
pub(crate) fn messages_from_lines(lines: &[RawJson]) -> Vec<Message> {
    let text = join_lines(lines);
    // Reading from memory does not fail.
    let (order, _) = load::conversation_spans(Cursor::new(&text)).unwrap_or_default();
    let line = |span: &Span| text.get(usize::try_from(span.offset).ok()?..)?.get(..span.length as usize);
    order.iter().filter_map(|span| parse_message(line(span)?)).collect()
}

/// The messages of a subagent's transcript, in the order of its lines.
pub(crate) fn subagent_messages_from_lines(lines: &[RawJson]) -> Vec<Message> {
    let parse = |line: &RawJson| parse_visible_message(parse_fields(line.as_str().as_bytes())?);
    lines.iter().filter_map(parse).collect()
}

/// Parses a line; `None` if it is not a visible message.
pub(crate) fn message_from_line(line: &RawJson) -> Option<Message> {
    parse_message(line.as_str().as_bytes())
}

/// Calls `visit` for each message of a transcript in file order until it returns false. Only lines that `may_match`
/// accepts are parsed.
pub(crate) fn scan_messages(
    path: &Path,
    may_match: impl Fn(&[u8]) -> bool,
    mut visit: impl FnMut(Message) -> bool,
) -> io::Result<()> {
    let (file, _) = files::open(path)?;
    let mut lines = LineReader::new(BufReader::with_capacity(READ_BUFFER_SIZE, file));
    while let Some(step) = lines.read_line()? {
        let (ScannedLine::Complete(_, line) | ScannedLine::Unterminated(_, line)) = step else { continue };
        if may_match(line)
            && let Some(message) = parse_message(line)
            && !visit(message)
        {
            break;
        }
    }
    Ok(())
}

/// Checks whether a transcript contains a text somewhere.
pub(crate) fn contains(path: &Path, text: &str) -> io::Result<bool> {
    let (file, _) = files::open(path)?;
    let mut lines = LineReader::new(BufReader::with_capacity(READ_BUFFER_SIZE, file));
    while let Some(step) = lines.read_line()? {
        if let ScannedLine::Complete(_, line) | ScannedLine::Unterminated(_, line) = step
            && memmem::find(line, text.as_bytes()).is_some()
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Parses a line, or the complete entry at the end of a broken one.
fn parse_fields(bytes: &[u8]) -> Option<EntryFields> {
    let parse = |bytes: &[u8]| serde_json::from_slice(&replace_lone_surrogates(bytes)).ok();
    let behind =
        || TranscriptEntry::parse(bytes).filter(|(_, at)| *at > 0).and_then(|(_, at)| parse(&bytes[at..]));
    parse(bytes).or_else(behind)
}

fn non_empty_text(value: Value) -> Option<String> {
    match value {
        Value::String(text) if !text.is_empty() => Some(text),
        _ => None,
    }
}

/// Interprets a value as a boolean, as JavaScript does.
fn is_truthy(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::Bool(true) | Value::Array(_) | Value::Object(_) => true,
    }
}

/// Parses a line; `None` if it is not a visible message.
fn parse_message(bytes: &[u8]) -> Option<Message> {
    let line = parse_fields(bytes)?;
    let is_main = ![&line.is_sidechain, &line.team_name].into_iter().any(is_truthy);
    parse_visible_message(line).filter(|_| is_main)
}

/// Interprets the fields of a line, whichever agent wrote it; `None` if it is not a visible message.
fn parse_visible_message(line: EntryFields) -> Option<Message> {
    let kind = non_empty_text(line.kind).filter(|kind| matches!(kind.as_str(), "user" | "assistant"))?;
    if is_truthy(&line.is_meta) {
        return None;
    }
    Some(Message {
        kind,
        uuid: non_empty_text(line.uuid)?,
        session_id: non_empty_text(line.session_id).unwrap_or_default(),
        message: line.message,
        parent_tool_use_id: None,
        timestamp: non_empty_text(line.timestamp),
        tool_use_result: Some(line.tool_use_result).filter(|result| !result.is_null()),
        command_exit: serde_json::from_value(line.command_exit).ok(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn message_uuids(lines: &[Value]) -> Vec<String> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.jsonl");
        let text: String = lines
            .iter()
            .map(|line| line.as_str().map_or_else(|| line.to_string(), str::to_owned) + "\n")
            .collect();
        std::fs::write(&path, text.trim_end()).unwrap();
        let transcript = TranscriptReader::open(&path).unwrap();
        transcript.messages().map(|message| message.unwrap().uuid).collect()
    }

    fn line(kind: &str, uuid: &str, parent: Option<&str>) -> Value {
        json!({"type": kind, "uuid": uuid, "parentUuid": parent, "message": {"role": kind, "content": "x"}})
    }

    fn block(uuid: &str, parent: &str, reply: &str) -> Value {
        json!({"type": "assistant", "uuid": uuid, "parentUuid": parent, "message": {"id": reply, "content": [{"type": "tool_use", "id": uuid, "name": "x", "input": {}}]}})
    }

    fn result(uuid: &str, parent: &str) -> Value {
        json!({"type": "user", "uuid": uuid, "parentUuid": parent, "message": {"content": [{"type": "tool_result", "tool_use_id": parent}]}})
    }

    #[test]
    fn structured_result_is_kept_and_not_serialized() {
        let mut entry = result("r", "call");
        entry["toolUseResult"] = json!({"stdout": "x"});
        let message = parse_message(entry.to_string().as_bytes()).unwrap();
        assert_eq!(message.tool_use_result, Some(json!({"stdout": "x"})));
        assert!(json!(message).get("toolUseResult").is_none());
        assert_eq!(parse_message(result("r", "call").to_string().as_bytes()).unwrap().tool_use_result, None);
    }

    #[test]
    fn last_branch_is_shown() {
        let lines = [
            line("user", "a", None),
            line("assistant", "b", Some("a")),
            line("user", "old", Some("b")),
            line("user", "new", Some("b")),
            line("attachment", "n", Some("new")),
            line("assistant", "end", Some("n")),
            json!({"type": "custom-title", "customTitle": "x"}),
        ];
        assert_eq!(message_uuids(&lines), ["a", "b", "new", "end"]);
    }

    #[test]
    fn garbage_cycles_and_missing_parents_are_tolerated() {
        let lines = [
            json!("not JSON"),
            json!("\u{0}\u{0}\u{0}"),
            line("user", "a", Some("gone")),
            json!({"type": "user", "uuid": 7, "isMeta": "yes"}),
            line("assistant", "b", Some("a")),
            json!({"type": "user", "uuid": "meta", "parentUuid": "b", "isMeta": true, "message": {}}),
            line("user", "c", Some("meta")),
            json!("{\"type\":\"assistant\",\"uuid\":\"torn"),
        ];
        assert_eq!(message_uuids(&lines), ["a", "b", "c"]);
        assert_eq!(
            message_uuids(&[line("user", "x", Some("y")), line("assistant", "y", Some("x"))]),
            ["x", "y"]
        );
        let circle =
            [line("user", "x", Some("y")), line("user", "y", Some("x")), line("user", "z", Some("y"))];
        assert_eq!(message_uuids(&circle), ["x", "y", "z"]);
        assert_eq!(message_uuids(&[]), [""; 0]);
    }

    #[test]
    fn parallel_calls_and_results_are_reordered() {
        let lines = [
            line("user", "a", None),
            block("call-1", "a", "r"),
            block("call-2", "call-1", "r"),
            result("result-1", "call-1"),
            result("result-2", "call-2"),
            block("end", "result-1", "s"),
        ];
        assert_eq!(message_uuids(&lines), ["a", "call-1", "call-2", "result-2", "result-1", "end"]);
    }

    #[test]
    fn shown_messages_are_those_that_would_be_resumed() {
        let mut side = line("assistant", "side", Some("b"));
        side["isSidechain"] = true.into();
        let without_newlines = format!("{{\"type\":\"assi{}", line("assistant", "b", Some("a")));
        let cut = r#"{"type":"user","uuid":"c","parentUuid":"b","message":{"content":"cut \ud83d"}}"#;
        let rows: [(&str, Vec<Value>, &[&str]); 4] = [
            (
                "a parent that is missing",
                vec![
                    line("user", "a", None),
                    line("assistant", "b", Some("a")),
                    line("user", "c", Some("gone")),
                ],
                &["a", "b", "c"],
            ),
            (
                "a line that goes on behind half of one",
                vec![line("user", "a", None), json!(without_newlines), line("user", "c", Some("b"))],
                &["a", "b", "c"],
            ),
            (
                "half a character",
                vec![line("user", "a", None), line("assistant", "b", Some("a")), json!(cut)],
                &["a", "b", "c"],
            ),
            (
                "a conversation that hangs on a subagent's line",
                vec![
                    line("user", "a", None),
                    line("assistant", "b", Some("a")),
                    side,
                    line("user", "c", Some("side")),
                ],
                &["a", "b", "c"],
            ),
        ];
        for (name, lines, expected) in rows {
            assert_eq!(message_uuids(&lines), expected, "{name}");
        }
    }

    #[test]
    fn entries_without_newlines_between_them_are_found() {
        let [a, b, c] = [("user", "a", None), ("assistant", "b", Some("a")), ("user", "c", Some("b"))]
            .map(|(kind, uuid, parent)| line(kind, uuid, parent));
        let without_newlines = |text: String| message_uuids(&[json!(text)]);
        assert_eq!(without_newlines(format!("{a}{b}{c}")), ["a", "b", "c"]);
        assert_eq!(without_newlines(format!("{a}{b}{{\"type\":\"us{c}")), ["a", "b", "c"]);
    }

    #[test]
    fn sidechain_messages_are_hidden() {
        let mut side = line("assistant", "side", Some("b"));
        side["isSidechain"] = true.into();
        assert_eq!(
            message_uuids(&[line("user", "a", None), line("assistant", "b", Some("a")), side]),
            ["a", "b"]
        );
    }
}
