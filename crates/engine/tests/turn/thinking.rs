//! Thinking: blocks are sent back within a turn with their signatures, and the host controls it.

use serde_json::{Value, json};
use whimbrel_testkit::{Host, Reply};
use whimbrel_wire::control::{Response, SetMaxThinkingTokens};
use whimbrel_wire::options::{Effort, Thinking, ThinkingDisplay};

#[tokio::test]
async fn thinking_blocks_are_sent_back_with_signatures() {
    let script = [
        Reply::tool("Read", json!({"file_path": "a.txt"})).with_thinking("Let me see."),
        Reply::tool("Read", json!({"file_path": "a.txt"})).with_thinking("Once more."),
        Reply::text("Seen."),
    ];
    let mut host = Host::with_script(script).file("a.txt", "x").start().await.unwrap();
    assert_eq!(host.run("Read.").await.unwrap().result.as_deref(), Some("Seen."));
    let requests = host.model_requests();
    let thinking_blocks = |index: usize| -> Vec<(String, bool)> {
        let blocks =
            requests[index].messages().iter().flat_map(|message| message["content"].as_array().unwrap());
        let thinking_blocks = blocks.filter(|block| block["type"] == "thinking");
        thinking_blocks
            .map(|block| {
                let signed = block["signature"].as_str().is_some_and(|text| !text.is_empty());
                (block["thinking"].as_str().unwrap().to_owned(), signed)
            })
            .collect()
    };
    assert_eq!(thinking_blocks(0), []);
    assert_eq!(thinking_blocks(1), [("Let me see.".to_owned(), true)]);
    assert_eq!(thinking_blocks(2), [("Let me see.".to_owned(), true), ("Once more.".to_owned(), true)]);
    let first = requests[1].messages()[1]["content"][0]["type"].clone();
    assert_eq!(first, "thinking", "thinking precedes its call");
    let betas = host.api().unwrap().requests()[0].headers["anthropic-beta"].clone();
    assert!(betas.contains("interleaved-thinking"), "{betas}");
}

#[tokio::test]
async fn max_thinking_tokens_applies_from_the_next_request() {
    let script = ["1", "2", "3", "4"].map(Reply::text);
    let mut host = Host::with_script(script).start().await.unwrap();
    host.run("As usual.").await.unwrap();
    for limit in [Some(2_048), Some(0), None] {
        let request =
            SetMaxThinkingTokens { max_thinking_tokens: Some(limit), ..SetMaxThinkingTokens::default() };
        host.send_request(request).await.unwrap();
        host.run("And now?").await.unwrap();
    }
    let thinking: Vec<Value> =
        host.model_requests().iter().map(|request| request.body["thinking"].clone()).collect();
    assert_eq!(thinking[1], json!({"type": "enabled", "budget_tokens": 2_048}));
    assert!(thinking[2].is_null() || thinking[2] == json!({"type": "disabled"}), "{}", thinking[2]);
    assert_eq!(thinking[3], thinking[0], "the default is restored");
}

#[tokio::test]
async fn interleaved_thinking_keeps_its_position() {
    let first = json!({"file_path": "a.txt"});
    let reply = Reply::tool("Read", first.clone()).with_thinking("First this.");
    let reply = reply.and_block(json!({"type": "thinking", "thinking": "Now that.", "signature": "s2"}));
    let script = [reply.and_tool("Read", first), Reply::text("Seen.")];
    let mut host = Host::with_script(script).file("a.txt", "x").start().await.unwrap();
    assert_eq!(host.run("Read.").await.unwrap().result.as_deref(), Some("Seen."));
    let requests = host.model_requests();
    let assistant = requests[1].messages().iter().find(|message| message["role"] == "assistant").unwrap();
    let kinds: Vec<&Value> =
        assistant["content"].as_array().unwrap().iter().map(|block| &block["type"]).collect();
    assert_eq!(kinds, ["thinking", "tool_use", "thinking", "tool_use"]);
    assert_eq!(assistant["content"][2]["signature"], "s2");
}

#[tokio::test]
async fn chat_reasoning_is_sent_back_with_its_tool_call() {
    let script = [
        Reply::tool("Read", json!({"file_path": "a.txt"})).with_thinking("Let me see."),
        Reply::text("Seen."),
        Reply::text("As I said."),
    ];
    let host = Host::with_script(script).configure(|options| options.model = Some("openai:kimi-k2".into()));
    let mut host = host.file("a.txt", "x").start().await.unwrap();
    assert_eq!(host.run("Read.").await.unwrap().result.as_deref(), Some("Seen."));
    host.run("Again.").await.unwrap();
    for request in &host.model_requests()[1..] {
        let call = request.messages().iter().find(|message| message["tool_calls"].is_array()).unwrap();
        assert_eq!(call["reasoning_content"], "Let me see.");
    }
}

#[tokio::test]
async fn thinking_parameters_match_the_model() {
    let adaptive = Thinking::Adaptive { display: Some(ThinkingDisplay::Omitted) };
    let rows = [
        ("claude-sonnet-5-5", json!({"type": "adaptive", "display": "omitted"}), json!({"effort": "low"})),
        (
            "claude-sonnet-4-5",
            json!({"type": "enabled", "budget_tokens": 31_999, "display": "omitted"}),
            Value::Null,
        ),
        ("claude-3-5-haiku", Value::Null, Value::Null),
        ("unknown-model", json!({"type": "adaptive", "display": "omitted"}), json!({"effort": "low"})),
    ];
    for (model, thinking, effort) in rows {
        let host = Host::with_script([Reply::text("Yes.")]).configure(|options| {
            options.model = Some(model.into());
            options.thinking = Some(adaptive);
            options.effort = Some(Effort::Low);
        });
        let mut host = host.start().await.unwrap();
        host.run("Hello?").await.unwrap();
        let body = &host.model_requests()[0].body;
        assert_eq!((&body["thinking"], &body["output_config"]), (&thinking, &effort), "{model}");
    }
}

#[tokio::test]
async fn thinking_display_applies_from_the_next_request() {
    let mut host = Host::with_script(["1", "2", "3", "4"].map(Reply::text)).start().await.unwrap();
    host.run("As usual.").await.unwrap();
    let set = |display: Value| json!({"subtype": "set_max_thinking_tokens", "thinking_display": display});
    assert!(matches!(
        host.send_raw_request(set(json!("summarized"))).await.unwrap(),
        Response::Success { .. }
    ));
    host.run("And now?").await.unwrap();
    let rejected = host.send_raw_request(set(json!("highlights"))).await.unwrap();
    assert!(matches!(rejected, Response::Error { .. }), "{rejected:?}");
    host.run("And now?").await.unwrap();
    host.send_raw_request(set(Value::Null)).await.unwrap();
    host.run("And now?").await.unwrap();
    let thinking: Vec<Value> =
        host.model_requests().iter().map(|request| request.body["thinking"].clone()).collect();
    let shown: Vec<&Value> = thinking.iter().map(|thinking| &thinking["display"]).collect();
    assert_eq!(shown, [&Value::Null, &json!("summarized"), &json!("summarized"), &Value::Null]);
    assert_eq!(thinking[0], thinking[3], "other settings stay");
    assert_eq!(thinking[1]["budget_tokens"], thinking[0]["budget_tokens"]);
}
