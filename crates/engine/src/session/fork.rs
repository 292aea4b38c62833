//! A copy of a conversation under a new id: its lines in order, each hanging on the one before, and nothing of what was
//! left behind. It appears whole or not at all.

use std::fs::{DirBuilder, File};
use std::io::{self, BufReader, BufWriter, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use serde_json::{Map, Value, json};
use whimbrel_wire::RawJson;

use super::journal::Mirror;
use super::line::TOOL_START;
use super::load::Loaded;
use super::medium;
use super::reader::Reader;
use crate::clock;

/// What only the copied session has.
const LEFT_BEHIND: [&str; 3] = ["teamName", "agentName", "slug"];

/// From where to where.
#[derive(Debug, Clone, Copy)]
pub struct Fork<'a> {
    /// The transcript.
    pub from: &'a Path,
    /// Its session.
    pub old: &'a str,
    /// The new transcript.
    pub to: &'a Path,
    /// The new session.
    pub new: &'a str,
    /// Whether the host wants a copy of the lines.
    pub mirror: Mirror,
}

impl Fork<'_> {
    /// Copies what was loaded. Gives the new lines, if the host wants them.
    pub fn copy(self, loaded: &Loaded) -> io::Result<Vec<RawJson>> {
        let folder = self.to.parent().unwrap_or(Path::new("/"));
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let mut fresh = tempfile::NamedTempFile::new_in(folder)?;
        let copies = self.write(loaded, fresh.as_file_mut())?;
        fresh.persist_noclobber(self.to).map_err(|error| error.error)?;
        Ok(copies)
    }

    fn write(self, loaded: &Loaded, to: &File) -> io::Result<Vec<RawJson>> {
        let mut reader = Reader::new(BufReader::new(medium::read(self.from)?));
        let mut to = BufWriter::new(to);
        let mut copies = Vec::new();
        let mut put = |line: Value| {
            let text = line.to_string();
            writeln!(to, "{text}")?;
            if self.mirror == Mirror::On {
                copies.extend(RawJson::parse(text));
            }
            io::Result::Ok(())
        };
        let mut last = Value::Null;
        for span in &loaded.spans {
            let bytes = reader.bytes(*span)?;
            let Ok(mut line) = serde_json::from_slice::<Map<String, Value>>(bytes) else { continue };
            if line.get("type").and_then(Value::as_str) == Some("progress") {
                continue;
            }
            self.adapt(&mut line, &mut last);
            put(Value::Object(line))?;
        }
        for call in &loaded.unfinished {
            put(
                json!({"type": TOOL_START, "toolUseID": call, "sessionId": self.new, "timestamp": clock::timestamp()}),
            )?;
        }
        if let Some(title) = &loaded.facts.title {
            put(
                json!({"type": "custom-title", "customTitle": format!("{title} (fork)"), "sessionId": self.new}),
            )?;
        }
        to.flush()?;
        Ok(copies)
    }

    fn adapt(self, line: &mut Map<String, Value>, last: &mut Value) {
        for field in LEFT_BEHIND {
            line.remove(field);
        }
        line.insert("sessionId".into(), self.new.into());
        if let Some(uuid) = line.get("uuid").cloned() {
            line.insert("parentUuid".into(), std::mem::replace(last, uuid.clone()));
            line.insert("forkedFrom".into(), json!({"sessionId": self.old, "messageUuid": uuid}));
        }
    }
}
