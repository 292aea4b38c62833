//! Frames as the engine sends them, and the events that they become.

use serde_json::{Value, json};
use whimbrel::Frame;
use whimbrel::wire::codec;

use super::{Event, Translator};
use crate::versions::WireVersion;

fn frame(value: &Value) -> Frame {
    codec::decode(&value.to_string()).unwrap()
}

fn translate(translator: &mut Translator, frames: &[Value]) -> Vec<(String, Value)> {
    let events = frames.iter().flat_map(|value| translator.translate(&frame(value)));
    events.map(|Event { kind, payload }| (kind.to_owned(), payload)).collect()
}

fn stream(event: &Value) -> Value {
    json!({"type": "stream_event", "event": event, "parent_tool_use_id": null, "session_id": "s", "uuid": "u"})
}

fn requesting() -> Value {
    json!({"type": "system", "subtype": "status", "status": "requesting", "uuid": "u", "session_id": "s"})
}

fn kinds(events: &[(String, Value)]) -> Vec<&str> {
    events.iter().map(|(kind, _)| kind.as_str()).collect()
}

#[test]
fn a_streamed_reply_is_sent_once() {
    let mut translator = Translator::new(WireVersion(1, 7), 1000);
    translator.begin_turn();
    let call = json!({"type": "tool_use", "id": "c1", "name": "Bash", "input": {"command": "ls"}});
    let assistant = |block: Value| {
        json!({"type": "assistant", "parent_tool_use_id": null, "uuid": "u", "session_id": "s", "message": {
            "id": "m1", "type": "message", "role": "assistant", "model": "x", "content": [block],
            "stop_reason": null, "stop_sequence": null, "usage": {},
        }})
    };
    let events = translate(
        &mut translator,
        &[
            requesting(),
            stream(&json!({"type": "message_start", "message": {"id": "m1", "usage": {"input_tokens": 90}}})),
            stream(
                &json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
            ),
            stream(
                &json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hi"}}),
            ),
            stream(&json!({"type": "content_block_stop", "index": 0})),
            assistant(json!({"type": "text", "text": "hi"})),
            stream(&json!({"type": "content_block_start", "index": 1,
                "content_block": {"type": "tool_use", "id": "c1", "name": "Bash", "input": {}}})),
            stream(&json!({"type": "content_block_delta", "index": 1,
                "delta": {"type": "input_json_delta", "partial_json": "{\"command\":\"ls\"}"}})),
            stream(&json!({"type": "content_block_stop", "index": 1})),
            assistant(call),
            stream(&json!({"type": "message_delta", "delta": {}, "usage": {"output_tokens": 10}})),
            stream(&json!({"type": "message_stop"})),
            json!({"type": "user", "parent_tool_use_id": null, "uuid": "u", "session_id": "s", "message": {
                "role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "a.txt"}],
            }}),
        ],
    );
    let expected = ["StepBegin", "ContentPart", "ToolCall", "ToolCallPart", "StatusUpdate", "ToolResult"];
    assert_eq!(kinds(&events), expected);
    assert_eq!(events[2].1["function"], json!({"name": "Shell", "arguments": ""}));
    assert_eq!(events[3].1["arguments_part"], r#"{"command":"ls"}"#);
    assert_eq!(events[4].1["token_usage"]["input_other"], 90);
    assert_eq!(events[4].1["context_usage"], 0.1);
    assert_eq!(events[5].1["return_value"]["output"], "a.txt");
}

#[test]
fn arguments_come_in_the_models_own_words() {
    let mut translator = Translator::new(WireVersion(1, 7), 0);
    translator.begin_turn();
    assert_eq!(translator.translate_arguments("c1", "{\"pa"), [], "the call is not known yet");
    let begin = [
        stream(&json!({"type": "message_start", "message": {"id": "m1"}})),
        stream(&json!({"type": "content_block_start", "index": 0,
            "content_block": {"type": "tool_use", "id": "c1", "name": "Read", "input": {}}})),
    ];
    let events = translate(&mut translator, &begin);
    assert_eq!(kinds(&events), ["StepBegin", "ToolCall", "ToolCallPart"]);
    assert_eq!(events[2].1["arguments_part"], "{\"pa");
    let more = translator.translate_arguments("c1", "th\":1}");
    assert_eq!(more.len(), 1);
    let end = translate(&mut translator, &[stream(&json!({"type": "content_block_stop", "index": 0}))]);
    assert_eq!(end, [], "nothing is sent twice");
}

#[test]
fn a_subagent_is_wrapped_as_its_client_expects() {
    let said = json!({"type": "assistant", "parent_tool_use_id": "c1", "uuid": "u", "session_id": "s",
    "agent_id": "a7", "subagent_type": "Explore", "message": {
        "id": "m2", "type": "message", "role": "assistant", "model": "x",
        "content": [{"type": "text", "text": "below"}], "usage": {},
    }});
    for (version, has_ids) in [(WireVersion(1, 3), false), (WireVersion(1, 7), true)] {
        let mut translator = Translator::new(version, 0);
        let events = translate(&mut translator, std::slice::from_ref(&said));
        assert_eq!(kinds(&events), ["SubagentEvent", "SubagentEvent"]);
        let payload = &events[1].1;
        assert_eq!(payload["task_tool_call_id"], "c1");
        assert_eq!(payload["event"]["payload"]["text"], "below");
        assert_eq!(payload.get("parent_tool_call_id").is_some(), has_ids, "{version}");
    }
}

#[test]
fn a_failed_step_begins_before_it_is_interrupted() {
    let mut translator = Translator::new(WireVersion(1, 7), 0);
    translator.begin_turn();
    assert_eq!(translate(&mut translator, &[requesting()]), []);
    let events: Vec<&str> = translator.interrupt_step().iter().map(|event| event.kind).collect();
    assert_eq!(events, ["StepBegin", "StepInterrupted"]);
}

#[test]
fn compaction_ends_once() {
    let mut translator = Translator::new(WireVersion(1, 7), 0);
    let status = |fields: Value| {
        let mut frame = json!({"type": "system", "subtype": "status", "uuid": "u", "session_id": "s"});
        frame.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        frame
    };
    let compacting = status(json!({"status": "compacting"}));
    let failed = status(json!({"status": null, "compact_result": "failed"}));
    let events = translate(&mut translator, &[compacting.clone(), compacting, failed.clone(), failed]);
    assert_eq!(kinds(&events), ["CompactionBegin", "CompactionEnd"]);
}
