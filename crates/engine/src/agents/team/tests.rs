//! What a team promises.

use futures::FutureExt;

use super::letter::Letter;
use super::*;
use crate::inbox::{Post, Posts, inbox};

fn team() -> (Teams, Posts) {
    let (sender, posts) = inbox();
    let teams = Teams::new(sender, None, "session".into(), Some(7));
    teams.create("crew", "d").unwrap();
    (teams, posts)
}

fn join(teams: &Teams, name: &str) -> String {
    teams.join(MemberFacts { name: name.into(), ..MemberFacts::default() }).unwrap().name
}

fn woken(posts: &mut Posts) -> Vec<bool> {
    let mut found = Vec::new();
    while let Ok(post) = posts.try_recv() {
        if let Post::News(news) = post {
            found.push(news.wakes);
        }
    }
    found
}

#[test]
fn mail_is_pushed_and_whoever_has_some_is_active() {
    let (teams, _posts) = team();
    join(&teams, "m1");
    assert!(teams.mail("m1").now_or_never().is_none(), "no mail yet");
    assert_eq!(teams.active(), 0);
    let receipt = teams.send("m1@crew", Letter::new(LEAD, "work", None)).unwrap();
    assert_eq!(receipt, Receipt { to: "m1".into(), reader_works: false });
    assert_eq!(teams.active(), 1, "from the moment it is written to");
    let mail = teams.mail("m1").now_or_never().unwrap().unwrap();
    assert_eq!(mail[0].text, "work");
    assert!(teams.send("m1", Letter::new(LEAD, "more", None)).unwrap().reader_works);
    teams.rest("m1");
    assert_eq!(teams.active(), 1, "there is more");
    teams.mail("m1").now_or_never().unwrap().unwrap();
    teams.rest("m1");
    assert_eq!(teams.active(), 0);
}

#[test]
fn the_lead_is_woken_by_mail_and_by_whoever_rests_without_a_word() {
    let (teams, mut posts) = team();
    for name in ["m1", "m2"] {
        join(&teams, name);
        teams.send(name, Letter::new(LEAD, "work", None)).unwrap();
        teams.mail(name).now_or_never().unwrap().unwrap();
    }
    teams.send(LEAD, Letter::new("m1", "found it", None)).unwrap();
    assert_eq!(woken(&mut posts), [true]);
    teams.rest("m1");
    assert_eq!(woken(&mut posts), [false], "it has written before");
    teams.rest("m2");
    assert_eq!(woken(&mut posts), [true], "nothing was heard of it");
}

#[test]
fn names_are_unique_and_bad_ones_are_refused() {
    let (teams, _posts) = team();
    assert_eq!([join(&teams, "m"), join(&teams, "m"), join(&teams, LEAD)], ["m", "m-2", "team-lead-2"]);
    for bad in ["", "../x", ".hidden", "a/b", "x\n"] {
        let fresh = Teams::new(inbox().0, None, "s".into(), None);
        assert_eq!(fresh.create(bad, "d").is_err(), bad != "x\n", "{bad:?}");
    }
    let error = teams.send("nobody", Letter::new(LEAD, "x", None)).unwrap_err();
    assert!(error.contains("nobody") && error.contains("m-2"), "{error}");
}

#[test]
fn letters_come_to_an_end() {
    let (teams, _posts) = team();
    join(&teams, "a");
    join(&teams, "b");
    let mut written = 0;
    let error = loop {
        match teams.send(["a", "b"][written % 2], Letter::new("x", "ping", None)) {
            Ok(_) => written += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(written, 7);
    assert!(error.contains("limit"), "{error}");
}

#[test]
fn a_team_is_dissolved_only_when_nobody_works_and_then_everybody_leaves() {
    let (teams, _posts) = team();
    join(&teams, "m1");
    teams.send("m1", Letter::new(LEAD, "work", None)).unwrap();
    assert!(teams.delete().unwrap_err().contains("m1"));
    teams.mail("m1").now_or_never().unwrap().unwrap();
    teams.rest("m1");
    teams.delete().unwrap();
    assert_eq!(teams.mail("m1").now_or_never().unwrap(), None);
    assert!(teams.delete().is_err() && teams.name().is_none());
    assert!(teams.create("crew", "again").is_ok());
}

#[test]
fn everybody_but_the_writer_gets_a_broadcast() {
    let (teams, mut posts) = team();
    for name in ["a", "b"] {
        join(&teams, name);
    }
    let to: Vec<String> = teams
        .broadcast(&Letter::new("a", "hear", None))
        .unwrap()
        .into_iter()
        .map(|receipt| receipt.to)
        .collect();
    assert_eq!(to, ["b", LEAD]);
    assert_eq!(woken(&mut posts), [true]);
}

/// What a teammate has got, as pairs of writer and number.
type Got = Vec<(String, usize)>;

const MATES: usize = 50;
const EACH: usize = 200;

/// Writes its share to everybody in turn, then reads until it is told to leave.
async fn exchange(teams: Teams, me: usize) -> Got {
    let name = format!("m{me}");
    for nth in 0..EACH {
        let to = format!("m{}", (me + 1 + nth % (MATES - 1)) % MATES);
        teams.send(&to, Letter::new(&name, nth.to_string(), None)).unwrap();
        tokio::task::yield_now().await;
    }
    let mut got = Vec::new();
    while got.len() < EACH {
        for letter in teams.mail(&name).await.unwrap() {
            got.push((letter.from, letter.text.parse().unwrap()));
        }
        teams.rest(&name);
    }
    got
}

#[tokio::test]
async fn ten_thousand_letters_among_fifty_arrive_once_each_and_in_the_order_of_their_writers() {
    let home = tempfile::tempdir().unwrap();
    let (sender, _posts) = inbox();
    let teams = Teams::new(sender, Some(home.path().into()), "session".into(), Some(MATES * EACH));
    teams.create("crowd", "d").unwrap();
    for me in 0..MATES {
        join(&teams, &format!("m{me}"));
    }
    let talks: Vec<_> = (0..MATES).map(|me| tokio::spawn(exchange(teams.clone(), me))).collect();
    let mut all = 0;
    for (me, talk) in talks.into_iter().enumerate() {
        let got = talk.await.unwrap();
        all += got.len();
        for writer in (0..MATES).map(|writer| format!("m{writer}")) {
            let numbers: Vec<usize> =
                got.iter().filter(|(from, _)| *from == writer).map(|(_, nth)| *nth).collect();
            assert!(numbers.is_sorted_by(|one, next| one < next), "{writer} to m{me}: {numbers:?}");
        }
    }
    assert_eq!(all, MATES * EACH);
    let error = teams.send("m1", Letter::new("m0", "one more", None)).unwrap_err();
    assert!(error.contains("limit"), "{error}");
    assert_eq!(teams.active(), 0, "nothing is left over");
    teams.settle().await;
    let mut kept = 0;
    for me in 0..MATES {
        let text = std::fs::read_to_string(home.path().join(format!("teams/crowd/inboxes/m{me}.json")));
        let letters: Vec<Letter> = serde_json::from_str(&text.unwrap()).unwrap();
        kept += letters.iter().filter(|letter| letter.read).count();
    }
    assert_eq!(kept, MATES * EACH, "the record has them all");
}
