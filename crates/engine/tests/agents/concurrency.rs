//! Many agents at once.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::json;
use whimbrel_testkit::{Host, ModelRequest, Reply, Script};

use super::agent_input;

const AGENT_COUNT: usize = 200;

/// The first reply starts all agents; each agent replies with its number.
fn next_reply(request: &ModelRequest) -> Reply {
    let text = request.last_text();
    match text.lines().rev().find_map(|line| line.strip_prefix("You are number ")) {
        Some(number) => Reply::text(format!("Number {number} was here.")).delay(Duration::from_millis(2)),
        None if request.messages().len() > 1 => Reply::text("All have reported."),
        None => (0..AGENT_COUNT).fold(Reply::empty(), |reply, number| {
            reply.and_tool("Agent", agent_input(&format!("You are number {number}"), json!({})))
        }),
    }
}

#[tokio::test]
async fn two_hundred_agents_queue_fifo_within_the_limit() {
    let mut host = Host::with_script(Script::from_fn(next_reply))
        .env("WHIMBREL_AGENTS_AT_ONCE", "7")
        .timeout(Duration::from_secs(60))
        .start()
        .await
        .unwrap();
    assert_eq!(host.run("Start all agents.").await.unwrap().result.as_deref(), Some("All have reported."));
    let results = host.model_requests().last().unwrap().messages().last().unwrap()["content"].clone();
    let texts: BTreeSet<String> = results
        .as_array()
        .unwrap()
        .iter()
        .map(|result| result["content"][0]["text"].as_str().unwrap_or_default().to_owned())
        .collect();
    let expected: BTreeSet<String> =
        (0..AGENT_COUNT).map(|number| format!("Number {number} was here.")).collect();
    assert_eq!(texts, expected);
    // Count of agents between their first frame and their end.
    let (mut running, mut max_running) = (0_usize, 0);
    for received in host.received() {
        if received.json["type"] == "user" && !received.json["parent_tool_use_id"].is_null() {
            running += 1;
            max_running = max_running.max(running);
        }
        if received.json["subtype"] == "task_notification" {
            running -= 1;
        }
    }
    assert!(max_running <= 7, "{max_running} at once");
    // FIFO order, up to the reordering that seven parallel agents allow.
    let order: Vec<usize> = host
        .model_requests()
        .iter()
        .filter_map(|request| {
            request
                .last_text()
                .lines()
                .rev()
                .find_map(|line| line.strip_prefix("You are number ")?.parse().ok())
        })
        .collect();
    for (position, number) in order.iter().enumerate() {
        assert!(position.abs_diff(*number) <= 14, "agent {number} ran at position {position}");
    }
    assert_eq!(host.system_frames("task_notification").len(), AGENT_COUNT);
}
