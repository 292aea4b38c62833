//! Peak memory of resuming a long session and of listing many, measured at the allocator: the size of the process also
//! contains pages of the program, which a test cannot predict.

use std::fs::File;
use std::io::{BufReader, BufWriter, Write};

use peak_alloc::PeakAlloc;
use serde_json::{Value, json};
use whimbrel_session_store::catalog::Sessions;
use whimbrel_session_store::load::{LoadRange, load};

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
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.jsonl");
    let mut file = BufWriter::new(File::create(&path).unwrap());
    let mut put = |line: &Value| writeln!(file, "{line}").unwrap();
    put(&transcript_line("user", "u0", None, &json!("hi")));
    let long = "x".repeat(20_000);
    for turn in 0..CALL_COUNT {
        let (said, heard, id) = (format!("a{turn}"), format!("u{}", turn + 1), format!("t{turn}"));
        let call = json!([{"type": "tool_use", "id": id, "name": "Read", "input": {}}]);
        put(&transcript_line("assistant", &said, Some(&format!("u{turn}")), &call));
        let result = json!([{"type": "tool_result", "tool_use_id": id, "content": long}]);
        put(&transcript_line("user", &heard, Some(&said), &result));
    }
    put(&json!({"type": "system", "subtype": "compact_boundary", "uuid": "b", "parentUuid": null,
        "logicalParentUuid": format!("u{CALL_COUNT}")}));
    let mut summary = transcript_line("user", "s", Some("b"), &json!("summary"));
    summary["isCompactSummary"] = true.into();
    put(&summary);
    put(&transcript_line("user", "end", Some("s"), &json!("go")));
    drop(file);
    let size = std::fs::metadata(&path).unwrap().len();
    assert!(size > 100_000_000, "{size}");

    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let mut loaded = load(BufReader::new(File::open(&path).unwrap()), &LoadRange::default()).unwrap();
    let (most, kept) = (ALLOCATOR.peak_usage() - before, ALLOCATOR.current_usage() - before);
    let said: Vec<String> =
        loaded.history.snapshot().messages().iter().map(|message| format!("{:?}", message.content)).collect();
    assert!(said.len() == 1 && said[0].contains("summary") && said[0].contains("go"), "{said:?}");
    let lines = 2 * CALL_COUNT;
    assert!(most < lines * MAX_BYTES_PER_LINE + MAX_READ_OVERHEAD, "{most} bytes at most for {lines} lines");
    assert!(kept < 64 * 1024, "{kept} bytes are kept of it");
}

/// Short lines before the compaction.
const LINE_COUNT: usize = 200_000;

#[test]
fn compacted_lines_use_no_memory() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.jsonl");
    let mut file = BufWriter::new(File::create(&path).unwrap());
    let mut put = |line: &Value| writeln!(file, "{line}").unwrap();
    put(&json!({"type": "custom-title", "customTitle": "Long ago"}));
    put(&transcript_line("user", "u0", None, &json!("hi")));
    for number in 1..LINE_COUNT {
        let kind = if number % 2 == 0 { "user" } else { "assistant" };
        put(&transcript_line(
            kind,
            &format!("u{number}"),
            Some(&format!("u{}", number - 1)),
            &json!("words"),
        ));
    }
    put(&json!({"type": "system", "subtype": "compact_boundary", "uuid": "b", "parentUuid": null,
        "logicalParentUuid": format!("u{}", LINE_COUNT - 1)}));
    let mut summary = transcript_line("user", "s", Some("b"), &json!("summary"));
    summary["isCompactSummary"] = true.into();
    put(&summary);
    drop(file);

    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let mut loaded = load(BufReader::new(File::open(&path).unwrap()), &LoadRange::default()).unwrap();
    let most = ALLOCATOR.peak_usage() - before;
    assert_eq!(loaded.history.snapshot().messages().len(), 1);
    assert_eq!(loaded.facts.title.as_deref(), Some("Long ago"));
    assert!(most < 4 * MAX_READ_OVERHEAD, "{most} bytes at most");
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
    let most = ALLOCATOR.peak_usage() - before;
    assert_eq!(listed.len(), SESSION_COUNT);
    assert!(most < SESSION_COUNT * MAX_BYTES_PER_SESSION + 4 * MAX_READ_OVERHEAD, "{most} bytes at most");
}
