//! Letters between many teammates, all the way: models that write them, calls that carry them, turns that read them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use whimbrel_testkit::{Asked, Host, Reply, Script};

use super::errand;

const MATES: usize = 50;
const EACH: usize = 200;

/// What each teammate has read, as pairs of writer and number, in the order of reading.
type Read = Arc<Mutex<BTreeMap<usize, Vec<(usize, usize)>>>>;

/// The teammate that is asked; none if it is the lead.
fn who(asked: &Asked) -> Option<usize> {
    asked.system().split("You are m").nth(1)?.split(',').next()?.parse().ok()
}

/// The letters in a text.
fn letters(text: &str) -> impl Iterator<Item = (usize, usize)> {
    let parts = text.lines().filter_map(|line| line.strip_prefix("letter ")?.split_once(" of "));
    parts.filter_map(|(nth, writer)| Some((writer.parse().ok()?, nth.parse().ok()?)))
}

/// The lead starts everybody at once and each writes its share at once, to everybody in turn; then they read.
fn talk(asked: &Asked, read: &Read) -> Reply {
    let Some(me) = who(asked) else {
        let text = asked.last_text();
        return if text.contains("is founded") {
            (0..MATES).fold(Reply::nothing(), |reply, mate| {
                reply.and_tool("Agent", errand("Talk.", json!({"name": format!("m{mate}")})))
            })
        } else if asked.messages().len() == 1 {
            Reply::tool("TeamCreate", json!({"team_name": "crowd"}))
        } else {
            Reply::text("Noted.")
        };
    };
    let mut read = read.lock().unwrap();
    let begins = !read.contains_key(&me);
    read.entry(me).or_default().extend(letters(&asked.last_text()));
    if !begins {
        return Reply::text("Read.");
    }
    (0..EACH).fold(Reply::nothing(), |reply, nth| {
        let to = format!("m{}", (me + 1 + nth % (MATES - 1)) % MATES);
        reply.and_tool("SendMessage", json!({"recipient": to, "content": format!("letter {nth} of {me}")}))
    })
}

#[tokio::test]
async fn ten_thousand_letters_of_a_real_run_are_read_once_each_and_in_the_order_of_their_writers() {
    let read = Read::default();
    let by = Arc::clone(&read);
    let mut host = Host::with(Script::by(move |asked| talk(asked, &by)))
        .env("CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS", "1")
        .env("WHIMBREL_TEAM_LETTERS", (MATES * EACH).to_string())
        .deadline(Duration::from_secs(240))
        .start()
        .await
        .unwrap();
    host.say("Go.").await.unwrap();
    assert_eq!(host.finish().await.unwrap().code, 0);
    let read = read.lock().unwrap();
    for (me, got) in &*read {
        assert_eq!(got.len(), EACH, "m{me} has read as much as was written to it");
        for writer in 0..MATES {
            let numbers: Vec<usize> =
                got.iter().filter(|(from, _)| *from == writer).map(|(_, nth)| *nth).collect();
            assert!(numbers.is_sorted_by(|one, next| one < next), "m{writer} to m{me}: {numbers:?}");
        }
    }
    assert_eq!(read.len(), MATES);
}
