//! Messages between many teammates, end to end: written by models, sent by tool calls, read in turns.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use whimbrel_testkit::{Host, ModelRequest, Reply, Script};

use super::agent_input;

const TEAMMATE_COUNT: usize = 50;

/// Direct messages that each teammate sends when it starts.
const DIRECT_MESSAGES: usize = 4;

/// Broadcasts that each teammate sends to all, lead included, once all have started.
const BROADCASTS: usize = 4;

/// Messages read by each agent, as (sender, number) in reading order; the key `None` is the lead.
type ReadMessages = Arc<Mutex<BTreeMap<Option<usize>, Vec<(usize, usize)>>>>;

/// The teammate that makes the request; `None` for the lead.
fn teammate_number(request: &ModelRequest) -> Option<usize> {
    request.system_prompt().split("You are m").nth(1)?.split(',').next()?.parse().ok()
}

fn parse_messages(text: &str) -> impl Iterator<Item = (usize, usize)> {
    let parts = text.lines().filter_map(|line| line.strip_prefix("message ")?.split_once(" of "));
    parts.filter_map(|(nth, sender)| Some((sender.parse().ok()?, nth.parse().ok()?)))
}

fn message_text(nth: usize, sender: usize) -> String {
    format!("message {nth} of {sender}")
}

/// The lead starts all teammates with one reply and announces when all are there.
fn lead_reply(text: &str) -> Reply {
    if text.contains("Created the team") {
        (0..TEAMMATE_COUNT).fold(Reply::empty(), |reply, number| {
            reply.and_tool("Agent", agent_input("Talk.", json!({"name": format!("m{number}")})))
        })
    } else if text.contains("has joined") {
        Reply::tool("SendMessage", json!({"type": "broadcast", "content": "All are here."}))
    } else if text.contains("Go.") {
        Reply::tool("TeamCreate", json!({"team_name": "crowd"}))
    } else {
        Reply::text("Noted.")
    }
}

/// A teammate sends direct messages to its successors, and broadcasts later.
fn teammate_reply(text: &str, number: usize) -> Reply {
    let (starts, all_are_here) = (text.contains("Talk."), text.contains("All are here."));
    let direct = (0..DIRECT_MESSAGES).filter(|_| starts).map(|nth| {
        let to = format!("m{}", (number + 1 + nth % 2) % TEAMMATE_COUNT);
        json!({"recipient": to, "content": message_text(nth, number)})
    });
    let broadcasts = (DIRECT_MESSAGES..DIRECT_MESSAGES + BROADCASTS).filter(|_| all_are_here);
    let broadcasts = broadcasts.map(|nth| json!({"type": "broadcast", "content": message_text(nth, number)}));
    match starts || all_are_here {
        true => {
            direct.chain(broadcasts).fold(Reply::empty(), |reply, input| reply.and_tool("SendMessage", input))
        }
        // A slow reply lets messages accumulate, so that several are read at once.
        false => Reply::text("Read.").delay(Duration::from_millis(400)),
    }
}

#[tokio::test]
async fn ten_thousand_messages_are_read_once_in_sender_order() {
    let read = ReadMessages::default();
    let recorder = Arc::clone(&read);
    let script = Script::from_fn(move |request| {
        let (reader, text) = (teammate_number(request), request.last_text());
        recorder.lock().unwrap().entry(reader).or_default().extend(parse_messages(&text));
        reader.map_or_else(|| lead_reply(&text), |reader| teammate_reply(&text, reader))
    });
    let mut host = Host::with_script(script)
        .env("CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS", "1")
        .env("WHIMBREL_TEAM_MAX_MESSAGES", "20000")
        .timeout(Duration::from_secs(120))
        .start()
        .await
        .unwrap();
    host.send_prompt("Go.").await.unwrap();
    assert_eq!(host.finish().await.unwrap().code, 0);
    let read = read.lock().unwrap();
    for (reader, messages) in &*read {
        let expected = match reader {
            Some(_) => DIRECT_MESSAGES + BROADCASTS * (TEAMMATE_COUNT - 1),
            None => BROADCASTS * TEAMMATE_COUNT,
        };
        assert_eq!(messages.len(), expected, "{reader:?} has read all its messages");
        for sender in 0..TEAMMATE_COUNT {
            let from_sender = messages.iter().filter(|(from, _)| *from == sender);
            let numbers: Vec<usize> = from_sender.map(|(_, nth)| *nth).collect();
            assert!(numbers.is_sorted_by(|one, next| one < next), "m{sender} to {reader:?}: {numbers:?}");
        }
    }
    let total: usize = read.values().map(Vec::len).sum();
    assert_eq!(
        (read.len(), total),
        (TEAMMATE_COUNT + 1, TEAMMATE_COUNT * (DIRECT_MESSAGES + BROADCASTS * TEAMMATE_COUNT))
    );
}
