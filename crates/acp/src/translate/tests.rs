//! Frames as the engine sends them, and the updates that an editor gets.

use serde_json::{Value, json};
use whimbrel::wire::codec::decode;

use super::*;

fn frame(value: &Value) -> Frame {
    decode(&value.to_string()).unwrap()
}

fn event(event: &Value) -> Value {
    json!({"type": "stream_event", "event": event, "parent_tool_use_id": null})
}

fn delta(kind: &str, field: &str, text: &str) -> Value {
    event(&json!({"type": "content_block_delta", "index": 0, "delta": {"type": kind, field: text}}))
}

fn reply(id: &str, content: &Value) -> Value {
    json!({"type": "assistant", "parent_tool_use_id": null,
        "message": {"id": id, "model": "m", "content": content}})
}

fn tool_result(id: &str, structured: &Value) -> Value {
    json!({"type": "user", "tool_use_result": structured,
        "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": "x"}]}})
}

fn start(id: &str) -> Value {
    event(
        &json!({"type": "message_start", "message": {"id": id, "usage": {"input_tokens": 10, "output_tokens": 1}}}),
    )
}

fn translator(features: ClientFeatures) -> Translator {
    Translator::new("/w".into(), features)
}

/// The updates that frames give, each cut to these fields.
fn translate(translator: &mut Translator, frames: &[Value], fields: &[&str]) -> Vec<Value> {
    let updates = frames.iter().flat_map(|value| translator.translate(&frame(value))).collect::<Vec<_>>();
    let cut = |update: &SessionUpdate| {
        let update = json!(update);
        let kept = fields.iter().filter_map(|field| Some(((*field).to_owned(), update.get(*field)?.clone())));
        Value::Object(kept.collect())
    };
    updates.iter().map(cut).collect()
}

#[test]
fn streamed_text_is_sent_once_with_the_id_of_its_message() {
    let frames = [
        start("m1"),
        delta("thinking_delta", "thinking", "hm"),
        delta("text_delta", "text", "Hel"),
        delta("text_delta", "text", "lo"),
        reply("m1", &json!([{"type": "text", "text": "Hello"}])),
        reply("m2", &json!([{"type": "text", "text": "whole"}])),
    ];
    let found = translate(
        &mut translator(ClientFeatures::default()),
        &frames,
        &["sessionUpdate", "messageId", "content"],
    );
    let chunk = |kind: &str, id: &str, text: &str| json!({"sessionUpdate": kind, "messageId": id, "content": {"type": "text", "text": text}});
    let expected = [
        chunk("agent_thought_chunk", "m1", "hm"),
        chunk("agent_message_chunk", "m1", "Hel"),
        chunk("agent_message_chunk", "m1", "lo"),
        chunk("agent_message_chunk", "m2", "whole"),
    ];
    assert_eq!(found, expected);
}

#[test]
fn call_goes_from_its_announcement_to_its_result() {
    let block = json!({"type": "tool_use", "id": "c", "name": "Read", "input": {}});
    let input = json!({"file_path": "/w/a"});
    let frames = [
        start("m"),
        event(&json!({"type": "content_block_start", "index": 0, "content_block": block})),
        reply("m", &json!([{"type": "tool_use", "id": "c", "name": "Read", "input": input}])),
        json!({"type": "tool_progress", "tool_use_id": "c", "tool_name": "Read", "parent_tool_use_id": null, "elapsed_time_seconds": 0}),
        tool_result("c", &json!({"type": "text", "file": {"content": "x"}})),
    ];
    let found =
        translate(&mut translator(ClientFeatures::default()), &frames, &["sessionUpdate", "title", "status"]);
    let expected = [
        json!({"sessionUpdate": "tool_call", "title": "Read"}),
        json!({"sessionUpdate": "tool_call_update", "title": "Read a"}),
        json!({"sessionUpdate": "tool_call_update", "status": "in_progress"}),
        json!({"sessionUpdate": "tool_call_update", "status": "completed"}),
    ];
    assert_eq!(found, expected);
}

#[test]
fn subagent_shows_its_calls_but_not_its_text() {
    let mut nested = reply(
        "n",
        &json!([
            {"type": "text", "text": "child"},
            {"type": "tool_use", "id": "c", "name": "Read", "input": {"file_path": "/w/a"}},
        ]),
    );
    nested["parent_tool_use_id"] = "agent".into();
    let found = translate(&mut translator(ClientFeatures::default()), &[nested], &["sessionUpdate", "_meta"]);
    let meta = json!({"claudeCode": {"toolName": "Read", "parentToolUseId": "agent"}});
    assert_eq!(found, [json!({"sessionUpdate": "tool_call", "_meta": meta})]);
}

#[test]
fn list_of_tasks_becomes_the_plan() {
    let todos = json!({"todos": [{"content": "A", "status": "pending", "activeForm": "Doing A"}]});
    let frames = [
        reply("m", &json!([{"type": "tool_use", "id": "c", "name": "TodoWrite", "input": todos}])),
        tool_result("c", &json!({"newTodos": []})),
    ];
    let mut translator = translator(ClientFeatures::default());
    let found = translate(&mut translator, &frames, &["sessionUpdate", "entries"]);
    let entries = json!([{"content": "A", "priority": "medium", "status": "pending"}]);
    assert_eq!(found, [json!({"sessionUpdate": "plan", "entries": entries})]);
    assert!(translator.open_plan().is_some());
}

#[test]
fn usage_comes_after_each_call_and_cost_at_the_end() {
    let mut translator = translator(ClientFeatures::default());
    assert_eq!(translator.set_window(1000), None, "nothing is used yet");
    let frames = [
        start("m"),
        event(&json!({"type": "message_delta", "delta": {}, "usage": {"output_tokens": 5}})),
        event(&json!({"type": "message_stop"})),
        json!({"type": "result", "subtype": "success", "is_error": false, "duration_ms": 1, "duration_api_ms": 1,
            "num_turns": 1, "total_cost_usd": 0.5}),
    ];
    let found = translate(&mut translator, &frames, &["sessionUpdate", "used", "size", "cost"]);
    let expected = [
        json!({"sessionUpdate": "usage_update", "used": 15, "size": 1000}),
        json!({"sessionUpdate": "usage_update", "used": 15, "size": 1000, "cost": {"amount": 0.5, "currency": "USD"}}),
    ];
    assert_eq!(found, expected);
}

#[test]
fn compaction_is_an_update_or_a_line() {
    let frames = [
        json!({"type": "system", "subtype": "status", "status": "compacting"}),
        json!({"type": "system", "subtype": "status", "status": null, "compact_result": "success"}),
    ];
    let features = ClientFeatures { compaction: true, ..ClientFeatures::default() };
    let found = translate(&mut translator(features), &frames, &["sessionUpdate", "compactionId", "status"]);
    let update = |status: &str| json!({"sessionUpdate": "compaction_update", "compactionId": "compaction-1", "status": status});
    assert_eq!(found, [update("in_progress"), update("completed")]);
    let found = translate(&mut translator(ClientFeatures::default()), &frames, &["sessionUpdate"]);
    assert_eq!(found, [json!({"sessionUpdate": "agent_message_chunk"})]);
}

#[test]
fn failed_model_call_is_no_text() {
    let mut failed = reply("m", &json!([{"type": "text", "text": "overloaded"}]));
    failed["error"] = "overloaded".into();
    let mut translator = translator(ClientFeatures::default());
    assert_eq!(translate(&mut translator, &[failed], &["sessionUpdate"]), Vec::<Value>::new());
    assert_eq!(translator.take_failure(), Some(FailureKind::Overloaded));
}
