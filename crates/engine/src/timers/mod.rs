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

use crate::inbox::{Inbox, News, Post};
use crate::{clock, ids};
use schedule::Schedule;

/// How many jobs a session may have.
const MOST: usize = 50;

/// The timers of a session. Cheap to clone.
#[derive(Clone)]
pub struct Timers(Arc<Shared>);

struct Shared {
    rows: Mutex<Vec<Row>>,
    news: Inbox,
    closed: CancellationToken,
}

/// A timer that runs. Dropped, it is stopped.
struct Row {
    job: Job,
    _stop: DropGuard,
}

/// What is posted, and when.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
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
pub enum TimerFault {
    /// Its time will never come.
    #[error("its time never comes")]
    Never,
    /// There are enough.
    #[error("there are {MOST} jobs already; delete one with CronDelete first")]
    TooMany,
}

impl Timers {
    /// Timers that report to `news`, until `closed` fires.
    pub(crate) fn new(news: Inbox, closed: CancellationToken) -> Self {
        Self(Arc::new(Shared { rows: Mutex::default(), news, closed }))
    }

    /// Plans a job.
    pub fn plan(&self, schedule: Schedule, prompt: String) -> Result<Job, TimerFault> {
        let now = clock::local_now();
        let due = schedule.after(&now).ok_or(TimerFault::Never)?;
        let mut rows = self.0.open();
        if rows.len() >= MOST {
            return Err(TimerFault::TooMany);
        }
        let job = Job { id: ids::task('c'), schedule, prompt, next: due.timestamp() };
        let stop = self.0.closed.child_token();
        let ringing = ring(Arc::downgrade(&self.0), job.clone(), now, due);
        let token = stop.clone();
        tokio::spawn(async move { token.run_until_cancelled(ringing).await });
        rows.push(Row { job: job.clone(), _stop: stop.drop_guard() });
        Ok(job)
    }

    /// All jobs, in the order in which they were planned.
    pub fn jobs(&self) -> Vec<Job> {
        self.0.open().iter().map(|row| row.job.clone()).collect()
    }

    /// Calls jobs off that fit, and gives them.
    pub fn cancel(&self, fits: impl Fn(&Job) -> bool) -> Vec<Job> {
        let mut rows = self.0.open();
        let (gone, kept): (Vec<Row>, Vec<Row>) = rows.drain(..).partition(|row| fits(&row.job));
        *rows = kept;
        gone.into_iter().map(|row| row.job).collect()
    }
}

impl Shared {
    /// Each row is complete when it is pushed; a panic elsewhere cannot leave it half written.
    fn open(&self) -> MutexGuard<'_, Vec<Row>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits for a job's time and posts it, as often as it is due.
async fn ring(shared: Weak<Shared>, job: Job, mut now: Zoned, mut due: Zoned) {
    loop {
        tokio::time::sleep(between(&now, &due)).await;
        let Some(shared) = shared.upgrade() else { return };
        // Nobody may be listening any more.
        let _ = shared.news.send(Post::News(Box::new(News::of_task(posted(&job)))));
        // A clock that was set back must not ring the same time again.
        now = clock::local_now().max(due);
        let mut rows = shared.open();
        match job.schedule.again(&now) {
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

fn between(now: &Zoned, due: &Zoned) -> Duration {
    Duration::try_from(due.duration_since(now)).unwrap_or_default()
}

/// What the model reads when a job is due.
fn posted(job: &Job) -> String {
    format!(
        "The time has come for what you planned ({}, {}):\n\n{}",
        job.id,
        job.schedule.human(),
        job.prompt
    )
}
