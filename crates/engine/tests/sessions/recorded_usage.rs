//! Usage and stop reason of replies in the transcript, from which other programs compute cost.

use serde_json::{Value, json};
use whimbrel_testkit::{Reply, SessionDirs};
use whimbrel_wire::Usage;
use whimbrel_wire::control::Interrupt;
use whimbrel_wire::options::Options;

fn usage(output_tokens: u64) -> Usage {
    Usage { input_tokens: 9, output_tokens, ..Usage::default() }
}

/// Message id, output tokens and stop reason of each assistant line.
fn recorded(lines: &[Value]) -> Vec<(String, u64, Value)> {
    let replies = lines.iter().filter(|line| line["type"] == "assistant").map(|line| &line["message"]);
    let row = |message: &Value| {
        let id = message["id"].as_str().unwrap().to_owned();
        (id, message["usage"]["output_tokens"].as_u64().unwrap(), message["stop_reason"].clone())
    };
    replies.map(row).collect()
}

#[tokio::test]
async fn every_line_of_a_reply_has_its_final_usage() {
    let dirs = SessionDirs::new().unwrap();
    std::fs::write(dirs.work_dir().join("note"), "x").unwrap();
    let read = json!({"file_path": dirs.work_dir().join("note")});
    let script = [
        Reply::text("I read it.").and_tool("Read", read.clone()).and_tool("Read", read).usage(usage(2_616)),
        Reply::text("Done.").usage(usage(34)),
    ];
    let options = Options { session_mirror: true, ..Options::default() };
    let mut host = dirs.host(script, options).start().await.unwrap();
    let session = host.run("Go.").await.unwrap().session_id;
    let frames = host.received().iter();
    let mirrored: Vec<Value> = frames
        .filter(|received| received.json["type"] == "transcript_mirror")
        .flat_map(|received| received.json["entries"].as_array().unwrap().clone())
        .collect();
    host.finish().await.unwrap();
    let lines = dirs.read_transcript(&session).unwrap();
    let rows = recorded(&lines);
    let (first, last) = (rows[0].0.clone(), rows[3].0.clone());
    let tool_use = || (first.clone(), 2_616, json!("tool_use"));
    assert_eq!(rows, [tool_use(), tool_use(), tool_use(), (last, 34, json!("end_turn"))]);
    assert_eq!(recorded(&mirrored), rows, "the host's copy");
}

#[tokio::test]
async fn line_of_a_subagent_has_its_final_usage() {
    let dirs = SessionDirs::new().unwrap();
    let call = json!({"description": "look", "prompt": "Look.", "subagent_type": "general-purpose"});
    let script = [
        Reply::tool("Agent", call).usage(usage(50)),
        Reply::text("Seen.").usage(usage(77)),
        Reply::text("Done.").usage(usage(5)),
    ];
    let mut host = dirs.host(script, Options::default()).start().await.unwrap();
    let session = host.run("Go.").await.unwrap().session_id;
    host.finish().await.unwrap();
    let own = dirs.transcript_paths().unwrap().remove(0);
    let subagents = own.with_file_name(session).join("subagents");
    let file = std::fs::read_dir(subagents)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension().is_some_and(|extension| extension == "jsonl"))
        .unwrap();
    let lines: Vec<Value> = std::fs::read_to_string(file)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let rows: Vec<(u64, Value)> =
        recorded(&lines).into_iter().map(|(_, tokens, stop)| (tokens, stop)).collect();
    assert_eq!(rows, [(77, json!("end_turn"))]);
}

#[tokio::test]
async fn line_is_written_before_its_reply_ends() {
    let dirs = SessionDirs::new().unwrap();
    // The events of the first block, then silence.
    let script = [Reply::text("Once").and_text("upon a time").chunk_size(100).stall_after(4)];
    let mut host = dirs.host(script, Options::default()).start().await.unwrap();
    host.send_prompt("Go.").await.unwrap();
    let frame = host.next_matching(&json!({"type": "assistant"})).await.unwrap();
    let session = frame["session_id"].as_str().unwrap().to_owned();
    let rows = recorded(&dirs.read_transcript(&session).unwrap());
    assert_eq!((rows.len(), &rows[0].2), (1, &Value::Null));
    host.send_request(Interrupt::default()).await.unwrap();
    host.next_result().await.unwrap();
    host.finish().await.unwrap();
    assert_eq!(recorded(&dirs.read_transcript(&session).unwrap()).len(), 1);
}

#[tokio::test]
async fn mirrored_line_does_not_wait_for_a_long_reply() {
    let dirs = SessionDirs::new().unwrap();
    let script = [Reply::text("Once").and_text("upon a time").chunk_size(100).stall_after(4)];
    let options = Options { session_mirror: true, ..Options::default() };
    let mut host = dirs.host(script, options).start().await.unwrap();
    host.send_prompt("Go.").await.unwrap();
    let frame = host.next_matching(&json!({"type": "assistant"})).await.unwrap();
    let uuid = frame["uuid"].clone();
    // The reply never ends.
    let entries = json!([{"type": "assistant", "uuid": uuid}]);
    host.next_matching(&json!({"type": "transcript_mirror", "entries": entries})).await.unwrap();
    host.send_request(Interrupt::default()).await.unwrap();
    host.next_result().await.unwrap();
    host.finish().await.unwrap();
}
