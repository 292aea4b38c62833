//! Translation of conversations.

use std::sync::Arc;

use whimbrel_wire::RawJson;

use super::*;
use crate::history::History;
use crate::request::RequestPrefix;

fn tool(name: &str, description: &str, schema: &str) -> Arc<ToolSpec> {
    let input_schema = RawJson::parse(schema).unwrap();
    Arc::new(ToolSpec { name: name.into(), description: description.into(), input_schema })
}

fn request(model: &str, history: &mut History) -> Request {
    let schema = r#"{"type":"object","properties":{"z":{"type":"string"},"a":{}}}"#;
    let tools = vec![tool("Bash", "Runs a command", schema), tool("Now", "The time", r#"{"type":"object"}"#)];
    let prefix = RequestPrefix::new(vec!["Be kind.".into(), "Be short.".into()], tools);
    Request {
        max_tokens: 4096,
        effort: Some(Effort::Max),
        betas: vec!["context-1m-2025-08-07".into()],
        session_id: "s".into(),
        ..Request::new(model, Arc::new(prefix), history.snapshot())
    }
}

fn render_body(request: &Request) -> String {
    String::from_utf8(translate(request, &[], &Map::new()).body.concat()).unwrap()
}

/// Body for a conversation of block lists; roles alternate, starting with the user.
fn value(model: &str, conversation: Value) -> Value {
    let mut history = History::new();
    let turns: Vec<Vec<Block>> = serde_json::from_value(conversation).unwrap();
    for (blocks, role) in turns.iter().zip([Role::User, Role::Assistant].into_iter().cycle()) {
        blocks.iter().for_each(|block| history.push(role, block));
    }
    serde_json::from_str(&render_body(&request(model, &mut history))).unwrap()
}

/// The messages after the system prompt.
fn messages(model: &str, conversation: Value) -> Value {
    Value::Array(value(model, conversation)["messages"].as_array().unwrap()[1..].to_vec())
}

fn check(rows: Vec<(&str, Value, Value)>) {
    for (name, conversation, expected) in rows {
        assert_eq!(messages("kimi-k2", conversation), expected, "{name}");
    }
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn thinking(signature: &str) -> Value {
    json!({"type": "thinking", "thinking": "hm", "signature": signature})
}

fn call(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "Bash", "input": {"z": "ls", "a": 1}})
}

fn chat_call(id: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": "Bash", "arguments": r#"{"z":"ls","a":1}"#}})
}

fn result(id: &str, content: impl Into<Value>) -> Value {
    let content = content.into();
    json!({"type": "tool_result", "tool_use_id": id, "content": content})
}

fn failed_result(id: &str, content: Option<&str>) -> Value {
    json!({"type": "tool_result", "tool_use_id": id, "content": content, "is_error": true})
}

fn tool_message(id: &str, content: &str) -> Value {
    json!({"role": "tool", "tool_call_id": id, "content": content})
}

fn base64(kind: &str, media_type: &str) -> Value {
    json!({"type": kind, "source": {"type": "base64", "media_type": media_type, "data": "AAAA"}})
}

fn shown_image() -> Value {
    json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}})
}

#[test]
fn messages_come_last_in_a_request() {
    let mut history = History::new();
    history.push(Role::User, &Block::text("hi"));
    assert_eq!(
        render_body(&request("kimi-k2", &mut history)),
        concat!(
            r#"{"model":"kimi-k2","stream":true,"stream_options":{"include_usage":true},"max_tokens":4096,"tools":["#,
            r#"{"type":"function","function":{"name":"Bash","description":"Runs a command","#,
            r#""parameters":{"type":"object","properties":{"z":{"type":"string"},"a":{}}}}},"#,
            r#"{"type":"function","function":{"name":"Now","description":"The time","#,
            r#""parameters":{"type":"object","properties":{}}}}],"#,
            r#""messages":[{"role":"system","content":"Be kind.\n\nBe short."},{"role":"user","content":"hi"}]}"#,
        )
    );
}

#[test]
fn consecutive_requests_share_a_byte_prefix() {
    let mut history = History::new();
    let mut before = String::new();
    let push =
        |history: &mut History, role, block| history.push(role, &serde_json::from_value(block).unwrap());
    for turn in 0..20 {
        push(&mut history, Role::User, text(&format!("question {turn} {}", "x".repeat(9_000))));
        let now = render_body(&request("kimi-k2-thinking", &mut history));
        assert!(now.starts_with(&before), "turn {turn}");
        before = now.strip_suffix("]}").unwrap().to_owned();
        let id = format!("c{turn}");
        push(&mut history, Role::Assistant, thinking(""));
        push(&mut history, Role::Assistant, call(&id));
        push(&mut history, Role::User, result(&id, vec![text("done"), base64("image", "image/png")]));
        push(&mut history, Role::Assistant, text("ok"));
    }
}

#[test]
fn user_messages_are_translated() {
    check(vec![
        (
            "texts of one side are joined",
            json!([[text("one"), text("two")]]),
            json!([{"role": "user", "content": "one\ntwo"}]),
        ),
        (
            "a picture is a data URL",
            json!([[text("look"), base64("image", "image/png")]]),
            json!([{"role": "user", "content": [text("look"), shown_image()]}]),
        ),
        (
            "a picture at an address stays there",
            json!([[{"type": "image", "source": {"type": "url", "url": "https://x.test/a.png"}}]]),
            json!([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://x.test/a.png"}}]}]),
        ),
        (
            "a PDF is a file, a text document is text",
            json!([[
                base64("document", "application/pdf"),
                {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "words"}},
            ]]),
            json!([{"role": "user", "content": [
                {"type": "file", "file": {"filename": "document.pdf", "file_data": "data:application/pdf;base64,AAAA"}},
                text("words"),
            ]}]),
        ),
        (
            "a file of another provider is named as unavailable",
            json!([[{"type": "image", "source": {"type": "file", "file_id": "f1"}}]]),
            json!([{"role": "user", "content": "(image not available here: f1)"}]),
        ),
    ]);
}

#[test]
fn assistant_messages_are_translated() {
    check(vec![
        (
            "a call keeps its id, and its reasoning goes back",
            json!([[text("go")], [thinking(""), call("c1")]]),
            json!([
                {"role": "user", "content": "go"},
                {"role": "assistant", "content": null, "reasoning_content": "hm", "tool_calls": [chat_call("c1")]},
            ]),
        ),
        (
            "signed reasoning came from elsewhere and stays here",
            json!([[], [thinking("sig"), text("well"), call("c1")]]),
            json!([{"role": "assistant", "content": "well", "tool_calls": [chat_call("c1")]}]),
        ),
        (
            "reasoning without a call is not sent, nor an empty message",
            json!([[], [thinking("")], [text("go")], [thinking(""), text("well")]]),
            json!([{"role": "user", "content": "go"}, {"role": "assistant", "content": "well"}]),
        ),
        (
            "blocks of another provider are left out",
            json!([[], [
                {"type": "redacted_thinking", "data": "zz"},
                {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
                text("found"),
            ]]),
            json!([{"role": "assistant", "content": "found"}]),
        ),
    ]);
}

#[test]
fn tool_results_are_translated() {
    check(vec![
        (
            "they follow their calls directly, other content comes after them",
            json!([
                [],
                [call("c1"), call("c2")],
                [result("c1", "a.txt"), text("and hurry"), result("c2", vec![text("x"), text("y")]),]
            ]),
            json!([
                {"role": "assistant", "content": null, "tool_calls": [chat_call("c1"), chat_call("c2")]},
                tool_message("c1", "a.txt"),
                tool_message("c2", "x\ny"),
                {"role": "user", "content": "and hurry"},
            ]),
        ),
        (
            "an error says that it is one, once",
            json!([[
                failed_result("c1", Some("no such file")),
                failed_result("c2", Some("ERROR: boom")),
                failed_result("c3", None),
                result("c4", ""),
            ]]),
            json!([
                tool_message("c1", "Error: no such file"),
                tool_message("c2", "ERROR: boom"),
                tool_message("c3", "Error: (no output)"),
                tool_message("c4", "(no output)"),
            ]),
        ),
        (
            "a picture follows in a user message",
            json!([[result("c1", vec![base64("image", "image/png")])]]),
            json!([
                tool_message("c1", "(see the attachment below)"),
                {"role": "user", "content": [text("Attached to the result of call c1:"), shown_image()]},
            ]),
        ),
    ]);
}

#[test]
fn openai_models_get_no_reasoning_back() {
    for (model, resent) in [("gpt-4o", false), ("o3", false), ("gpt-oss:20b", true), ("deepseek-chat", true)]
    {
        let messages = messages(model, json!([[], [thinking(""), call("c1")]]));
        assert_eq!(messages[0].get("reasoning_content").is_some(), resent, "{model}");
    }
}

#[test]
fn model_name_selects_limit_field_and_effort() {
    let old = "max_tokens";
    let new = "max_completion_tokens";
    for (model, limit, effort) in [
        ("gpt-4o", old, None),
        ("gpt-4.1-mini", old, None),
        ("o1", new, Some("high")),
        ("o1-mini", new, None),
        ("o3-mini-2025-01-31", new, Some("high")),
        ("o4-mini", new, Some("high")),
        ("openai/o3", new, Some("high")),
        ("gpt-5", new, Some("high")),
        ("gpt-5.2-codex", new, Some("xhigh")),
        ("openai/gpt-5-mini", new, Some("high")),
        ("gpt-5-chat-latest", new, None),
        ("gpt-oss:120b", old, Some("high")),
        ("openai/gpt-oss-20b", old, Some("high")),
        ("kimi-k2-thinking", old, None),
        ("olmo-3", old, None),
        ("qwen3:8b", old, None),
    ] {
        let body = value(model, json!([]));
        assert_eq!(body[limit], 4096, "{model}");
        assert!(body.get(if limit == old { new } else { old }).is_none(), "{model}");
        assert_eq!(body.get("reasoning_effort").and_then(Value::as_str), effort, "{model}");
    }
    assert_eq!(reasoning_effort("gpt-5", Effort::Low), Some("low"));
    assert_eq!(reasoning_effort("gpt-5", Effort::Medium), Some("medium"));
}

#[test]
fn ids_of_earlier_calls_are_collected() {
    let content = serde_json::from_value(json!([text("x"), call("c1")])).unwrap();
    let translated =
        translate_messages(&[ApiMessage { role: Role::Assistant, content }], ReasoningPolicy::Resend);
    assert_eq!(translated.calls, ["c1".to_owned()].into());
}

#[test]
fn frozen_parts_are_translated_once() {
    let mut history = History::new();
    let mut push_turn = |number: usize| {
        let id = format!("call_{number}");
        history.push(Role::User, &Block::text("x".repeat(9_000)));
        history.push(Role::Assistant, &serde_json::from_value(call(&id)).unwrap());
        history.push(Role::User, &serde_json::from_value(result(&id, "done")).unwrap());
        history.clone()
    };
    let mut before = (0..40).map(&mut push_turn).last().unwrap();
    let mut after = push_turn(40);
    let (first, second) = (
        translate(&request("kimi-k2", &mut before), &[], &Map::new()).body,
        translate(&request("kimi-k2", &mut after), &[], &Map::new()).body,
    );
    let shared = first.iter().filter(|part| second.iter().any(|other| other.as_ptr() == part.as_ptr()));
    let shared: usize = shared.map(Bytes::len).sum();
    let all: usize = first.iter().map(Bytes::len).sum();
    assert!(all - shared < 80_000, "{shared} of {all} bytes are shared");

    // Translating part by part gives the same as translating everything at once.
    let mut fresh = History::new();
    for message in after.messages() {
        message.content.iter().for_each(|block| fresh.push(message.role, block));
    }
    assert_eq!(render_body(&request("kimi-k2", &mut fresh)), String::from_utf8(second.concat()).unwrap());
    let calls = translate(&request("kimi-k2", &mut after), &[], &Map::new()).calls;
    assert!(calls.contains("call_0") && calls.contains("call_40") && !calls.contains("call_41"));
}

#[test]
fn request_without_a_system_prompt_starts_with_the_messages() {
    let mut history = History::new();
    history.push(Role::User, &Block::text("hi"));
    let bare = Request::new("m", Arc::new(RequestPrefix::new(vec![], vec![])), history.snapshot());
    let body: Value = serde_json::from_str(&render_body(&bare)).unwrap();
    assert_eq!(body["messages"], json!([{"role": "user", "content": "hi"}]));
    assert_eq!(body.get("tools"), None);
    let empty = Request::new("m", Arc::new(RequestPrefix::new(vec![], vec![])), History::new().snapshot());
    assert_eq!(serde_json::from_str::<Value>(&render_body(&empty)).unwrap()["messages"], json!([]));
}

#[test]
fn fields_of_the_program_replace_those_of_the_same_name() {
    let mut history = History::new();
    history.push(Role::User, &Block::text("hi"));
    let request = request("kimi-k2", &mut history);
    let Value::Object(fields) = json!({"max_tokens": 7, "prompt_cache_key": "s"}) else { panic!() };
    let body = translate(&request, &[], &fields).body.concat();
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!((&body["max_tokens"], &body["prompt_cache_key"]), (&json!(7), &json!("s")));
    assert_eq!((&body["model"], &body["stream"]), (&json!("kimi-k2"), &json!(true)));
    assert_eq!(body["messages"].as_array().unwrap().len(), 2);
}
