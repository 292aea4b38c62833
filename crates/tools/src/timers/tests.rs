//! Tests of timers.

use super::schedule::Recurrence;
use super::*;
use crate::internal_events::{EventReceiver, event_channel};

fn test_timers() -> (Timers, EventReceiver, CancellationToken) {
    let (sender, events) = event_channel();
    let closed = CancellationToken::new();
    (Timers::new(sender, closed.clone()), events, closed)
}

fn cron(text: &str, recurrence: Recurrence) -> Schedule {
    Schedule::parse_cron(text, recurrence).unwrap()
}

async fn next_prompt(events: &mut EventReceiver) -> String {
    match events.recv().await.unwrap() {
        InternalEvent::Notification(notification) => notification.text,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_fires_as_often_as_scheduled() {
    let (timers, mut events, _closed) = test_timers();
    let job = timers.schedule_prompt("t", cron("* * * * *", Recurrence::EveryTime), "Look.".into()).unwrap();
    for _ in 0..3 {
        assert!(next_prompt(&mut events).await.ends_with("\n\nLook."));
    }
    let again = &timers.jobs()[0];
    assert!(again.next > job.next, "{again:?}");
    assert_eq!(timers.cancel(|other| other.id == job.id).len(), 1);
    timers.schedule_prompt("t", cron("*/5 * * * *", Recurrence::Once), "Once.".into()).unwrap();
    assert!(next_prompt(&mut events).await.ends_with("\n\nOnce."), "a cancelled job does not fire");
    while !timers.jobs().is_empty() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_fires_after_close() {
    let (timers, mut events, closed) = test_timers();
    timers.schedule_prompt("t", Schedule::Wakeup(Duration::from_secs(60)), "Too late.".into()).unwrap();
    closed.cancel();
    tokio::time::advance(Duration::from_secs(600)).await;
    tokio::task::yield_now().await;
    assert!(events.try_recv().is_err());
}

#[tokio::test(start_paused = true)]
async fn the_number_of_jobs_is_limited() {
    let (timers, _events, _closed) = test_timers();
    for _ in 0..MAX_JOBS {
        timers.schedule_prompt("t", cron("0 9 * * 1-5", Recurrence::EveryTime), String::new()).unwrap();
    }
    assert_eq!(
        timers.schedule_prompt("t", cron("0 9 * * *", Recurrence::Once), String::new()),
        Err(TimerError::TooMany)
    );
}

#[test]
fn due_times_follow_the_expression() {
    let parse_time = |text: &str| text.parse::<Zoned>().unwrap();
    let now = parse_time("2026-11-16T08:30:10+00:00[UTC]");
    let rows = [
        ("*/15 * * * *", "2026-11-16T08:45:00+00:00[UTC]"),
        ("0 9 * * *", "2026-11-16T09:00:00+00:00[UTC]"),
        ("30 8 * * *", "2026-11-17T08:30:00+00:00[UTC]"),
        ("0 0 1 1 *", "2027-01-01T00:00:00+00:00[UTC]"),
        ("0 12 * * 0", "2026-11-22T12:00:00+00:00[UTC]"),
        ("0 12 29 2 *", "2028-02-29T12:00:00+00:00[UTC]"),
    ];
    for (text, expected) in rows {
        assert_eq!(cron(text, Recurrence::Once).next_after(&now), Some(parse_time(expected)), "{text}");
    }
    assert_eq!(cron("0 9 * * *", Recurrence::Once).next_repeat(&now), None);
    assert_eq!(cron("0 0 30 2 *", Recurrence::EveryTime).next_after(&now), None, "there is no such day");
    for wrong in ["", "* * * *", "* * * * * *", "61 * * * *", "a b c d e"] {
        assert!(Schedule::parse_cron(wrong, Recurrence::Once).is_err(), "{wrong:?}");
    }
    assert!(!cron("*/5 * * * *", Recurrence::EveryTime).describe().is_empty());
}
