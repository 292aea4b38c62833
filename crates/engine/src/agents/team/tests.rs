//! What a team promises.

use futures::FutureExt;

use super::letter::{Letter, Mail};
use super::requests::Answer;
use super::*;
use crate::inbox::{Post, Posts, inbox};
use crate::permission::Pledge;

fn team() -> (Teams, Posts) {
    let (sender, posts) = inbox();
    let teams = Teams::new(sender, None, "session".into(), Some(7));
    teams.create("crew", "d").unwrap();
    (teams, posts)
}

fn join(teams: &Teams, name: &str) -> Seat {
    as_task(teams, name, name)
}

fn as_task(teams: &Teams, name: &str, task_id: &str) -> Seat {
    let facts = MemberFacts { name: name.into(), task_id: task_id.into(), ..MemberFacts::default() };
    teams.join(&facts, None).unwrap()
}

fn letters(mail: Vec<Mail>) -> Vec<Letter> {
    let letter = |mail: Mail| match mail {
        Mail::Letter(letter) => letter,
        Mail::News(text) => panic!("{text} is no letter"),
    };
    mail.into_iter().map(letter).collect()
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
    let m1 = join(&teams, "m1");
    assert!(m1.mail().now_or_never().is_none(), "no mail yet");
    assert_eq!(teams.active(), 0);
    let receipt = teams.send("m1@crew", Letter::new(LEAD, "work", None)).unwrap();
    assert_eq!(receipt, Receipt { to: "m1".into(), reader_works: false });
    assert_eq!(teams.active(), 1, "from the moment it is written to");
    let mail = m1.mail().now_or_never().unwrap().unwrap();
    assert_eq!(letters(mail)[0].text, "work");
    assert!(teams.send("m1", Letter::new(LEAD, "more", None)).unwrap().reader_works);
    m1.rest();
    assert_eq!(teams.active(), 1, "there is more");
    m1.mail().now_or_never().unwrap().unwrap();
    m1.rest();
    assert_eq!(teams.active(), 0);
}

#[test]
fn the_lead_is_woken_by_mail_and_by_whoever_rests_without_a_word() {
    let (teams, mut posts) = team();
    let [m1, m2] = ["m1", "m2"].map(|name| {
        let seat = join(&teams, name);
        teams.send(name, Letter::new(LEAD, "work", None)).unwrap();
        seat.mail().now_or_never().unwrap().unwrap();
        seat
    });
    teams.send(LEAD, Letter::new("m1", "found it", None)).unwrap();
    assert_eq!(woken(&mut posts), [true]);
    m1.rest();
    assert_eq!(woken(&mut posts), [false], "it has written before");
    m2.rest();
    assert_eq!(woken(&mut posts), [true], "nothing was heard of it");
}

#[test]
fn news_of_background_work_go_to_the_teammate_that_started_it() {
    let (teams, mut posts) = team();
    let ann = as_task(&teams, "ann", "t1");
    assert_eq!(teams.tell(Some("t1"), "built".into()), None);
    assert_eq!((teams.active(), woken(&mut posts)), (1, Vec::new()), "it is woken, and the lead is not");
    assert_eq!(ann.mail().now_or_never().unwrap().unwrap(), [Mail::News("built".into())]);
    for (owner, why) in
        [(None, "the lead's own"), (Some("a1"), "an agent on an errand"), (Some("t2"), "gone")]
    {
        assert_eq!(teams.tell(owner, "built".into()).as_deref(), Some("built"), "{why}");
    }
}

#[test]
fn a_name_with_blanks_is_known_as_it_was_asked_for() {
    let teams = Teams::new(inbox().0, None, "session".into(), None);
    teams.create("my crew", "d").unwrap();
    assert!(teams.is_called("my crew") && teams.is_called("my-crew") && !teams.is_called("crew"));
    let ann = join(&teams, "ann one");
    assert_eq!(ann.name(), "ann-one");
    for to in ["ann one", "ann-one", "ann one@my crew"] {
        assert_eq!(teams.send(to, Letter::new(LEAD, "x", None)).unwrap().to, "ann-one", "{to}");
    }
}

#[test]
fn names_are_unique_and_bad_ones_are_refused() {
    let (teams, _posts) = team();
    let seats = [join(&teams, "m"), join(&teams, "m"), join(&teams, LEAD)];
    assert_eq!(seats.each_ref().map(Seat::name), ["m", "m-2", "team-lead-2"]);
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
    let _seats = ["a", "b"].map(|name| join(&teams, name));
    let mut written = 0;
    let error = loop {
        match teams.send(["a", "b"][written % 2], Letter::new("x", "ping", None)) {
            Ok(_) => written += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(written, 7);
    assert!(error.contains("limit"), "{error}");
    assert!(teams.ask_to_leave("a", "enough".into()).is_ok(), "whoever must end still can be told so");
}

#[test]
fn a_team_is_dissolved_only_when_nobody_works_and_then_everybody_leaves() {
    let (teams, _posts) = team();
    let m1 = join(&teams, "m1");
    teams.send("m1", Letter::new(LEAD, "work", None)).unwrap();
    assert!(teams.delete().unwrap_err().contains("m1"));
    m1.mail().now_or_never().unwrap().unwrap();
    m1.rest();
    teams.delete().unwrap();
    assert_eq!(m1.mail().now_or_never().unwrap(), None);
    assert!(teams.delete().is_err() && teams.name().is_none());
    assert!(teams.create("crew", "again").is_ok());
}

#[test]
fn one_of_a_team_that_is_gone_takes_nothing_from_the_next_one() {
    let (teams, _posts) = team();
    let old = as_task(&teams, "ann", "t1");
    teams.delete().unwrap();
    teams.create("crew", "again").unwrap();
    let new = as_task(&teams, "ann", "t2");
    teams.send("ann", Letter::new(LEAD, "work", None)).unwrap();
    assert_eq!(old.mail().now_or_never().unwrap(), None, "it is not meant");
    old.rest();
    drop(old);
    assert_eq!(new.mail().now_or_never().unwrap().unwrap().len(), 1);
    assert_eq!(teams.names(), [LEAD, "ann"]);
}

#[test]
fn whoever_vanishes_leaves_no_empty_chair_and_the_lead_is_told() {
    let (teams, mut posts) = team();
    drop(join(&teams, "never-began"));
    assert_eq!(woken(&mut posts), [] as [bool; 0]);
    let mut ann = join(&teams, "ann");
    ann.move_in();
    teams.send("ann", Letter::new(LEAD, "work", None)).unwrap();
    ann.mail().now_or_never().unwrap().unwrap();
    drop(ann);
    assert_eq!((woken(&mut posts), teams.active(), teams.names()), (vec![true], 0, vec![LEAD.to_owned()]));
    let mut bob = join(&teams, "bob");
    bob.move_in();
    bob.move_out();
    assert_eq!(woken(&mut posts), [] as [bool; 0], "it has ended in an orderly way");
}

#[test]
fn only_the_answer_to_the_open_request_counts() {
    let (teams, _posts) = team();
    let ann = join(&teams, "ann");
    let yes = || Answer::Yes(String::new());
    assert!(teams.answer_to_leave("ann", Some("shutdown-1@ann"), yes()).is_err(), "nobody has asked");
    let asked = teams.ask_to_leave("ann@crew", "done".into()).unwrap().request;
    let error = teams.answer_to_leave("ann", Some("shutdown-1@ann"), yes()).unwrap_err();
    assert!(error.contains(&asked), "{error}");
    assert!(teams.answer_to_leave("ann", Some(&asked), Answer::No("busy".into())).is_ok());
    assert!(teams.answer_to_leave("ann", Some(&asked), yes()).is_err(), "it is answered");
    assert!(ann.mail().now_or_never().unwrap().is_some(), "it stays");
    teams.ask_to_leave("ann", "now".into()).unwrap();
    assert!(teams.answer_to_leave("ann", None, yes()).is_ok(), "an answer need not name it");
    assert_eq!(ann.mail().now_or_never().unwrap(), None, "it goes");
    for nobody in [LEAD, "bob"] {
        assert!(teams.ask_to_leave(nobody, String::new()).is_err(), "{nobody}");
    }
}

#[test]
fn who_owes_a_plan_is_held_back_until_that_is_approved() {
    let (teams, _posts) = team();
    let pledge = Pledge::default();
    let facts = MemberFacts { name: "ann".into(), ..MemberFacts::default() };
    let _ann = teams.join(&facts, Some(pledge.clone())).unwrap();
    let _bob = join(&teams, "bob");
    assert!(teams.answer_plan("ann", None, Answer::Yes(String::new())).is_err(), "there is no plan yet");
    assert!(teams.hand_in_plan("bob", "p".into()).is_err(), "it owes none");
    let first = teams.hand_in_plan("ann", "first".into()).unwrap().request;
    teams.answer_plan("ann", Some(&first), Answer::No("smaller".into())).unwrap();
    assert!(teams.answer_plan("ann", Some(&first), Answer::Yes(String::new())).is_err(), "it is answered");
    assert!(pledge.holds());
    teams.hand_in_plan("ann", "second".into()).unwrap();
    teams.answer_plan("ann", None, Answer::Yes(String::new())).unwrap();
    assert!(!pledge.holds());
    assert!(teams.hand_in_plan("ann", "third".into()).is_err(), "it owes none any more");
}

#[tokio::test(start_paused = true)]
async fn a_letter_waits_for_whoever_is_about_to_join_and_for_nobody_else() {
    let (teams, _posts) = team();
    let _ann = join(&teams, "ann");
    let to_be_written = (0..20).map(|nth| {
        let (teams, to) = (teams.clone(), ["bob", "team-lead"][nth % 2]);
        async move { teams.write(to, Letter::new("ann", nth.to_string(), None)).await.map(|_| nth) }
    });
    let written = tokio::spawn(futures::future::join_all(to_be_written.take(6).collect::<Vec<_>>()));
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    let bob = join(&teams, "bob");
    assert!(written.await.unwrap().iter().all(Result::is_ok));
    let got: Vec<String> = letters(bob.mail().await.unwrap()).into_iter().map(|letter| letter.text).collect();
    assert_eq!(got, ["0", "2", "4"]);
    let error = teams.write("nobody", Letter::new("ann", "x", None)).await.unwrap_err();
    assert!(error.contains("nobody") && error.contains("bob"), "{error}");
    assert!(teams.write("ann", Letter::new("ann", "x", None)).await.unwrap_err().contains("is you"));
}

#[tokio::test]
async fn a_team_that_another_session_leads_is_left_alone() {
    let home = tempfile::tempdir().unwrap();
    let teams = |session: &str| Teams::new(inbox().0, Some(home.path().into()), session.into(), None);
    let (one, other) = (teams("s1"), teams("s2"));
    one.create("crew", "d").unwrap();
    let error = other.create("crew", "d").unwrap_err();
    assert!(error.contains("in use by process") && error.contains("choose another"), "{error}");
    one.delete().unwrap();
    other.create("crew", "d").unwrap();
}

#[test]
fn everybody_but_the_writer_gets_a_broadcast() {
    let (teams, mut posts) = team();
    let _seats = ["a", "b"].map(|name| join(&teams, name));
    let to: Vec<String> = teams
        .broadcast(&Letter::new("a", "hear", None))
        .unwrap()
        .into_iter()
        .map(|receipt| receipt.to)
        .collect();
    assert_eq!(to, ["b", LEAD]);
    assert_eq!(woken(&mut posts), [true]);
}

#[test]
fn a_broadcast_says_whom_it_has_reached_and_fails_only_if_nobody() {
    let (teams, _posts) = team();
    let _seats = ["a", "b"].map(|name| join(&teams, name));
    for _ in 0..6 {
        teams.send("a", Letter::new("b", "ping", None)).unwrap();
    }
    let reached = teams.broadcast(&Letter::new("a", "hear", None)).unwrap();
    assert_eq!(reached.iter().map(|receipt| receipt.to.as_str()).collect::<Vec<_>>(), ["b"]);
    assert!(teams.broadcast(&Letter::new("a", "hear", None)).unwrap_err().contains("limit"));
}

/// What a teammate has got, as pairs of writer and number.
type Got = Vec<(String, usize)>;

const MATES: usize = 50;
const EACH: usize = 200;

/// Writes its share to everybody in turn, then reads until it is told to leave.
async fn exchange(teams: Teams, me: usize, seat: Seat) -> Got {
    let name = seat.name().to_owned();
    for nth in 0..EACH {
        let to = format!("m{}", (me + 1 + nth % (MATES - 1)) % MATES);
        teams.send(&to, Letter::new(&name, nth.to_string(), None)).unwrap();
        tokio::task::yield_now().await;
    }
    let mut got = Vec::new();
    while got.len() < EACH {
        for letter in letters(seat.mail().await.unwrap()) {
            got.push((letter.from, letter.text.parse().unwrap()));
        }
        seat.rest();
    }
    seat.move_out();
    got
}

#[tokio::test]
async fn ten_thousand_letters_among_fifty_arrive_once_each_and_in_the_order_of_their_writers() {
    let home = tempfile::tempdir().unwrap();
    let (sender, _posts) = inbox();
    let teams = Teams::new(sender, Some(home.path().into()), "session".into(), Some(MATES * EACH));
    teams.create("crowd", "d").unwrap();
    let last = join(&teams, &format!("m{MATES}"));
    let seats: Vec<_> = (0..MATES).map(|me| join(&teams, &format!("m{me}"))).collect();
    let talks = seats.into_iter().enumerate();
    let talks: Vec<_> = talks.map(|(me, seat)| tokio::spawn(exchange(teams.clone(), me, seat))).collect();
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
    let error = teams.send(last.name(), Letter::new("m0", "one more", None)).unwrap_err();
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
