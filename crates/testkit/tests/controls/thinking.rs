//! Thinking: within a turn the model gets its thoughts back, with their signatures.

use serde_json::{Value, json};
use whimbrel_testkit::{Host, Reply};
use whimbrel_wire::control::SetMaxThinkingTokens;

#[tokio::test]
async fn thoughts_and_their_signatures_are_sent_back_within_a_turn() {
    let script = [
        Reply::tool("Read", json!({"file_path": "a.txt"})).thinking("Let me see."),
        Reply::tool("Read", json!({"file_path": "a.txt"})).thinking("Once more."),
        Reply::text("Seen."),
    ];
    let mut host = Host::with(script).file("a.txt", "x").start().await.unwrap();
    assert_eq!(host.run("Read.").await.unwrap().result.as_deref(), Some("Seen."));
    let asked = host.asked();
    let thoughts = |at: usize| -> Vec<(String, bool)> {
        let blocks = asked[at].messages().iter().flat_map(|message| message["content"].as_array().unwrap());
        let thoughts = blocks.filter(|block| block["type"] == "thinking");
        thoughts
            .map(|block| {
                let signed = block["signature"].as_str().is_some_and(|text| !text.is_empty());
                (block["thinking"].as_str().unwrap().to_owned(), signed)
            })
            .collect()
    };
    assert_eq!(thoughts(0), []);
    assert_eq!(thoughts(1), [("Let me see.".to_owned(), true)]);
    assert_eq!(thoughts(2), [("Let me see.".to_owned(), true), ("Once more.".to_owned(), true)]);
    let first = asked[1].messages()[1]["content"][0]["type"].clone();
    assert_eq!(first, "thinking", "a thought stands before the call that it led to");
    let betas = host.api().unwrap().requests()[0].headers["anthropic-beta"].clone();
    assert!(betas.contains("interleaved-thinking"), "{betas}");
}

#[tokio::test]
async fn the_host_says_how_much_is_thought_from_the_next_call_on() {
    let script = ["1", "2", "3", "4"].map(Reply::text);
    let mut host = Host::with(script).start().await.unwrap();
    host.run("As usual.").await.unwrap();
    for limit in [Some(2_048), Some(0), None] {
        let asked = SetMaxThinkingTokens { max_thinking_tokens: limit, ..SetMaxThinkingTokens::default() };
        host.ask(asked).await.unwrap();
        host.run("And now?").await.unwrap();
    }
    let thinking: Vec<Value> = host.asked().iter().map(|asked| asked.body["thinking"].clone()).collect();
    assert_eq!(thinking[1], json!({"type": "enabled", "budget_tokens": 2_048}));
    assert!(thinking[2].is_null() || thinking[2] == json!({"type": "disabled"}), "{}", thinking[2]);
    assert_eq!(thinking[3], thinking[0], "the default again");
}

#[tokio::test]
async fn thoughts_between_calls_stay_between_them() {
    let first = json!({"file_path": "a.txt"});
    let reply = Reply::tool("Read", first.clone()).thinking("First this.");
    let reply = reply.and_block(json!({"type": "thinking", "thinking": "Now that.", "signature": "s2"}));
    let script = [reply.and_tool("Read", first), Reply::text("Seen.")];
    let mut host = Host::with(script).file("a.txt", "x").start().await.unwrap();
    assert_eq!(host.run("Read.").await.unwrap().result.as_deref(), Some("Seen."));
    let asked = host.asked();
    let said = asked[1].messages().iter().find(|message| message["role"] == "assistant").unwrap();
    let kinds: Vec<&Value> = said["content"].as_array().unwrap().iter().map(|block| &block["type"]).collect();
    assert_eq!(kinds, ["thinking", "tool_use", "thinking", "tool_use"]);
    assert_eq!(said["content"][2]["signature"], "s2");
}
