//! Peak memory of resuming a long session and of listing many, measured at the allocator: the size of the process also
//! contains pages of the program, which a test cannot predict.

use std::fs::File;
use std::io::{BufReader, BufWriter, Write};

use peak_alloc::PeakAlloc;
use serde_json::{Value, json};
use whimbrel_session_store::load::{LoadRange, load};
use whimbrel_session_store::sessions::Sessions;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Calls before the compaction.
const CALL_COUNT: usize = 5_000;

/// Limit per transcript line while loading, in bytes.
const MAX_BYTES_PER_LINE: usize = 256;

/// Limit for buffers and the longest line.
const MAX_READ_OVERHEAD: usize = 1 << 20;

fn transcript_line(kind: &str, uuid: &str, parent: Option<&str>, content: &Value) -> Value {
    let message = json!({"id": uuid, "role": kind, "content": content});
    json!({"type": kind, "uuid": uuid, "parentUuid": parent, "message": message})
}

#[test]
fn compacted_content_uses_no_memory() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.jsonl");
    let mut file = BufWriter::new(File::create(&path).unwrap());
    let mut write_line = |line: &Value| writeln!(file, "{line}").unwrap();
    write_line(&transcript_line("user", "u0", None, &json!("hi")));
    let long = "x".repeat(20_000);
    for turn in 0..CALL_COUNT {
        let (call_uuid, result_uuid, id) = (format!("a{turn}"), format!("u{}", turn + 1), format!("t{turn}"));
        let call = json!([{"type": "tool_use", "id": id, "name": "Read", "input": {}}]);
        write_line(&transcript_line("assistant", &call_uuid, Some(&format!("u{turn}")), &call));
        let result = json!([{"type": "tool_result", "tool_use_id": id, "content": long}]);
        write_line(&transcript_line("user", &result_uuid, Some(&call_uuid), &result));
    }
    write_line(&json!({"type": "system", "subtype": "compact_boundary", "uuid": "b", "parentUuid": null,
        "logicalParentUuid": format!("u{CALL_COUNT}")}));
    let mut summary = transcript_line("user", "s", Some("b"), &json!("summary"));
    summary["isCompactSummary"] = true.into();
    write_line(&summary);
    write_line(&transcript_line("user", "end", Some("s"), &json!("go")));
    drop(file);
    let size = std::fs::metadata(&path).unwrap().len();
    assert!(size > 100_000_000, "{size}");

    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let mut loaded = load(BufReader::new(File::open(&path).unwrap()), &LoadRange::default()).unwrap();
    let (peak, current) = (ALLOCATOR.peak_usage() - before, ALLOCATOR.current_usage() - before);
    let messages: Vec<String> =
        loaded.history.snapshot().messages().iter().map(|message| format!("{:?}", message.content)).collect();
    assert!(
        messages.len() == 1 && messages[0].contains("summary") && messages[0].contains("go"),
        "{messages:?}"
    );
    let lines = 2 * CALL_COUNT;
    assert!(peak < lines * MAX_BYTES_PER_LINE + MAX_READ_OVERHEAD, "peak of {peak} bytes for {lines} lines");
    assert!(current < 64 * 1024, "{current} bytes stay allocated");
}

/// Short lines before the compaction.
const LINE_COUNT: usize = 200_000;

#[test]
fn compacted_lines_use_no_memory() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.jsonl");
    let mut file = BufWriter::new(File::create(&path).unwrap());
    let mut write_line = |line: &Value| writeln!(file, "{line}").unwrap();
    write_line(&json!({"type": "custom-title", "customTitle": "Long ago"}));
    write_line(&transcript_line("user", "u0", None, &json!("hi")));
    for number in 1..LINE_COUNT {
        let kind = if number % 2 == 0 { "user" } else { "assistant" };
        write_line(&transcript_line(
            kind,
            &format!("u{number}"),
            Some(&format!("u{}", number - 1)),
            &json!("words"),
        ));
    }
    write_line(&json!({"type": "system", "subtype": "compact_boundary", "uuid": "b", "parentUuid": null,
        "logicalParentUuid": format!("u{}", LINE_COUNT - 1)}));
    let mut summary = transcript_line("user", "s", Some("b"), &json!("summary"));
    summary["isCompactSummary"] = true.into();
    write_line(&summary);
    drop(file);

    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let mut loaded = load(BufReader::new(File::open(&path).unwrap()), &LoadRange::default()).unwrap();
    let peak = ALLOCATOR.peak_usage() - before;
    assert_eq!(loaded.history.snapshot().messages().len(), 1);
    assert_eq!(loaded.recorded.title.as_deref(), Some("Long ago"));
    assert!(peak < 4 * MAX_READ_OVERHEAD, "peak of {peak} bytes");
}

/// Number of listed sessions.
const SESSION_COUNT: usize = 10_000;

/// Limit per listed session, in bytes.
const MAX_BYTES_PER_SESSION: usize = 2_048;

#[tokio::test]
async fn listing_ten_thousand_sessions_uses_little_memory() {
    let config = tempfile::tempdir().unwrap();
    let project = config.path().join("projects/-work");
    std::fs::create_dir_all(&project).unwrap();
    let answer = transcript_line("assistant", "a", Some("u"), &json!("x".repeat(12_000)));
    for number in 0..SESSION_COUNT {
        let mut prompt = transcript_line("user", "u", None, &json!(format!("prompt {number}")));
        prompt["cwd"] = "/work".into();
        let text = format!("{prompt}\n{answer}\n");
        std::fs::write(project.join(format!("{number:08x}-2222-4333-8444-555555555555.jsonl")), text)
            .unwrap();
    }
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let listed = Sessions::on_disk(config.path(), None).list().await.unwrap();
    let peak = ALLOCATOR.peak_usage() - before;
    assert_eq!(listed.len(), SESSION_COUNT);
    assert!(peak < SESSION_COUNT * MAX_BYTES_PER_SESSION + 4 * MAX_READ_OVERHEAD, "peak of {peak} bytes");
}
