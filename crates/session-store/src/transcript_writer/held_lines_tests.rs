//! Lines of a streaming reply in a session store: when they are stored, and with which usage.

use serde_json::{Value, json};
use whimbrel_wire::StopReason;
use whimbrel_wire::content::Usage;

use super::*;
use crate::held_lines::MAX_HOLD;
use crate::store::{MemoryStore, SessionStore};
use crate::{MessageEntry, TranscriptRecorder};

struct Fixture {
    store: Arc<MemoryStore>,
    recorder: TranscriptRecorder,
}

impl Fixture {
    /// A session in a store that has one block of a reply.
    fn new() -> Self {
        let store = Arc::new(MemoryStore::default());
        let store_writer = StoreWriter::new(Arc::clone(&store).into(), "p");
        let persistence = Persistence { store_writer: Some(store_writer), ..Persistence::default() };
        let identity = crate::transcript_recorder::SessionIdentity {
            session: "s".into(),
            cwd: "/".into(),
            git_branch: String::new(),
            entrypoint: "cli".into(),
        };
        let mut recorder = TranscriptRecorder::new(identity, None, &persistence, None);
        let message = json!({"content": [], "stop_reason": null, "stop_sequence": null, "usage": usage(1)});
        recorder.append_reply_block(MessageEntry {
            kind: "assistant",
            uuid: "a",
            message: RawJson::from_value(&message).unwrap(),
            extra_fields: Vec::new(),
        });
        Self { store, recorder }
    }

    fn end_reply(&self) {
        let stop_reason = Some(StopReason::EndTurn);
        self.recorder.writer().finish_reply(&ReplyEnd {
            stop_reason,
            stop_sequence: None,
            usage: usage(2_616),
        });
    }

    /// Type of each stored line, and its output tokens if it has some.
    async fn stored(&self) -> Vec<(String, Option<u64>)> {
        self.recorder.writer().flush().await;
        let lines = self.store.load(&StoreKey::session("p", "s")).await.unwrap().unwrap_or_default();
        let row = |line: &RawJson| {
            let line: Value = line.decode().unwrap();
            let tokens = line["message"]["usage"]["output_tokens"].as_u64();
            (line["type"].as_str().unwrap().to_owned(), tokens)
        };
        lines.iter().map(row).collect()
    }
}

fn usage(output_tokens: u64) -> Usage {
    Usage { output_tokens, ..Usage::default() }
}

fn row(kind: &str, tokens: Option<u64>) -> (String, Option<u64>) {
    (kind.to_owned(), tokens)
}

#[tokio::test]
async fn entries_of_the_session_leave_a_streaming_reply_open() {
    let fixture = Fixture::new();
    let writer = fixture.recorder.writer();
    writer.rename("Waders").await.unwrap();
    writer.record_cost(&CostState::default());
    writer.record_awaited_agents(&[]);
    let before = ["custom-title", "cost-state", "awaited-agents"].map(|kind| row(kind, None));
    assert_eq!(fixture.stored().await, before);
    fixture.end_reply();
    assert_eq!(fixture.stored().await, [&before[..], &[row("assistant", Some(2_616))]].concat());
}

#[tokio::test]
async fn start_of_a_call_is_stored_after_the_call() {
    let fixture = Fixture::new();
    fixture.recorder.writer().record_call_start("t1", "Bash").await.unwrap();
    assert_eq!(fixture.stored().await, [row("assistant", Some(1)), row("tool-start", None)]);
}

#[tokio::test(start_paused = true)]
async fn lines_of_a_long_reply_are_due_after_a_second() {
    let fixture = Fixture::new();
    let begin = tokio::time::Instant::now();
    fixture.recorder.writer().held_lines_due().await;
    assert_eq!(begin.elapsed(), MAX_HOLD);
    fixture.recorder.writer().release_held_lines();
    assert_eq!(fixture.stored().await, [row("assistant", Some(1))]);
    fixture.end_reply();
    assert_eq!(fixture.stored().await.len(), 1);
}
