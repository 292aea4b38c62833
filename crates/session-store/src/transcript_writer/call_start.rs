//! Records the start of a tool call with effects. With strict durability a call whose start cannot be recorded must not
//! run.

use std::io;

use serde_json::json;
use whimbrel_os::clock;

use super::{Sink, TranscriptWriter};
use crate::entry::TOOL_START;
use crate::line_appender::Durability;
use crate::store_writer::FlushMode;

/// What host and model read about a session that another engine has continued.
pub const CONFLICT_TEXT: &str = "The session was continued or deleted elsewhere since this engine loaded it, so nothing more \
    of it is stored here. Resume it again to go on from its newest entry, or fork it.";

impl TranscriptWriter {
    /// Records that a tool call with effects is about to run. The error is the reason why it must not.
    pub async fn record_call_start(&self, call: &str, tool: &str) -> Result<(), String> {
        let line = json!({
            "type": TOOL_START,
            "toolUseID": call,
            "tool": tool,
            "sessionId": &*self.session,
            "timestamp": clock::timestamp(),
        });
        let restored = self.file_sink().map_or(Ok(()), |mut sink| sink.restore_if_detached());
        let written = restored.and(self.write_line(Ok(line.to_string())));
        let (written, durability) = match &self.sink {
            Sink::Discard => return Ok(()),
            Sink::Unavailable(reason) => (Err(io::Error::other(reason.to_string())), Durability::Strict),
            Sink::File(_) => {
                (written, self.file_sink().map(|sink| sink.file.durability()).unwrap_or_default())
            }
            Sink::Store { store_writer, durability, .. } => {
                let mode = if *durability == Durability::Strict {
                    FlushMode::Once
                } else {
                    FlushMode::RespectBackoff
                };
                (store_writer.flush(mode).await, *durability)
            }
        };
        if self.has_conflict() {
            return Err(format!("Not run: {CONFLICT_TEXT}"));
        }
        match written {
            Err(error) if durability == Durability::Strict => Err(format!(
                "Not run: the start of the call cannot be recorded ({error}), and {} is strict. {}",
                Durability::VARIABLE,
                match &self.sink {
                    Sink::Store { .. } => "Repair the session store first.",
                    Sink::File(_) => "Free disk space first.",
                    Sink::Unavailable(_) | Sink::Discard =>
                        "Set HOME or CLAUDE_CONFIG_DIR to a writable directory.",
                }
            )),
            _ => Ok(()),
        }
    }

    /// Records which agent runs a started call. A failed write stays pending like any other line.
    pub async fn record_call_agent(&self, call: &str, agent: &str) {
        let line = json!({
            "type": TOOL_START,
            "toolUseID": call,
            "agentId": agent,
            "sessionId": &*self.session,
            "timestamp": clock::timestamp(),
        });
        let _ = self.write_line(Ok(line.to_string()));
        self.flush().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript_writer::Persistence;
    use crate::transcript_writer::tests::failing_writer;

    #[tokio::test]
    async fn unrecordable_call_fails_only_if_strict() {
        let dir = tempfile::tempdir().unwrap();
        for (durability, made) in
            [(Durability::System, true), (Durability::Turn, true), (Durability::Strict, false)]
        {
            let (writer, _) = failing_writer(dir.path().join("x.jsonl"), durability);
            assert_eq!(writer.record_call_start("t1", "Bash").await.is_ok(), made, "{durability:?}");
            let without_file = |unavailable: Option<&str>| {
                let persistence = Persistence {
                    durability,
                    unavailable: unavailable.map(Into::into),
                    ..Persistence::default()
                };
                TranscriptWriter::with_persistence("s", None, &persistence)
            };
            let unavailable = without_file(Some("no home")).record_call_start("t1", "Bash").await;
            assert_eq!(
                unavailable.as_ref().map_err(|reason| reason.contains("(no home)")),
                if made { Ok(&()) } else { Err(true) }
            );
            assert!(
                without_file(None).record_call_start("t1", "Bash").await.is_ok(),
                "nothing was to be kept"
            );
        }
    }
}
