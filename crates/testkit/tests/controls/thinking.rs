//! Thinking: within a turn the model gets its thoughts back, with their signatures.

use serde_json::json;
use whimbrel_testkit::{Host, Reply};

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
