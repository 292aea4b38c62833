//! Tests of teams.

use futures::FutureExt;
use whimbrel_tools::internal_events::{EventReceiver, InternalEvent, event_channel};
use whimbrel_tools::permission::PlanLock;

use super::message::{TeamMessage, TeammateInput};
use super::requests::RequestAnswer;
use super::*;

fn new_team() -> (SessionTeam, EventReceiver) {
    let (sender, events) = event_channel();
    let teams = SessionTeam::new(sender, None, "session".into(), Some(7));
    teams.create("crew", "d").unwrap();
    (teams, events)
}

fn join(teams: &SessionTeam, name: &str) -> Membership {
    join_as_task(teams, name, name)
}

fn join_as_task(teams: &SessionTeam, name: &str, task_id: &str) -> Membership {
    let spec = MemberSpec { name: name.into(), task_id: task_id.into(), ..MemberSpec::default() };
    teams.join(&spec, None).unwrap()
}

fn messages(inputs: Vec<TeammateInput>) -> Vec<TeamMessage> {
    let message = |input: TeammateInput| match input {
        TeammateInput::Message(message) => message,
        TeammateInput::Notification(text) => panic!("{text} is not a message"),
    };
    inputs.into_iter().map(message).collect()
}

fn drain_starts_turn(events: &mut EventReceiver) -> Vec<bool> {
    let mut found = Vec::new();
    while let Ok(event) = events.try_recv() {
        if let InternalEvent::Notification(notification) = event {
            found.push(notification.starts_turn);
        }
    }
    found
}

#[test]
fn input_is_pushed_and_makes_member_active() {
    let (teams, _events) = new_team();
    let m1 = join(&teams, "m1");
    assert!(m1.receive().now_or_never().is_none(), "no input yet");
    assert_eq!(teams.active_count(), 0);
    let sent = teams.send("m1@crew", TeamMessage::new(LEAD, "work", None)).unwrap();
    assert_eq!(sent, SentMessage { to: "m1".into(), recipient_is_running: false });
    assert_eq!(teams.active_count(), 1, "active once it has a message");
    let inputs = m1.receive().now_or_never().unwrap().unwrap();
    assert_eq!(messages(inputs)[0].text, "work");
    assert!(teams.send("m1", TeamMessage::new(LEAD, "more", None)).unwrap().recipient_is_running);
    m1.mark_idle();
    assert_eq!(teams.active_count(), 1, "more input is queued");
    m1.receive().now_or_never().unwrap().unwrap();
    m1.mark_idle();
    assert_eq!(teams.active_count(), 0);
}

#[test]
fn lead_is_woken_by_messages_and_silent_idle_members() {
    let (teams, mut events) = new_team();
    let [m1, m2] = ["m1", "m2"].map(|name| {
        let membership = join(&teams, name);
        teams.send(name, TeamMessage::new(LEAD, "work", None)).unwrap();
        membership.receive().now_or_never().unwrap().unwrap();
        membership
    });
    teams.send(LEAD, TeamMessage::new("m1", "found it", None)).unwrap();
    assert_eq!(drain_starts_turn(&mut events), [true]);
    m1.mark_idle();
    assert_eq!(drain_starts_turn(&mut events), [false], "it wrote to the lead before");
    m2.mark_idle();
    assert_eq!(drain_starts_turn(&mut events), [true], "it did not write to the lead");
}

#[test]
fn task_notifications_go_to_their_owner() {
    let (teams, mut events) = new_team();
    let ann = join_as_task(&teams, "ann", "t1");
    assert_eq!(teams.deliver_notification(Some("t1"), "built".into()), None);
    assert_eq!(
        (teams.active_count(), drain_starts_turn(&mut events)),
        (1, Vec::new()),
        "only the owner is woken"
    );
    assert_eq!(ann.receive().now_or_never().unwrap().unwrap(), [TeammateInput::Notification("built".into())]);
    for (owner, reason) in [
        (None, "a task of the lead"),
        (Some("a1"), "a task of a subagent"),
        (Some("t2"), "a teammate that has left"),
    ] {
        assert_eq!(teams.deliver_notification(owner, "built".into()).as_deref(), Some("built"), "{reason}");
    }
}

#[test]
fn names_with_blanks_are_normalized() {
    let teams = SessionTeam::new(event_channel().0, None, "session".into(), None);
    teams.create("my crew", "d").unwrap();
    assert!(teams.matches_name("my crew") && teams.matches_name("my-crew") && !teams.matches_name("crew"));
    let ann = join(&teams, "ann one");
    assert_eq!(ann.name(), "ann-one");
    for to in ["ann one", "ann-one", "ann one@my crew"] {
        assert_eq!(teams.send(to, TeamMessage::new(LEAD, "x", None)).unwrap().to, "ann-one", "{to}");
    }
}

#[test]
fn names_are_unique_and_invalid_ones_rejected() {
    let (teams, _events) = new_team();
    let memberships = [join(&teams, "m"), join(&teams, "m"), join(&teams, LEAD)];
    assert_eq!(memberships.each_ref().map(Membership::name), ["m", "m-2", "team-lead-2"]);
    for bad in ["", "../x", ".hidden", "a/b", "x\n"] {
        let fresh = SessionTeam::new(event_channel().0, None, "s".into(), None);
        assert_eq!(fresh.create(bad, "d").is_err(), bad != "x\n", "{bad:?}");
    }
    let error = teams.send("missing", TeamMessage::new(LEAD, "x", None)).unwrap_err();
    assert!(error.contains("missing") && error.contains("m-2"), "{error}");
}

#[test]
fn number_of_messages_is_limited() {
    let (teams, _events) = new_team();
    let _memberships = ["a", "b"].map(|name| join(&teams, name));
    let mut sent = 0;
    let error = loop {
        match teams.send(["a", "b"][sent % 2], TeamMessage::new("x", "ping", None)) {
            Ok(_) => sent += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(sent, 7);
    assert!(error.contains("limit"), "{error}");
    assert!(teams.request_shutdown("a", "enough".into()).is_ok(), "control messages have a reserve");
}

#[test]
fn team_is_deleted_only_when_idle() {
    let (teams, _events) = new_team();
    let m1 = join(&teams, "m1");
    teams.send("m1", TeamMessage::new(LEAD, "work", None)).unwrap();
    assert!(teams.delete().unwrap_err().contains("m1"));
    m1.receive().now_or_never().unwrap().unwrap();
    m1.mark_idle();
    teams.delete().unwrap();
    assert_eq!(m1.receive().now_or_never().unwrap(), None);
    assert!(teams.delete().is_err() && teams.name().is_none());
    assert!(teams.create("crew", "again").is_ok());
}

#[test]
fn member_of_deleted_team_cannot_affect_next_team() {
    let (teams, _events) = new_team();
    let old = join_as_task(&teams, "ann", "t1");
    teams.delete().unwrap();
    teams.create("crew", "again").unwrap();
    let new = join_as_task(&teams, "ann", "t2");
    teams.send("ann", TeamMessage::new(LEAD, "work", None)).unwrap();
    assert_eq!(old.receive().now_or_never().unwrap(), None, "not addressed");
    old.mark_idle();
    drop(old);
    assert_eq!(new.receive().now_or_never().unwrap().unwrap().len(), 1);
    assert_eq!(teams.names(), [LEAD, "ann"]);
}

#[test]
fn vanished_member_is_removed_and_reported() {
    let (teams, mut events) = new_team();
    drop(join(&teams, "never-began"));
    assert_eq!(drain_starts_turn(&mut events), [] as [bool; 0]);
    let mut ann = join(&teams, "ann");
    ann.activate();
    teams.send("ann", TeamMessage::new(LEAD, "work", None)).unwrap();
    ann.receive().now_or_never().unwrap().unwrap();
    drop(ann);
    assert_eq!(
        (drain_starts_turn(&mut events), teams.active_count(), teams.names()),
        (vec![true], 0, vec![LEAD.to_owned()])
    );
    let mut bob = join(&teams, "bob");
    bob.activate();
    bob.leave();
    assert_eq!(drain_starts_turn(&mut events), [] as [bool; 0], "it shut down on request");
}

#[test]
fn only_answer_to_open_request_counts() {
    let (teams, _events) = new_team();
    let ann = join(&teams, "ann");
    let yes = || RequestAnswer::Approve(String::new());
    assert!(teams.answer_shutdown("ann", Some("shutdown-1@ann"), yes()).is_err(), "no shutdown request");
    let asked = teams.request_shutdown("ann@crew", "done".into()).unwrap().request_id;
    let error = teams.answer_shutdown("ann", Some("shutdown-1@ann"), yes()).unwrap_err();
    assert!(error.contains(&asked), "{error}");
    assert!(teams.answer_shutdown("ann", Some(&asked), RequestAnswer::Reject("busy".into())).is_ok());
    assert!(teams.answer_shutdown("ann", Some(&asked), yes()).is_err(), "already answered");
    assert!(ann.receive().now_or_never().unwrap().is_some(), "still a member");
    teams.request_shutdown("ann", "now".into()).unwrap();
    assert!(teams.answer_shutdown("ann", None, yes()).is_ok(), "an answer need not name it");
    assert_eq!(ann.receive().now_or_never().unwrap(), None, "no longer a member");
    for name in [LEAD, "bob"] {
        assert!(teams.request_shutdown(name, String::new()).is_err(), "{name}");
    }
}

#[test]
fn required_plan_locks_until_approved() {
    let (teams, _events) = new_team();
    let plan_lock = PlanLock::default();
    let spec = MemberSpec { name: "ann".into(), ..MemberSpec::default() };
    let _ann = teams.join(&spec, Some(plan_lock.clone())).unwrap();
    let _bob = join(&teams, "bob");
    assert!(
        teams.answer_plan("ann", None, RequestAnswer::Approve(String::new())).is_err(),
        "there is no plan yet"
    );
    assert!(teams.submit_plan("bob", "p".into()).is_err(), "no plan required");
    let first = teams.submit_plan("ann", "first".into()).unwrap().request_id;
    teams.answer_plan("ann", Some(&first), RequestAnswer::Reject("smaller".into())).unwrap();
    assert!(
        teams.answer_plan("ann", Some(&first), RequestAnswer::Approve(String::new())).is_err(),
        "already answered"
    );
    assert!(plan_lock.is_held());
    teams.submit_plan("ann", "second".into()).unwrap();
    teams.answer_plan("ann", None, RequestAnswer::Approve(String::new())).unwrap();
    assert!(!plan_lock.is_held());
    assert!(teams.submit_plan("ann", "third".into()).is_err(), "no plan required any more");
}

#[tokio::test(start_paused = true)]
async fn message_waits_for_member_about_to_join() {
    let (teams, _events) = new_team();
    let _ann = join(&teams, "ann");
    let sends =
        (0..20).map(|nth| {
            let (teams, to) = (teams.clone(), ["bob", "team-lead"][nth % 2]);
            async move {
                teams.send_in_order(to, TeamMessage::new("ann", nth.to_string(), None)).await.map(|_| nth)
            }
        });
    let mut sent = futures::future::join_all(sends.take(6).collect::<Vec<_>>());
    assert!((&mut sent).now_or_never().is_none(), "bob is not there yet");
    let bob = join(&teams, "bob");
    assert!(sent.await.iter().all(Result::is_ok));
    let received: Vec<String> =
        messages(bob.receive().await.unwrap()).into_iter().map(|message| message.text).collect();
    assert_eq!(received, ["0", "2", "4"]);
    let error = teams.send_in_order("missing", TeamMessage::new("ann", "x", None)).await.unwrap_err();
    assert!(error.contains("missing") && error.contains("bob"), "{error}");
    assert!(
        teams.send_in_order("ann", TeamMessage::new("ann", "x", None)).await.unwrap_err().contains("is you")
    );
}

#[tokio::test]
async fn team_led_by_another_session_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let teams =
        |session: &str| SessionTeam::new(event_channel().0, Some(home.path().into()), session.into(), None);
    let (one, other) = (teams("s1"), teams("s2"));
    one.create("crew", "d").unwrap();
    let error = other.create("crew", "d").unwrap_err();
    assert!(error.contains("in use by process") && error.contains("choose another"), "{error}");
    one.delete().unwrap();
    other.create("crew", "d").unwrap();
}

#[test]
fn broadcast_reaches_all_but_sender() {
    let (teams, mut events) = new_team();
    let _memberships = ["a", "b"].map(|name| join(&teams, name));
    let to: Vec<String> = teams
        .broadcast(&TeamMessage::new("a", "hello", None))
        .unwrap()
        .into_iter()
        .map(|sent| sent.to)
        .collect();
    assert_eq!(to, ["b", LEAD]);
    assert_eq!(drain_starts_turn(&mut events), [true]);
}

#[test]
fn broadcast_fails_only_if_no_member_is_reached() {
    let (teams, _events) = new_team();
    let _memberships = ["a", "b"].map(|name| join(&teams, name));
    for _ in 0..6 {
        teams.send("a", TeamMessage::new("b", "ping", None)).unwrap();
    }
    let reached = teams.broadcast(&TeamMessage::new("a", "hello", None)).unwrap();
    assert_eq!(reached.iter().map(|sent| sent.to.as_str()).collect::<Vec<_>>(), ["b"]);
    assert!(teams.broadcast(&TeamMessage::new("a", "hello", None)).unwrap_err().contains("limit"));
}

/// Messages of a teammate, as pairs of sender and number.
type ReceivedMessages = Vec<(String, usize)>;

const MEMBERS: usize = 50;
const MESSAGES_EACH: usize = 200;

/// Sends its share to all members in turn, then reads until all of its own have arrived.
async fn exchange(teams: SessionTeam, index: usize, membership: Membership) -> ReceivedMessages {
    let name = membership.name().to_owned();
    for nth in 0..MESSAGES_EACH {
        let to = format!("m{}", (index + 1 + nth % (MEMBERS - 1)) % MEMBERS);
        teams.send(&to, TeamMessage::new(&name, nth.to_string(), None)).unwrap();
        tokio::task::yield_now().await;
    }
    let mut received = Vec::new();
    while received.len() < MESSAGES_EACH {
        for message in messages(membership.receive().await.unwrap()) {
            received.push((message.from, message.text.parse().unwrap()));
        }
        membership.mark_idle();
    }
    membership.leave();
    received
}

#[tokio::test]
async fn ten_thousand_messages_arrive_once_and_in_sender_order() {
    let home = tempfile::tempdir().unwrap();
    let (sender, _events) = event_channel();
    let teams =
        SessionTeam::new(sender, Some(home.path().into()), "session".into(), Some(MEMBERS * MESSAGES_EACH));
    teams.create("crowd", "d").unwrap();
    let last = join(&teams, &format!("m{MEMBERS}"));
    let memberships: Vec<_> = (0..MEMBERS).map(|index| join(&teams, &format!("m{index}"))).collect();
    let exchanges = memberships.into_iter().enumerate();
    let exchanges: Vec<_> = exchanges
        .map(|(index, membership)| tokio::spawn(exchange(teams.clone(), index, membership)))
        .collect();
    let mut total = 0;
    for (index, task) in exchanges.into_iter().enumerate() {
        let received = task.await.unwrap();
        total += received.len();
        for sender in (0..MEMBERS).map(|sender| format!("m{sender}")) {
            let numbers: Vec<usize> =
                received.iter().filter(|(from, _)| *from == sender).map(|(_, nth)| *nth).collect();
            assert!(numbers.is_sorted_by(|one, next| one < next), "{sender} to m{index}: {numbers:?}");
        }
    }
    assert_eq!(total, MEMBERS * MESSAGES_EACH);
    let error = teams.send(last.name(), TeamMessage::new("m0", "one more", None)).unwrap_err();
    assert!(error.contains("limit"), "{error}");
    assert_eq!(teams.active_count(), 0, "no input is left");
    teams.flush().await;
    let mut read_count = 0;
    for index in 0..MEMBERS {
        let text = std::fs::read_to_string(home.path().join(format!("teams/crowd/inboxes/m{index}.json")));
        let messages: Vec<TeamMessage> = serde_json::from_str(&text.unwrap()).unwrap();
        read_count += messages.iter().filter(|message| message.read).count();
    }
    assert_eq!(read_count, MEMBERS * MESSAGES_EACH, "all are stored as read");
}
