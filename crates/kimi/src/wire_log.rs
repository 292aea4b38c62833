//! The record of a session's events (`wire.jsonl`), which hosts read and `replay` sends again. Pieces of one text are
//! joined, and so are a call and its arguments.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::translate::Event;
use crate::versions::NEWEST;

/// A recorded event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct RecordedEvent {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) payload: Value,
}

/// Writes the record. The file is created with the first event.
pub(crate) struct WireLog {
    file: Option<File>,
    /// The last event, to which the next one may be joined.
    open: Option<RecordedEvent>,
}

#[derive(Deserialize)]
struct Line {
    message: RecordedEvent,
}

impl WireLog {
    pub(crate) fn new() -> Self {
        Self { file: None, open: None }
    }

    /// Records an event.
    pub(crate) fn record(&mut self, event: &Event) {
        if !is_recorded(event.kind) {
            return;
        }
        if let Some(open) = &mut self.open
            && join(open, event)
        {
            return;
        }
        self.write_open();
        self.open = Some(RecordedEvent { kind: event.kind.to_owned(), payload: event.payload.clone() });
    }

    /// Opens the file for what is recorded from now on.
    pub(crate) fn open(&mut self, path: &Path) -> io::Result<()> {
        if self.file.is_some() {
            return Ok(());
        }
        let mut file = open_to_append(path)?;
        if file.metadata()?.len() == 0 {
            let head = json!({"type": "metadata", "protocol_version": NEWEST.to_string()});
            file.write_all(format!("{head}\n").as_bytes())?;
        }
        self.file = Some(file);
        Ok(())
    }

    /// Writes what is complete at the end of a turn.
    pub(crate) fn flush(&mut self) {
        self.write_open();
    }

    fn write_open(&mut self) {
        let (Some(event), Some(file)) = (self.open.take(), &mut self.file) else { return };
        let now = Timestamp::now();
        let seconds = now.as_millisecond() as f64 / 1000.0;
        let line = json!({"timestamp": seconds, "message": event});
        // The conversation itself is the engine's transcript; a full disk only shortens this record.
        let _ = file.write_all(format!("{line}\n").as_bytes());
    }
}

/// Opens a file of lines. A last line that a killed process left without its end is ended, so that the next one can be read.
pub(crate) fn open_to_append(path: &Path) -> io::Result<File> {
    let mut file = OpenOptions::new().create(true).read(true).append(true).open(path)?;
    if file.metadata()?.len() > 0 {
        let mut last = [0];
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
        if last != *b"\n" {
            file.write_all(b"\n")?;
        }
    }
    Ok(file)
}

/// Reads a record. Lines that cannot be read are left out; without a file it is empty.
pub(crate) fn read(path: &Path) -> Vec<RecordedEvent> {
    let Ok(file) = File::open(path) else { return Vec::new() };
    let lines = BufReader::new(file).split(b'\n').map_while(Result::ok);
    lines.filter_map(|line| Some(serde_json::from_slice::<Line>(&line).ok()?.message)).collect()
}

/// Notices of a hook and settled approvals are not part of the record.
fn is_recorded(kind: &str) -> bool {
    !matches!(kind, "HookTriggered" | "HookResolved" | "ApprovalResponse")
}

/// Joins an event to the one before it, if they are parts of one.
fn join(open: &mut RecordedEvent, event: &Event) -> bool {
    match (open.kind.as_str(), event.kind) {
        ("ContentPart", "ContentPart") => {
            let field = match (open.payload["type"].as_str(), event.payload["type"].as_str()) {
                (Some("text"), Some("text")) => "text",
                // A signature ends a thought.
                (Some("think"), Some("think")) if open.payload["encrypted"].is_null() => "think",
                _ => return false,
            };
            append_text(&mut open.payload[field], &event.payload[field]);
            if field == "think" {
                open.payload["encrypted"] = event.payload["encrypted"].clone();
            }
            true
        }
        ("ToolCall", "ToolCallPart") => {
            append_text(&mut open.payload["function"]["arguments"], &event.payload["arguments_part"]);
            true
        }
        _ => false,
    }
}

fn append_text(to: &mut Value, more: &Value) {
    if let (Value::String(text), Some(more)) = (to, more.as_str()) {
        text.push_str(more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_joined_and_read_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("wire.jsonl");
        let event = |kind: &'static str, payload: Value| Event::new(kind, payload);
        let mut log = WireLog::new();
        log.open(&path).unwrap();
        let call =
            |arguments: &str| json!({"id": "c", "function": {"name": "Shell", "arguments": arguments}});
        for event in [
            event("TurnBegin", json!({"user_input": "hi"})),
            Event::think("h", None),
            Event::think("m", None),
            Event::think("", Some("sig")),
            Event::text("one "),
            Event::text("two"),
            event("ToolCall", call("")),
            event("ToolCallPart", json!({"arguments_part": "{\"a\""})),
            event("ToolCallPart", json!({"arguments_part": ":1}"})),
            event("ApprovalResponse", json!({})),
            event("TurnEnd", json!({})),
        ] {
            log.record(&event);
        }
        log.flush();
        let text = std::fs::read_to_string(&path).unwrap();
        let head: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
        assert_eq!(head["type"], "metadata");
        let found: Vec<(String, Value)> =
            read(&path).into_iter().map(|event| (event.kind, event.payload)).collect();
        let expected = [
            ("TurnBegin", json!({"user_input": "hi"})),
            ("ContentPart", json!({"type": "think", "think": "hm", "encrypted": "sig"})),
            ("ContentPart", json!({"type": "text", "text": "one two"})),
            ("ToolCall", call("{\"a\":1}")),
            ("TurnEnd", json!({})),
        ];
        assert_eq!(found, expected.map(|(kind, payload)| (kind.to_owned(), payload)));
        assert_eq!(read(&dir.path().join("none")), Vec::new());
        std::fs::write(&path, format!("{text}{{\"timestamp\": 1")).unwrap();
        let mut log = WireLog::new();
        log.open(&path).unwrap();
        log.record(&event("TurnBegin", json!({"user_input": "again"})));
        log.flush();
        assert_eq!(read(&path).len(), 6, "a line that was cut does not swallow the next one");
    }
}
