use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use whimbrel_models::providers::Providers;
use whimbrel_models::scripted::Scripted;
use whimbrel_transport::link::{self, HostEnd};
use whimbrel_wire::Frame;
use whimbrel_wire::message::User;
use whimbrel_wire::options::Options;

use super::schedule::Recurrence;
use super::*;
use crate::internal_events::{EventReceiver, event_channel};
use crate::{Engine, SessionExit, Start, event_loop};

fn test_timers() -> (Timers, EventReceiver, CancellationToken) {
    let (sender, events) = event_channel();
    let closed = CancellationToken::new();
    (Timers::new(sender, closed.clone()), events, closed)
}

fn cron(text: &str, often: Recurrence) -> Schedule {
    Schedule::parse_cron(text, often).unwrap()
}

async fn next_prompt(events: &mut EventReceiver) -> String {
    match events.recv().await.unwrap() {
        InternalEvent::Notification(sender) => sender.text,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_fires_as_often_as_scheduled() {
    let (timers, mut events, _closed) = test_timers();
    let job = timers.schedule_prompt(cron("* * * * *", Recurrence::EveryTime), "Look.".into()).unwrap();
    for _ in 0..3 {
        assert!(next_prompt(&mut events).await.ends_with("\n\nLook."));
    }
    let again = &timers.jobs()[0];
    assert!(again.next > job.next, "{again:?}");
    assert_eq!(timers.cancel(|other| other.id == job.id).len(), 1);
    timers.schedule_prompt(cron("*/5 * * * *", Recurrence::Once), "Once.".into()).unwrap();
    assert!(next_prompt(&mut events).await.ends_with("\n\nOnce."), "what was called off rings no more");
    while !timers.jobs().is_empty() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_fires_after_close() {
    let (timers, mut events, closed) = test_timers();
    timers.schedule_prompt(Schedule::Wakeup(Duration::from_secs(60)), "Too late.".into()).unwrap();
    closed.cancel();
    tokio::time::advance(Duration::from_secs(600)).await;
    tokio::task::yield_now().await;
    assert!(events.try_recv().is_err());
}

#[tokio::test(start_paused = true)]
async fn the_number_of_jobs_is_limited() {
    let (timers, _heard, _closed) = test_timers();
    for _ in 0..MAX_JOBS {
        timers.schedule_prompt(cron("0 9 * * 1-5", Recurrence::EveryTime), String::new()).unwrap();
    }
    assert_eq!(
        timers.schedule_prompt(cron("0 9 * * *", Recurrence::Once), String::new()),
        Err(TimerError::TooMany)
    );
}

#[test]
fn due_times_follow_the_expression() {
    let at = |text: &str| text.parse::<Zoned>().unwrap();
    let now = at("2026-11-16T08:30:10+00:00[UTC]");
    let rows = [
        ("*/15 * * * *", "2026-11-16T08:45:00+00:00[UTC]"),
        ("0 9 * * *", "2026-11-16T09:00:00+00:00[UTC]"),
        ("30 8 * * *", "2026-11-17T08:30:00+00:00[UTC]"),
        ("0 0 1 1 *", "2027-01-01T00:00:00+00:00[UTC]"),
        ("0 12 * * 0", "2026-11-22T12:00:00+00:00[UTC]"),
        ("0 12 29 2 *", "2028-02-29T12:00:00+00:00[UTC]"),
    ];
    for (text, expected) in rows {
        assert_eq!(cron(text, Recurrence::Once).next_after(&now), Some(at(expected)), "{text}");
    }
    assert_eq!(cron("0 9 * * *", Recurrence::Once).next_repeat(&now), None);
    assert_eq!(cron("0 0 30 2 *", Recurrence::EveryTime).next_after(&now), None, "there is no such day");
    for wrong in ["", "* * * *", "* * * * * *", "61 * * * *", "a b c d e"] {
        assert!(Schedule::parse_cron(wrong, Recurrence::Once).is_err(), "{wrong:?}");
    }
    assert!(!cron("*/5 * * * *", Recurrence::EveryTime).describe().is_empty());
}

/// A session with a scripted model, in this runtime with paused time.
fn start_session(dir: &TempDir, replies: Value) -> (HostEnd, JoinHandle<SessionExit>, Arc<Scripted>) {
    let script = Arc::new(Scripted::replies(replies).unwrap());
    let providers = Providers::offline();
    providers.add_script("s", Arc::clone(&script));
    let options = Options {
        cwd: Some(dir.path().display().to_string()),
        model: Some("scripted:s".into()),
        persist_session: Some(false),
        ..Options::default()
    };
    let env = [("HOME".to_owned(), dir.path().display().to_string())].into();
    let (link, end) = link::pair();
    let served = tokio::spawn(event_loop::serve(Engine::new(providers), link, Start::new(options, env)));
    (end, served, script)
}

async fn next_result(end: &mut HostEnd) -> Option<String> {
    while let Some(frame) = end.receiver.recv().await {
        if let Frame::Result(result) = frame {
            return Some(result.result.unwrap_or_default());
        }
    }
    None
}

fn wakeup_script() -> Value {
    let input = json!({"delaySeconds": 600, "prompt": "Look again."});
    json!([[{"type": "tool_use", "name": "ScheduleWakeup", "input": input}], "I wait.", "I look."])
}

#[tokio::test(start_paused = true)]
async fn a_timer_starts_a_turn_in_an_open_session() {
    let dir = TempDir::new().unwrap();
    let (mut end, served, script) = start_session(&dir, wakeup_script());
    end.sender.send(Ok(User::prompt("Watch.").into())).await.unwrap();
    assert_eq!(next_result(&mut end).await.as_deref(), Some("I wait."));
    assert_eq!(next_result(&mut end).await.as_deref(), Some("I look."));
    assert!(script.requests()[2].to_string().contains("Look again."));
    drop(end.sender);
    served.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_run_without_input_does_not_wait_for_timers() {
    let dir = TempDir::new().unwrap();
    let (mut end, served, _script) = start_session(&dir, wakeup_script());
    let began = tokio::time::Instant::now();
    end.sender.send(Ok(User::prompt("Watch.").into())).await.unwrap();
    end.finished.cancel();
    assert_eq!(next_result(&mut end).await.as_deref(), Some("I wait."));
    assert_eq!(next_result(&mut end).await, None);
    served.await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(600));
}
