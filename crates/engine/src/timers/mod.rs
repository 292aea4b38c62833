//! Timers of a session: when their time has come they post a prompt, which waits for its turn like any other.
//!
//! They live as long as the session does, and do not keep it alive: a run whose input has finished ends when nothing runs
//! and nothing is queued, whatever was planned for later. Rooms: [`schedule`] (when a job is due).

pub mod schedule;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use jiff::{Timestamp, Zoned};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::internal_events::{EventSender, Notification, InternalEvent};
use crate::{clock, ids};
use schedule::Schedule;

/// How many jobs a session may have.
const MAX_JOBS: usize = 50;

/// The timers of a session. Cheap to clone.
#[derive(Clone)]
pub struct Timers(Arc<Shared>);

struct Shared {
    rows: Mutex<Vec<Row>>,
    events: EventSender,
    closed: CancellationToken,
}

/// A timer that runs. Dropped, it is stopped.
struct Row {
    job: TimerJob,
    _stop: DropGuard,
}

/// What is posted, and when.
#[derive(Debug, Clone, PartialEq)]
pub struct TimerJob {
    /// Its name.
    pub id: String,
    /// When it is due.
    pub schedule: Schedule,
    /// What is posted.
    pub prompt: String,
    /// When it is due next.
    pub next: Timestamp,
}

/// Why there is no timer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TimerError {
    /// Its time will never come.
    #[error("its time never comes")]
    NeverDue,
    /// There are enough.
    #[error("there are {MAX_JOBS} jobs already; delete one with CronDelete first")]
    TooMany,
}

impl Timers {
    /// Timers that report to `news`, until `closed` fires.
    pub(crate) fn new(news: EventSender, closed: CancellationToken) -> Self {
        Self(Arc::new(Shared { rows: Mutex::default(), events: news, closed }))
    }

    /// Plans a job.
    pub fn schedule_prompt(&self, schedule: Schedule, prompt: String) -> Result<TimerJob, TimerError> {
        let now = clock::local_now();
        let due = schedule.next_after(&now).ok_or(TimerError::NeverDue)?;
        let mut rows = self.0.lock();
        if rows.len() >= MAX_JOBS {
            return Err(TimerError::TooMany);
        }
        let job = TimerJob { id: ids::new_task_id('c'), schedule, prompt, next: due.timestamp() };
        let stop = self.0.closed.child_token();
        let ringing = run_timer(Arc::downgrade(&self.0), job.clone(), now, due);
        let token = stop.clone();
        tokio::spawn(async move { token.run_until_cancelled(ringing).await });
        rows.push(Row { job: job.clone(), _stop: stop.drop_guard() });
        Ok(job)
    }

    /// All jobs, in the order in which they were planned.
    pub fn jobs(&self) -> Vec<TimerJob> {
        self.0.lock().iter().map(|row| row.job.clone()).collect()
    }

    /// Calls jobs off that fit, and gives them.
    pub fn cancel(&self, fits: impl Fn(&TimerJob) -> bool) -> Vec<TimerJob> {
        let mut rows = self.0.lock();
        let (gone, kept): (Vec<Row>, Vec<Row>) = rows.drain(..).partition(|row| fits(&row.job));
        *rows = kept;
        gone.into_iter().map(|row| row.job).collect()
    }
}

impl Shared {
    /// Each row is complete when it is pushed; a panic elsewhere cannot leave it half written.
    fn lock(&self) -> MutexGuard<'_, Vec<Row>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits for a job's time and posts it, as often as it is due.
async fn run_timer(shared: Weak<Shared>, job: TimerJob, mut now: Zoned, mut due: Zoned) {
    loop {
        tokio::time::sleep(delay_until(&now, &due)).await;
        let Some(shared) = shared.upgrade() else { return };
        // Nobody may be listening any more.
        let _ = shared.events.send(InternalEvent::Notification(Box::new(Notification::from_task(render_prompt(&job)))));
        // A clock that was set back must not ring the same time again.
        now = clock::local_now().max(due);
        let mut rows = shared.lock();
        match job.schedule.next_repeat(&now) {
            Some(next) => {
                if let Some(row) = rows.iter_mut().find(|row| row.job.id == job.id) {
                    row.job.next = next.timestamp();
                }
                due = next;
            }
            None => return rows.retain(|row| row.job.id != job.id),
        }
    }
}

fn delay_until(now: &Zoned, due: &Zoned) -> Duration {
    Duration::try_from(due.duration_since(now)).unwrap_or_default()
}

/// What the model reads when a job is due.
fn render_prompt(job: &TimerJob) -> String {
    format!(
        "The time has come for what you planned ({}, {}):\n\n{}",
        job.id,
        job.schedule.describe(),
        job.prompt
    )
}
