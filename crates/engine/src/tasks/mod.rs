//! Commands of a session: those that a call waits for, and those that run in the background.
//!
//! - `process`: one command, from its start to its end; `script`: how the shell gets it; `plain`: one that needs no
//!   shell; `exchange`: one that is told something and answers; `dialogue`: one that we talk with as long as it lives;
//! - `pipe`: where its output comes in; `output`: what it prints, in bounded memory; `readable`: the same for the eyes
//!   of a model;
//! - `foreground`: a command that a call waits for; `outlive`: those that may go on after the session;
//! - `task`: background work as others see it; `entry`: work that is not a command, an agent; `lines`: what a watched
//!   command prints;
//! - `trail`: follows `cd` from one command to the next;
//! - `roster`: what runs now; `mark`: by what it is known, `procfs`: finds what has wandered off; `reaper`: for the day
//!   when we are killed.

mod dialogue;
mod entry;
mod exchange;
mod foreground;
mod lines;
mod mark;
mod outlive;
mod output;
mod pipe;
mod plain;
mod process;
mod procfs;
mod readable;
mod reaper;
mod roster;
mod script;
mod task;
#[cfg(test)]
pub(crate) mod tests;
mod trail;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

use self::process::Process;
use self::roster::{GRACE, Roster};
use crate::ids;
use crate::inbox::{Inbox, Post};
use crate::life::AtEnd;
use crate::timers::Timers;

pub(crate) use self::dialogue::{Dialogue, Leash, Program};
pub use self::entry::Entry;
pub(crate) use self::exchange::{Exchange, Heard, Step};
pub use self::foreground::Ran;
pub use self::mark::follow_daemons;
pub(crate) use self::output::Capture;
pub use self::output::Captured;
pub use self::process::{Ending, Leftover, Order, StartFault};
pub(crate) use self::readable::size;
pub use self::task::{
    NoTask, Reach, Start, TaskEvent, TaskFacts, TaskInfo, TaskKind, TaskReport, TaskState, TaskStatus, Told,
};
pub(crate) use self::trail::Trail;

/// How long agents may take to leave everything in order when the session ends.
const TIDY_UP: Duration = Duration::from_millis(1500);

/// A handle on the commands of a session. Cheap to clone. When the last one is dropped, everything is ended.
#[derive(Clone)]
pub struct Tasks {
    table: Arc<Table>,
}

struct Table {
    roster: Arc<Roster>,
    tasks: Mutex<Vec<Task>>,
    news: Inbox,
    timers: Timers,
    /// What becomes of commands at the end.
    at_end: AtEnd,
    /// Whether agents have been sent home because the session ends.
    dismissed: AtomicBool,
}

/// One row of the table.
struct Task {
    facts: TaskFacts,
    state: watch::Receiver<TaskState>,
    stop: CancellationToken,
    /// Fires before `stop` if it is the host that stops it: then the main model does not know.
    by_host: CancellationToken,
    /// Whether the turn goes on beside it.
    background: watch::Sender<bool>,
    /// Whether it is about to end: from then on it stays where it is.
    sealed: bool,
    /// Lets it go on without the session, if it may.
    release: Option<CancellationToken>,
}

/// A command that a call has waited for.
#[derive(Debug, Clone, PartialEq)]
pub struct Finished {
    /// How it ended.
    pub ending: Ending,
    /// What it printed.
    pub output: Captured,
    /// What it left behind.
    pub leftover: Leftover,
}

/// Waits beside one background command.
struct Watcher {
    facts: TaskFacts,
    stop: CancellationToken,
    /// Fires before `stop` if the host stops it.
    by_host: CancellationToken,
    /// Fires when it is to go on without the session.
    release: CancellationToken,
    closed: CancellationToken,
    state: watch::Sender<TaskState>,
    news: Inbox,
    /// How long it may run, if not as long as it likes.
    limit: Option<Duration>,
}

impl Tasks {
    /// An empty table that reports to `news`.
    pub fn new(news: Inbox) -> Self {
        Self::of_session(news, AtEnd::default())
    }

    /// The same for a session whose background work ends in its own way.
    pub fn of_session(news: Inbox, at_end: AtEnd) -> Self {
        let roster = Arc::new(Roster::new());
        let timers = Timers::new(news.clone(), roster.closed.clone());
        Self {
            table: Arc::new(Table {
                roster,
                tasks: Mutex::default(),
                news,
                timers,
                at_end,
                dismissed: AtomicBool::new(false),
            }),
        }
    }

    /// Starts a command in the background. Its output goes to a file below `spill`.
    pub fn start_command(&self, order: &Order, spill: &Path, start: Start) -> Result<TaskFacts, StartFault> {
        let (facts, capture) = Table::begin(order, spill, start)?;
        match self.table.at_end {
            AtEnd::Detach => {
                let (process, release) = outlive::start(order, &self.table.roster, &capture)?;
                self.table.watch_until(facts.clone(), process, capture, None, Some(release));
            }
            AtEnd::Customary | AtEnd::Wait | AtEnd::Stop => {
                let process = Process::spawn(order, &self.table.roster)?;
                self.table.watch(facts.clone(), process, capture, None);
            }
        }
        Ok(facts)
    }

    /// Starts a command in the background whose lines are told as they come, for at most `limit`.
    pub fn start_monitor(
        &self,
        order: &Order,
        spill: &Path,
        start: Start,
        limit: Duration,
    ) -> Result<TaskFacts, StartFault> {
        let (facts, capture) = Table::begin(order, spill, start)?;
        let process = Process::spawn(order, &self.table.roster)?;
        let (lines, teller) = lines::pair();
        let stop = self.table.watch(facts.clone(), process, capture.heard_by(lines), Some(limit));
        tokio::spawn(teller.tell(facts.clone(), self.table.news.clone(), stop));
        Ok(facts)
    }

    /// The timers of the session.
    pub fn timers(&self) -> &Timers {
        &self.table.timers
    }

    /// All background work since the session began, in order.
    pub fn list(&self) -> Vec<TaskInfo> {
        self.table.rows().iter().map(Task::info).collect()
    }

    /// How many commands run in the background.
    pub fn running(&self) -> usize {
        self.count(|kind| kind == TaskKind::Command)
    }

    /// How many agents work in the background.
    pub fn agents(&self) -> usize {
        self.count(|kind| kind == TaskKind::Agent)
    }

    fn count(&self, counts: impl Fn(TaskKind) -> bool) -> usize {
        self.table.rows().iter().filter(|task| task.is_beside() && counts(task.facts.kind)).count()
    }

    /// Ends everything when it is dropped. Whoever works for the session holds its tasks too, so that they would never be
    /// dropped by themselves.
    pub fn guard(&self) -> DropGuard {
        self.table.roster.closed.clone().drop_guard()
    }

    /// What a task has printed. Waits for its end first, but not longer than `wait`.
    pub async fn output(&self, id: &str, reach: Reach<'_>, wait: Duration) -> Result<TaskReport, NoTask> {
        let mut state = self.table.find(id, reach, |task| task.state.clone())?;
        let _ = tokio::time::timeout(wait, state.wait_for(|state| *state != TaskState::Running)).await;
        let task = self.table.find(id, reach, Task::info)?;
        let (output, left_out) = match output::last_of(&task.facts.output_file) {
            Ok(printed) => printed,
            // An agent writes its report at its end.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => (String::new(), 0),
            Err(error) => (format!("(the output file cannot be read: {error})"), 0),
        };
        Ok(TaskReport { task, output, left_out })
    }

    /// The agent that started a task; none if the main one did, or if there is no such task.
    pub fn owner(&self, id: &str) -> Option<String> {
        self.table.find(id, Reach::Host, |task| task.facts.owner.clone()).ok().flatten()
    }

    /// Stops what an agent has started that still runs, and does not wait for it.
    pub fn stop_owned(&self, owner: &str) {
        let rows = self.table.rows();
        rows.iter()
            .filter(|task| task.facts.owner.as_deref() == Some(owner))
            .for_each(|task| task.stop.cancel());
    }

    /// Whether the session ends.
    pub fn are_closed(&self) -> bool {
        self.table.dismissed.load(Ordering::Relaxed) || self.table.roster.closed.is_cancelled()
    }

    /// Stops a task with all its children, and waits until they are gone.
    pub async fn stop(&self, id: &str, reach: Reach<'_>) -> Result<TaskInfo, NoTask> {
        let take = |task: &Task| (task.state.clone(), task.stop.clone(), task.by_host.clone());
        let (mut state, stop, by_host) = self.table.find(id, reach, take)?;
        let now = *state.borrow();
        if now != TaskState::Running {
            return Err(NoTask::Ended { id: id.into(), state: now });
        }
        if reach == Reach::Host {
            by_host.cancel();
        }
        stop.cancel();
        let _ = state.wait_for(|state| *state != TaskState::Running).await;
        self.table.find(id, reach, Task::info)
    }

    /// Ends everything that the session has ever started and that still runs, and reports it. Afterwards nothing can
    /// be started.
    pub async fn shutdown(&self) {
        // First those who may have something to put away, for which they need commands.
        self.dismiss_agents(TIDY_UP).await;
        self.table.roster.close().await;
        let states: Vec<_> = self.table.rows().iter().map(|task| task.state.clone()).collect();
        for mut state in states {
            let told = state.wait_for(|state| *state != TaskState::Running);
            let _ = tokio::time::timeout(GRACE, told).await;
        }
    }
}

impl Table {
    /// Each row is complete when it is pushed; a panic elsewhere cannot leave it half written.
    fn rows(&self) -> MutexGuard<'_, Vec<Task>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The task of this id; or the agent of this name, and of several the last one that runs.
    fn find<T>(&self, id: &str, reach: Reach<'_>, take: impl Fn(&Task) -> T) -> Result<T, NoTask> {
        let rows = self.rows();
        let of_id = rows.iter().find(|task| task.facts.task_id == id);
        let called = || rows.iter().rev().filter(|task| task.facts.is_called(id));
        let named = || called().find(|task| *task.state.borrow() == TaskState::Running).or(called().next());
        match of_id.or_else(named) {
            Some(task) if reach.covers(&task.facts) => Ok(take(task)),
            Some(_) => Err(NoTask::Foreign { id: id.into() }),
            None => {
                let known = rows.iter().filter(|task| *task.background.borrow() && reach.covers(&task.facts));
                let known = known.map(|task| task.facts.task_id.clone()).collect();
                Err(NoTask::Unknown { id: id.into(), known })
            }
        }
    }

    /// What is known of a background command from its beginning, and the file below `spill` for its output.
    fn begin(order: &Order, spill: &Path, start: Start) -> Result<(TaskFacts, Capture), StartFault> {
        let task_id = ids::task('b');
        let capture = Capture::in_file(spill.join("tasks").join(format!("{task_id}.output")))?;
        let output_file = capture.path().map(Path::to_path_buf).unwrap_or_default();
        let facts = TaskFacts {
            task_id,
            tool_use_id: start.tool_use_id,
            owner: start.owner,
            kind: TaskKind::Command,
            description: start.description,
            command: order.command.clone(),
            agent_type: None,
            name: None,
            output_file,
        };
        Ok((facts, capture))
    }

    /// Waits beside a background command; gives what stops it.
    fn watch(
        &self,
        facts: TaskFacts,
        process: Process,
        capture: Capture,
        limit: Option<Duration>,
    ) -> CancellationToken {
        self.watch_until(facts, process, capture, limit, None)
    }

    /// The same for a command that may be let go.
    fn watch_until(
        &self,
        facts: TaskFacts,
        process: Process,
        capture: Capture,
        limit: Option<Duration>,
        release: Option<CancellationToken>,
    ) -> CancellationToken {
        let (tell, state) = watch::channel(TaskState::Running);
        let closed = self.roster.closed.clone();
        let stop = closed.child_token();
        let (background, by_host) = (watch::Sender::new(true), CancellationToken::new());
        self.rows().push(Task {
            facts: facts.clone(),
            state,
            stop: stop.clone(),
            by_host: by_host.clone(),
            background,
            sealed: false,
            release: release.clone(),
        });
        // Nobody may be listening any more.
        let _ = self.news.send(Post::Task(Box::new(facts.started())));
        let token = stop.clone();
        let release = release.unwrap_or_default();
        let news = self.news.clone();
        let watcher = Watcher { facts, stop, by_host, release, closed, state: tell, news, limit };
        tokio::spawn(watcher.watch(process, capture));
        token
    }
}

/// The last handle is gone: what still runs is ended.
impl Drop for Table {
    fn drop(&mut self) {
        self.roster.closed.cancel();
    }
}

impl Task {
    fn info(&self) -> TaskInfo {
        TaskInfo {
            facts: self.facts.clone(),
            state: *self.state.borrow(),
            background: *self.background.borrow(),
        }
    }

    /// Whether it runs, and the turn goes on beside it.
    fn is_beside(&self) -> bool {
        *self.background.borrow() && *self.state.borrow() == TaskState::Running
    }
}

impl Watcher {
    async fn watch(self, mut process: Process, mut capture: Capture) {
        let finish = within(self.limit, process.finish(&mut capture));
        let end = tokio::select! {
            biased;
            end = self.stop.run_until_cancelled(finish) => end,
            () = self.release.cancelled() => return self.let_go(process),
        };
        let out_of_time = matches!(end, Some(None));
        let told = match &end {
            Some(_) => Told::AtOnce,
            None if self.by_host.is_cancelled() => Told::Later,
            None => Told::Never,
        };
        let (status, exit_code) = match end.flatten() {
            Some((ending, leftover)) => {
                if leftover == Leftover::Running {
                    process.keep_open(self.closed);
                }
                TaskStatus::after(ending)
            }
            None => {
                process.stop(&mut capture).await;
                (TaskStatus::Stopped, None)
            }
        };
        capture.finish();
        let ended = match out_of_time {
            true => self.facts.out_of_time(),
            false => self.facts.ended(status, exit_code, told),
        };
        // Nobody may be listening any more.
        let _ = self.news.send(Post::Task(Box::new(ended)));
        self.state.send_replace(TaskState::Ended { status, exit_code });
    }

    /// The command goes on, and nobody waits beside it any more.
    fn let_go(self, process: Process) {
        let event = self.facts.let_go(process.release());
        // Nobody may be listening any more.
        let _ = self.news.send(Post::Task(Box::new(event)));
        self.state.send_replace(TaskState::Ended { status: TaskStatus::Stopped, exit_code: None });
    }
}

/// Waits for something, but not longer than the limit if there is one.
async fn within<T>(limit: Option<Duration>, work: impl Future<Output = T>) -> Option<T> {
    match limit {
        Some(limit) => tokio::time::timeout(limit, work).await.ok(),
        None => Some(work.await),
    }
}
