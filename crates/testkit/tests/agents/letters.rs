//! Letters between many teammates, all the way: models that write them, calls that carry them, turns that read them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use whimbrel_testkit::{Asked, Host, Reply, Script};

use super::errand;

const MATES: usize = 50;

/// How many letters each writes to single others as soon as it is there.
const FIRST: usize = 4;

/// How many it writes to everybody, the lead included, once all are there.
const TO_ALL: usize = 4;

/// What somebody has read, as pairs of writer and number, in the order of reading; the lead is none.
type Read = Arc<Mutex<BTreeMap<Option<usize>, Vec<(usize, usize)>>>>;

/// The teammate that is asked; none if it is the lead.
fn who(asked: &Asked) -> Option<usize> {
    asked.system().split("You are m").nth(1)?.split(',').next()?.parse().ok()
}

/// The letters in a text.
fn letters(text: &str) -> impl Iterator<Item = (usize, usize)> {
    let parts = text.lines().filter_map(|line| line.strip_prefix("letter ")?.split_once(" of "));
    parts.filter_map(|(nth, writer)| Some((writer.parse().ok()?, nth.parse().ok()?)))
}

fn letter(nth: usize, me: usize) -> String {
    format!("letter {nth} of {me}")
}

/// The lead starts everybody with one reply, and says when all are there.
fn lead(text: &str) -> Reply {
    if text.contains("is founded") {
        (0..MATES).fold(Reply::nothing(), |reply, mate| {
            reply.and_tool("Agent", errand("Talk.", json!({"name": format!("m{mate}")})))
        })
    } else if text.contains("has joined") {
        Reply::tool("SendMessage", json!({"type": "broadcast", "content": "All are here."}))
    } else if text.contains("Go.") {
        Reply::tool("TeamCreate", json!({"team_name": "crowd"}))
    } else {
        Reply::text("Noted.")
    }
}

/// A teammate writes to those who come after it, and later to everybody.
fn mate(text: &str, me: usize) -> Reply {
    let (begins, all_are_here) = (text.contains("Talk."), text.contains("All are here."));
    let first = (0..FIRST).filter(|_| begins).map(|nth| {
        let to = format!("m{}", (me + 1 + nth % 2) % MATES);
        json!({"recipient": to, "content": letter(nth, me)})
    });
    let to_all = (FIRST..FIRST + TO_ALL).filter(|_| all_are_here);
    let to_all = to_all.map(|nth| json!({"type": "broadcast", "content": letter(nth, me)}));
    match begins || all_are_here {
        true => {
            first.chain(to_all).fold(Reply::nothing(), |reply, input| reply.and_tool("SendMessage", input))
        }
        // A model that takes its time finds more letters at once.
        false => Reply::text("Read.").after(Duration::from_millis(400)),
    }
}

#[tokio::test]
async fn ten_thousand_letters_of_a_real_run_are_read_once_each_and_in_the_order_of_their_writers() {
    let read = Read::default();
    let by = Arc::clone(&read);
    let script = Script::by(move |asked| {
        let (me, text) = (who(asked), asked.last_text());
        by.lock().unwrap().entry(me).or_default().extend(letters(&text));
        me.map_or_else(|| lead(&text), |me| mate(&text, me))
    });
    let mut host = Host::with(script)
        .env("CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS", "1")
        .env("WHIMBREL_TEAM_LETTERS", "20000")
        .deadline(Duration::from_secs(120))
        .start()
        .await
        .unwrap();
    host.say("Go.").await.unwrap();
    assert_eq!(host.finish().await.unwrap().code, 0);
    let read = read.lock().unwrap();
    for (me, got) in &*read {
        let expected = match me {
            Some(_) => FIRST + TO_ALL * (MATES - 1),
            None => TO_ALL * MATES,
        };
        assert_eq!(got.len(), expected, "{me:?} has read as much as was written to it");
        for writer in 0..MATES {
            let of_writer = got.iter().filter(|(from, _)| *from == writer);
            let numbers: Vec<usize> = of_writer.map(|(_, nth)| *nth).collect();
            assert!(numbers.is_sorted_by(|one, next| one < next), "m{writer} to {me:?}: {numbers:?}");
        }
    }
    let all: usize = read.values().map(Vec::len).sum();
    assert_eq!((read.len(), all), (MATES + 1, MATES * (FIRST + TO_ALL * MATES)));
}
