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

mod child_process;
mod agent_task;
mod piped_command;
mod foreground;
mod line_batches;
mod process_tag;
mod detach;
mod capture;
mod pipe;
mod direct_exec;
mod process;
mod procfs;
mod plain_text;
mod reaper;
mod process_groups;
mod shell_script;
mod task;
#[cfg(test)]
pub(crate) mod tests;
mod cwd_tracker;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

use self::process::Process;
use self::process_groups::{KILL_GRACE, ProcessGroups};
use crate::ids;
use crate::internal_events::{EventSender, InternalEvent};
use crate::activity::BackgroundPolicy;
use crate::timers::Timers;

pub(crate) use self::child_process::{ChildProcess, KillHandle, ProgramSpec};
pub use self::agent_task::AgentTask;
pub(crate) use self::piped_command::{PipedCommand, CommandOutput, CommandEvent};
pub use self::foreground::CommandRun;
pub use self::process_tag::track_daemons;
pub(crate) use self::capture::OutputCapture;
pub use self::capture::CapturedOutput;
pub use self::process::{ProcessExit, Leftover, CommandSpec, SpawnError};
pub(crate) use self::plain_text::format_size;
pub use self::task::{
    TaskError, TaskScope, NewTask, TaskEvent, TaskFacts, TaskSnapshot, TaskKind, TaskOutputReport, TaskState, TaskStatus, NotifyModel,
};
pub(crate) use self::cwd_tracker::CwdTracker;

/// How long agents may take to leave everything in order when the session ends.
const AGENT_SHUTDOWN_GRACE: Duration = Duration::from_millis(1500);

/// A handle on the commands of a session. Cheap to clone. When the last one is dropped, everything is ended.
#[derive(Clone)]
pub struct TaskRegistry {
    table: Arc<TaskTable>,
}

struct TaskTable {
    groups: Arc<ProcessGroups>,
    tasks: Mutex<Vec<TaskRow>>,
    events: EventSender,
    timers: Timers,
    /// What becomes of commands at the end.
    at_end: BackgroundPolicy,
    /// Whether agents have been sent home because the session ends.
    agents_stopped: AtomicBool,
}

/// One row of the table.
struct TaskRow {
    facts: TaskFacts,
    state: watch::Receiver<TaskState>,
    stop: CancellationToken,
    /// Fires before `stop` if it is the host that stops it: then the main model does not know.
    stopped_by_host: CancellationToken,
    /// Whether the turn goes on beside it.
    background: watch::Sender<bool>,
    /// Whether it is about to end: from then on it stays where it is.
    background_frozen: bool,
    /// Lets it go on without the session, if it may.
    detach: Option<CancellationToken>,
}

/// A command that a call has waited for.
#[derive(Debug, Clone, PartialEq)]
pub struct FinishedCommand {
    /// How it ended.
    pub exit: ProcessExit,
    /// What it printed.
    pub output: CapturedOutput,
    /// What it left behind.
    pub leftover: Leftover,
}

/// Waits beside one background command.
struct CommandWatcher {
    facts: TaskFacts,
    stop: CancellationToken,
    /// Fires before `stop` if the host stops it.
    stopped_by_host: CancellationToken,
    /// Fires when it is to go on without the session.
    detach: CancellationToken,
    closed: CancellationToken,
    state: watch::Sender<TaskState>,
    events: EventSender,
    /// How long it may run, if not as long as it likes.
    limit: Option<Duration>,
}

impl TaskRegistry {
    /// An empty table that reports to `news`.
    pub fn new(news: EventSender) -> Self {
        Self::for_session(news, BackgroundPolicy::default())
    }

    /// The same for a session whose background work ends in its own way.
    pub fn for_session(news: EventSender, at_end: BackgroundPolicy) -> Self {
        let roster = Arc::new(ProcessGroups::new());
        let timers = Timers::new(news.clone(), roster.closed.clone());
        Self {
            table: Arc::new(TaskTable {
                groups: roster,
                tasks: Mutex::default(),
                events: news,
                timers,
                at_end,
                agents_stopped: AtomicBool::new(false),
            }),
        }
    }

    /// Starts a command in the background. Its output goes to a file below `spill`.
    pub fn start_command(&self, order: &CommandSpec, spill: &Path, start: NewTask) -> Result<TaskFacts, SpawnError> {
        let (facts, capture) = TaskTable::prepare_command(order, spill, start)?;
        match self.table.at_end {
            BackgroundPolicy::Detach => {
                let (process, release) = detach::spawn_detachable(order, &self.table.groups, &capture)?;
                self.table.watch_detachable(facts.clone(), process, capture, None, Some(release));
            }
            BackgroundPolicy::WaitForAgents | BackgroundPolicy::WaitForAll | BackgroundPolicy::Stop => {
                let process = Process::spawn(order, &self.table.groups)?;
                self.table.watch(facts.clone(), process, capture, None);
            }
        }
        Ok(facts)
    }

    /// Starts a command in the background whose lines are told as they come, for at most `limit`.
    pub fn start_monitor(
        &self,
        order: &CommandSpec,
        spill: &Path,
        start: NewTask,
        limit: Duration,
    ) -> Result<TaskFacts, SpawnError> {
        let (facts, capture) = TaskTable::prepare_command(order, spill, start)?;
        let process = Process::spawn(order, &self.table.groups)?;
        let (lines, teller) = line_batches::line_channel();
        let stop = self.table.watch(facts.clone(), process, capture.with_line_sender(lines), Some(limit));
        tokio::spawn(teller.report(facts.clone(), self.table.events.clone(), stop));
        Ok(facts)
    }

    /// The timers of the session.
    pub fn timers(&self) -> &Timers {
        &self.table.timers
    }

    /// All background work since the session began, in order.
    pub fn list(&self) -> Vec<TaskSnapshot> {
        self.table.rows().iter().map(TaskRow::snapshot).collect()
    }

    /// How many commands run in the background.
    pub fn running_commands(&self) -> usize {
        self.count_running(|kind| kind == TaskKind::Command)
    }

    /// How many agents work in the background.
    pub fn running_agents(&self) -> usize {
        self.count_running(|kind| kind == TaskKind::Agent)
    }

    fn count_running(&self, counts: impl Fn(TaskKind) -> bool) -> usize {
        self.table.rows().iter().filter(|task| task.is_in_background() && counts(task.facts.kind)).count()
    }

    /// Ends everything when it is dropped. Whoever works for the session holds its tasks too, so that they would never be
    /// dropped by themselves.
    pub fn close_on_drop(&self) -> DropGuard {
        self.table.groups.closed.clone().drop_guard()
    }

    /// What a task has printed. Waits for its end first, but not longer than `wait`.
    pub async fn read_output(&self, id: &str, reach: TaskScope<'_>, wait: Duration) -> Result<TaskOutputReport, TaskError> {
        let mut state = self.table.find(id, reach, |task| task.state.clone())?;
        let _ = tokio::time::timeout(wait, state.wait_for(|state| *state != TaskState::Running)).await;
        let task = self.table.find(id, reach, TaskRow::snapshot)?;
        let (output, left_out) = match capture::read_tail(&task.facts.output_file) {
            Ok(printed) => printed,
            // An agent writes its report at its end.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => (String::new(), 0),
            Err(error) => (format!("(the output file cannot be read: {error})"), 0),
        };
        Ok(TaskOutputReport { task, output, omitted_bytes: left_out })
    }

    /// The agent that started a task; none if the main one did, or if there is no such task.
    pub fn owner(&self, id: &str) -> Option<String> {
        self.table.find(id, TaskScope::Host, |task| task.facts.owner.clone()).ok().flatten()
    }

    /// Stops what an agent has started that still runs, and does not wait for it.
    pub fn stop_tasks_of(&self, owner: &str) {
        let rows = self.table.rows();
        rows.iter()
            .filter(|task| task.facts.owner.as_deref() == Some(owner))
            .for_each(|task| task.stop.cancel());
    }

    /// Whether the session ends.
    pub fn is_closing(&self) -> bool {
        self.table.agents_stopped.load(Ordering::Relaxed) || self.table.groups.closed.is_cancelled()
    }

    /// Stops a task with all its children, and waits until they are gone.
    pub async fn stop(&self, id: &str, reach: TaskScope<'_>) -> Result<TaskSnapshot, TaskError> {
        let take = |task: &TaskRow| (task.state.clone(), task.stop.clone(), task.stopped_by_host.clone());
        let (mut state, stop, by_host) = self.table.find(id, reach, take)?;
        let now = *state.borrow();
        if now != TaskState::Running {
            return Err(TaskError::Ended { id: id.into(), state: now });
        }
        if reach == TaskScope::Host {
            by_host.cancel();
        }
        stop.cancel();
        let _ = state.wait_for(|state| *state != TaskState::Running).await;
        self.table.find(id, reach, TaskRow::snapshot)
    }

    /// Ends everything that the session has ever started and that still runs, and reports it. Afterwards nothing can
    /// be started.
    pub async fn shutdown(&self) {
        // First those who may have something to put away, for which they need commands.
        self.stop_agents(AGENT_SHUTDOWN_GRACE).await;
        self.table.groups.close().await;
        let states: Vec<_> = self.table.rows().iter().map(|task| task.state.clone()).collect();
        for mut state in states {
            let told = state.wait_for(|state| *state != TaskState::Running);
            let _ = tokio::time::timeout(KILL_GRACE, told).await;
        }
    }
}

impl TaskTable {
    /// Each row is complete when it is pushed; a panic elsewhere cannot leave it half written.
    fn rows(&self) -> MutexGuard<'_, Vec<TaskRow>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The task of this id; or the agent of this name, and of several the last one that runs.
    fn find<T>(&self, id: &str, reach: TaskScope<'_>, take: impl Fn(&TaskRow) -> T) -> Result<T, TaskError> {
        let rows = self.rows();
        let of_id = rows.iter().find(|task| task.facts.task_id == id);
        let called = || rows.iter().rev().filter(|task| task.facts.has_name(id));
        let named = || called().find(|task| *task.state.borrow() == TaskState::Running).or(called().next());
        match of_id.or_else(named) {
            Some(task) if reach.includes(&task.facts) => Ok(take(task)),
            Some(_) => Err(TaskError::OtherAgent { id: id.into() }),
            None => {
                let known = rows.iter().filter(|task| *task.background.borrow() && reach.includes(&task.facts));
                let known = known.map(|task| task.facts.task_id.clone()).collect();
                Err(TaskError::Unknown { id: id.into(), known })
            }
        }
    }

    /// What is known of a background command from its beginning, and the file below `spill` for its output.
    fn prepare_command(order: &CommandSpec, spill: &Path, start: NewTask) -> Result<(TaskFacts, OutputCapture), SpawnError> {
        let task_id = ids::new_task_id('b');
        let capture = OutputCapture::in_file(spill.join("tasks").join(format!("{task_id}.output")))?;
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
        capture: OutputCapture,
        limit: Option<Duration>,
    ) -> CancellationToken {
        self.watch_detachable(facts, process, capture, limit, None)
    }

    /// The same for a command that may be let go.
    fn watch_detachable(
        &self,
        facts: TaskFacts,
        process: Process,
        capture: OutputCapture,
        limit: Option<Duration>,
        release: Option<CancellationToken>,
    ) -> CancellationToken {
        let (tell, state) = watch::channel(TaskState::Running);
        let closed = self.groups.closed.clone();
        let stop = closed.child_token();
        let (background, by_host) = (watch::Sender::new(true), CancellationToken::new());
        self.rows().push(TaskRow {
            facts: facts.clone(),
            state,
            stop: stop.clone(),
            stopped_by_host: by_host.clone(),
            background,
            background_frozen: false,
            detach: release.clone(),
        });
        // Nobody may be listening any more.
        let _ = self.events.send(InternalEvent::Task(Box::new(facts.started_event())));
        let token = stop.clone();
        let release = release.unwrap_or_default();
        let news = self.events.clone();
        let watcher = CommandWatcher { facts, stop, stopped_by_host: by_host, detach: release, closed, state: tell, events: news, limit };
        tokio::spawn(watcher.run(process, capture));
        token
    }
}

/// The last handle is gone: what still runs is ended.
impl Drop for TaskTable {
    fn drop(&mut self) {
        self.groups.closed.cancel();
    }
}

impl TaskRow {
    fn snapshot(&self) -> TaskSnapshot {
        TaskSnapshot {
            facts: self.facts.clone(),
            state: *self.state.borrow(),
            background: *self.background.borrow(),
        }
    }

    /// Whether it runs, and the turn goes on beside it.
    fn is_in_background(&self) -> bool {
        *self.background.borrow() && *self.state.borrow() == TaskState::Running
    }
}

impl CommandWatcher {
    async fn run(self, mut process: Process, mut capture: OutputCapture) {
        let finish = with_optional_timeout(self.limit, process.run_to_end(&mut capture));
        let end = tokio::select! {
            biased;
            end = self.stop.run_until_cancelled(finish) => end,
            () = self.detach.cancelled() => return self.detach(process),
        };
        let out_of_time = matches!(end, Some(None));
        let told = match &end {
            Some(_) => NotifyModel::Now,
            None if self.stopped_by_host.is_cancelled() => NotifyModel::WithNextInput,
            None => NotifyModel::Never,
        };
        let (status, exit_code) = match end.flatten() {
            Some((ending, leftover)) => {
                if leftover == Leftover::Running {
                    process.discard_output(self.closed);
                }
                TaskStatus::from_exit(ending)
            }
            None => {
                process.stop(&mut capture).await;
                (TaskStatus::Stopped, None)
            }
        };
        capture.finish();
        let ended = match out_of_time {
            true => self.facts.timed_out_event(),
            false => self.facts.ended_event(status, exit_code, told),
        };
        // Nobody may be listening any more.
        let _ = self.events.send(InternalEvent::Task(Box::new(ended)));
        self.state.send_replace(TaskState::Ended { status, exit_code });
    }

    /// The command goes on, and nobody waits beside it any more.
    fn detach(self, process: Process) {
        let event = self.facts.detached_event(process.detach());
        // Nobody may be listening any more.
        let _ = self.events.send(InternalEvent::Task(Box::new(event)));
        self.state.send_replace(TaskState::Ended { status: TaskStatus::Stopped, exit_code: None });
    }
}

/// Waits for something, but not longer than the limit if there is one.
async fn with_optional_timeout<T>(limit: Option<Duration>, work: impl Future<Output = T>) -> Option<T> {
    match limit {
        Some(limit) => tokio::time::timeout(limit, work).await.ok(),
        None => Some(work.await),
    }
}
