//! Timers of a session: when due, they post a prompt as a notification.
//!
//! They end with the session and do not keep it alive: a run whose input has finished exits when nothing runs and
//! nothing is queued, even if timers are pending. Module: [`schedule`] (when a job is due).

pub mod schedule;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use jiff::{Timestamp, Zoned};
use tokio_util::sync::{CancellationToken, DropGuard};
use whimbrel_os::{clock, ids};

use crate::internal_events::{EventSender, InternalEvent, Notification};
use schedule::Schedule;

/// Maximum number of jobs of a session.
const MAX_JOBS: usize = 50;

/// The timers of a session. Cheap to clone.
#[derive(Clone)]
pub struct Timers(Arc<Shared>);

struct Shared {
    rows: Mutex<Vec<Row>>,
    events: EventSender,
    closed: CancellationToken,
}

/// A running timer; dropping it stops it.
struct Row {
    job: TimerJob,
    _stop: DropGuard,
}

/// A scheduled prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct TimerJob {
    pub id: String,
    /// The call that created it.
    pub tool_use_id: String,
    pub schedule: Schedule,
    pub prompt: String,
    /// Next due time.
    pub next: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TimerError {
    /// The schedule has no due time.
    #[error("the schedule never fires")]
    NeverDue,
    #[error("there are {MAX_JOBS} jobs already; delete one with CronDelete first")]
    TooMany,
}

impl Timers {
    /// Timers that report to `events`, until `closed` fires.
    pub(crate) fn new(events: EventSender, closed: CancellationToken) -> Self {
        Self(Arc::new(Shared { rows: Mutex::default(), events, closed }))
    }

    /// Schedules a prompt for a tool call.
    pub fn schedule_prompt(
        &self,
        tool_use_id: &str,
        schedule: Schedule,
        prompt: String,
    ) -> Result<TimerJob, TimerError> {
        let now = clock::local_now();
        let due = schedule.next_after(&now).ok_or(TimerError::NeverDue)?;
        let mut rows = self.0.lock();
        if rows.len() >= MAX_JOBS {
            return Err(TimerError::TooMany);
        }
        let (id, tool_use_id) = (ids::new_task_id('c'), tool_use_id.to_owned());
        let job = TimerJob { id, tool_use_id, schedule, prompt, next: due.timestamp() };
        let stop = self.0.closed.child_token();
        let timer = run_timer(Arc::downgrade(&self.0), job.clone(), now, due);
        let token = stop.clone();
        tokio::spawn(async move { token.run_until_cancelled(timer).await });
        rows.push(Row { job: job.clone(), _stop: stop.drop_guard() });
        Ok(job)
    }

    /// All jobs in order of creation.
    pub fn jobs(&self) -> Vec<TimerJob> {
        self.0.lock().iter().map(|row| row.job.clone()).collect()
    }

    /// Cancels matching jobs and returns them.
    pub fn cancel(&self, predicate: impl Fn(&TimerJob) -> bool) -> Vec<TimerJob> {
        let mut rows = self.0.lock();
        let (cancelled, remaining): (Vec<Row>, Vec<Row>) =
            rows.drain(..).partition(|row| predicate(&row.job));
        *rows = remaining;
        cancelled.into_iter().map(|row| row.job).collect()
    }
}

impl Shared {
    /// Rows are pushed complete, so a poisoned lock holds valid data.
    fn lock(&self) -> MutexGuard<'_, Vec<Row>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Posts a job each time it is due.
async fn run_timer(shared: Weak<Shared>, job: TimerJob, mut now: Zoned, mut due: Zoned) {
    loop {
        tokio::time::sleep(delay_until(&now, &due)).await;
        let Some(shared) = shared.upgrade() else { return };
        // The session may be gone.
        let _ = shared
            .events
            .send(InternalEvent::Notification(Box::new(Notification::from_task(render_prompt(&job)))));
        // If the clock was set back, the same due time must not fire twice.
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

/// The notification that the model reads when a job is due.
fn render_prompt(job: &TimerJob) -> String {
    format!("Scheduled prompt ({}, {}):\n\n{}", job.id, job.schedule.describe(), job.prompt)
}
