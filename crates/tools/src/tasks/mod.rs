//! Commands of a session, in the foreground and in the background.
//!
//! - `foreground`: commands that a call waits for; `detach`: commands that may outlive the session
//! - `agent_task`: agents as tasks; `line_batches`: output of monitors
//!
//! Processes, their output and their cleanup are in the crate [`whimbrel_process`].

mod agent_task;
mod detach;
mod foreground;
mod line_batches;
#[cfg(test)]
pub(crate) mod tests;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};
use whimbrel_os::ids;
use whimbrel_process::{
    CapturedOutput, CommandSpec, KILL_GRACE, Leftover, OutputCapture, Process, ProcessExit, ProcessGroups,
    SpawnError, bounded_output, line_channel,
};

pub use self::agent_task::AgentTask;
pub use self::foreground::CommandRun;
use crate::background_task::BackgroundPolicy;
pub use crate::background_task::{
    NewTask, NotifyModel, TaskError, TaskEvent, TaskFacts, TaskKind, TaskOutputReport, TaskScope,
    TaskSnapshot, TaskState, TaskStatus,
};
use crate::internal_events::{EventSender, InternalEvent};
use crate::timers::Timers;

/// Time that agents get for cleanup when the session ends.
const AGENT_SHUTDOWN_GRACE: Duration = Duration::from_millis(1500);

/// Registry of a session's commands and background tasks. Cheap to clone. Dropping the last handle ends everything.
#[derive(Clone)]
pub struct TaskRegistry {
    table: Arc<TaskTable>,
}

struct TaskTable {
    groups: Arc<ProcessGroups>,
    tasks: Mutex<Vec<TaskRow>>,
    events: EventSender,
    timers: Timers,
    /// What happens to background commands when the session ends.
    at_end: BackgroundPolicy,
    /// Set once agents were stopped because the session ends.
    agents_stopped: AtomicBool,
}

/// One row of the table.
struct TaskRow {
    facts: TaskFacts,
    state: watch::Receiver<TaskState>,
    stop: CancellationToken,
    /// Fires before `stop` if the host stops the task: then the main model does not know.
    stopped_by_host: CancellationToken,
    /// Whether the turn continues without waiting for it.
    background: watch::Sender<bool>,
    /// Set shortly before the end: foreground or background no longer changes.
    background_frozen: bool,
    /// Detaches the command from the session, if it is detachable.
    detach: Option<CancellationToken>,
}

/// A foreground command that has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct FinishedCommand {
    pub exit: ProcessExit,
    pub output: CapturedOutput,
    pub leftover: Leftover,
}

/// Watches one background command.
struct CommandWatcher {
    facts: TaskFacts,
    stop: CancellationToken,
    /// Fires before `stop` if the host stops it.
    stopped_by_host: CancellationToken,
    /// Fires when the command is detached from the session.
    detach: CancellationToken,
    closed: CancellationToken,
    state: watch::Sender<TaskState>,
    events: EventSender,
    limit: Option<Duration>,
}

impl TaskRegistry {
    /// An empty registry that reports to `events`.
    pub fn new(events: EventSender) -> Self {
        Self::for_session(events, BackgroundPolicy::default())
    }

    /// The same with a policy for background work at the end of the session.
    pub fn for_session(events: EventSender, at_end: BackgroundPolicy) -> Self {
        let groups = Arc::new(ProcessGroups::new());
        let timers = Timers::new(events.clone(), groups.closed.clone());
        Self {
            table: Arc::new(TaskTable {
                groups,
                tasks: Mutex::default(),
                events,
                timers,
                at_end,
                agents_stopped: AtomicBool::new(false),
            }),
        }
    }

    /// Process groups of the session, for commands that are no tasks.
    pub fn process_groups(&self) -> &Arc<ProcessGroups> {
        &self.table.groups
    }

    /// Starts a command in the background. Its output goes to a file below `output_dir`.
    pub fn start_command(
        &self,
        spec: &CommandSpec,
        output_dir: &Path,
        new_task: NewTask,
    ) -> Result<TaskFacts, SpawnError> {
        let (facts, capture) = TaskTable::prepare_command(spec, output_dir, new_task)?;
        match self.table.at_end {
            BackgroundPolicy::Detach => {
                let (process, detach_token) = detach::spawn_detachable(spec, &self.table.groups, &capture)?;
                self.table.watch_detachable(facts.clone(), process, capture, None, Some(detach_token));
            }
            BackgroundPolicy::WaitForAgents | BackgroundPolicy::WaitForAll | BackgroundPolicy::Stop => {
                let process = Process::spawn(spec, &self.table.groups)?;
                self.table.watch(facts.clone(), process, capture, None);
            }
        }
        Ok(facts)
    }

    /// Starts a background command whose output lines are reported as notifications, for at most `limit`.
    pub fn start_monitor(
        &self,
        spec: &CommandSpec,
        output_dir: &Path,
        new_task: NewTask,
        limit: Duration,
    ) -> Result<TaskFacts, SpawnError> {
        let (facts, capture) = TaskTable::prepare_command(spec, output_dir, new_task)?;
        let process = Process::spawn(spec, &self.table.groups)?;
        let (lines, receiver) = line_channel::line_channel();
        let stop = self.table.watch(facts.clone(), process, capture.with_line_sender(lines), Some(limit));
        tokio::spawn(line_batches::report_lines(receiver, facts.clone(), self.table.events.clone(), stop));
        Ok(facts)
    }

    pub fn timers(&self) -> &Timers {
        &self.table.timers
    }

    /// All background tasks since the session began, in order.
    pub fn list(&self) -> Vec<TaskSnapshot> {
        self.table.rows().iter().map(TaskRow::snapshot).collect()
    }

    pub fn running_commands(&self) -> usize {
        self.count_running(|kind| kind == TaskKind::Command)
    }

    pub fn running_agents(&self) -> usize {
        self.count_running(|kind| kind == TaskKind::Agent)
    }

    fn count_running(&self, is_counted: impl Fn(TaskKind) -> bool) -> usize {
        self.table.rows().iter().filter(|task| task.is_in_background() && is_counted(task.facts.kind)).count()
    }

    /// Ends everything on drop. Needed because tasks of the session hold the registry too, so that the last handle
    /// would never be dropped.
    pub fn close_on_drop(&self) -> DropGuard {
        self.table.groups.closed.clone().drop_guard()
    }

    /// Returns the output of a task. Waits for its end first, at most `wait`.
    pub async fn read_output(
        &self,
        id: &str,
        scope: TaskScope<'_>,
        wait: Duration,
    ) -> Result<TaskOutputReport, TaskError> {
        let mut state = self.table.find(id, scope, |task| task.state.clone())?;
        let _ = tokio::time::timeout(wait, state.wait_for(|state| *state != TaskState::Running)).await;
        let task = self.table.find(id, scope, TaskRow::snapshot)?;
        let (output, omitted_bytes) = match bounded_output::read_tail(&task.facts.output_file) {
            Ok(printed) => printed,
            // An agent writes its report only when it ends.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => (String::new(), 0),
            Err(error) => (format!("(the output file cannot be read: {error})"), 0),
        };
        Ok(TaskOutputReport { task, output, omitted_bytes })
    }

    /// The agent that started a task; `None` for the main agent or an unknown task.
    pub fn owner(&self, id: &str) -> Option<String> {
        self.table.find(id, TaskScope::Host, |task| task.facts.owner.clone()).ok().flatten()
    }

    /// Stops running tasks of an agent without waiting for them.
    pub fn stop_tasks_of(&self, owner: &str) {
        let rows = self.table.rows();
        rows.iter()
            .filter(|task| task.facts.owner.as_deref() == Some(owner))
            .for_each(|task| task.stop.cancel());
    }

    /// Returns whether the session is closing.
    pub fn is_closing(&self) -> bool {
        self.table.agents_stopped.load(Ordering::Relaxed) || self.table.groups.closed.is_cancelled()
    }

    /// Stops a task with its children, and waits until they are gone.
    pub async fn stop(&self, id: &str, scope: TaskScope<'_>) -> Result<TaskSnapshot, TaskError> {
        let read = |task: &TaskRow| (task.state.clone(), task.stop.clone(), task.stopped_by_host.clone());
        let (mut state, stop, by_host) = self.table.find(id, scope, read)?;
        let current = *state.borrow();
        if current != TaskState::Running {
            return Err(TaskError::Ended { id: id.into(), state: current });
        }
        if scope == TaskScope::Host {
            by_host.cancel();
        }
        stop.cancel();
        let _ = state.wait_for(|state| *state != TaskState::Running).await;
        self.table.find(id, scope, TaskRow::snapshot)
    }

    /// Ends everything that the session has started and that still runs, and reports it. Afterwards nothing can be
    /// started.
    pub async fn shutdown(&self) {
        // Agents first: their cleanup may need commands.
        self.stop_agents(AGENT_SHUTDOWN_GRACE).await;
        self.table.groups.close().await;
        let states: Vec<_> = self.table.rows().iter().map(|task| task.state.clone()).collect();
        for mut state in states {
            let ended = state.wait_for(|state| *state != TaskState::Running);
            let _ = tokio::time::timeout(KILL_GRACE, ended).await;
        }
    }
}

impl TaskTable {
    /// Rows are pushed complete, so a poisoned lock holds valid data.
    fn rows(&self) -> MutexGuard<'_, Vec<TaskRow>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finds a task by id, or an agent by name; among several of a name the last running one.
    fn find<T>(&self, id: &str, scope: TaskScope<'_>, read: impl Fn(&TaskRow) -> T) -> Result<T, TaskError> {
        let rows = self.rows();
        let by_id = rows.iter().find(|task| task.facts.task_id == id);
        let with_name = || rows.iter().rev().filter(|task| task.facts.has_name(id));
        let by_name =
            || with_name().find(|task| *task.state.borrow() == TaskState::Running).or(with_name().next());
        match by_id.or_else(by_name) {
            Some(task) if scope.includes(&task.facts) => Ok(read(task)),
            Some(_) => Err(TaskError::OtherAgent { id: id.into() }),
            None => {
                let known =
                    rows.iter().filter(|task| *task.background.borrow() && scope.includes(&task.facts));
                let known = known.map(|task| task.facts.task_id.clone()).collect();
                Err(TaskError::Unknown { id: id.into(), known })
            }
        }
    }

    /// Creates the facts of a background command and its output file below `output_dir`.
    fn prepare_command(
        spec: &CommandSpec,
        output_dir: &Path,
        new_task: NewTask,
    ) -> Result<(TaskFacts, OutputCapture), SpawnError> {
        let task_id = ids::new_task_id('b');
        let capture = OutputCapture::in_file(output_dir.join("tasks").join(format!("{task_id}.output")))?;
        let output_file = capture.path().map(Path::to_path_buf).unwrap_or_default();
        let facts = TaskFacts {
            task_id,
            tool_use_id: new_task.tool_use_id,
            owner: new_task.owner,
            kind: TaskKind::Command,
            description: new_task.description,
            command: spec.command.clone(),
            agent_type: None,
            name: None,
            output_file,
        };
        Ok((facts, capture))
    }

    /// Watches a background command; returns its stop token.
    fn watch(
        &self,
        facts: TaskFacts,
        process: Process,
        capture: OutputCapture,
        limit: Option<Duration>,
    ) -> CancellationToken {
        self.watch_detachable(facts, process, capture, limit, None)
    }

    /// The same for a command that may be detached.
    fn watch_detachable(
        &self,
        facts: TaskFacts,
        process: Process,
        capture: OutputCapture,
        limit: Option<Duration>,
        detach: Option<CancellationToken>,
    ) -> CancellationToken {
        let (state_sender, state) = watch::channel(TaskState::Running);
        let closed = self.groups.closed.clone();
        let stop = closed.child_token();
        let (background, stopped_by_host) = (watch::Sender::new(true), CancellationToken::new());
        self.rows().push(TaskRow {
            facts: facts.clone(),
            state,
            stop: stop.clone(),
            stopped_by_host: stopped_by_host.clone(),
            background,
            background_frozen: false,
            detach: detach.clone(),
        });
        // The session may be gone.
        let _ = self.events.send(InternalEvent::Task(Box::new(facts.started_event())));
        let token = stop.clone();
        let detach = detach.unwrap_or_default();
        let events = self.events.clone();
        let watcher = CommandWatcher {
            facts,
            stop,
            stopped_by_host,
            detach,
            closed,
            state: state_sender,
            events,
            limit,
        };
        tokio::spawn(watcher.run(process, capture));
        token
    }
}

/// The last handle is gone: end what still runs.
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

    /// Returns whether it runs in the background.
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
        let timed_out = matches!(end, Some(None));
        let notify = match &end {
            Some(_) => NotifyModel::Now,
            None if self.stopped_by_host.is_cancelled() => NotifyModel::WithNextInput,
            None => NotifyModel::Never,
        };
        let (status, exit_code) = match end.flatten() {
            Some((exit, leftover)) => {
                if leftover == Leftover::Running {
                    process.discard_output(self.closed);
                }
                TaskStatus::from_exit(exit)
            }
            None => {
                process.stop(&mut capture).await;
                (TaskStatus::Stopped, None)
            }
        };
        capture.finish();
        let ended = match timed_out {
            true => self.facts.timed_out_event(),
            false => self.facts.ended_event(status, exit_code, notify),
        };
        // The session may be gone.
        let _ = self.events.send(InternalEvent::Task(Box::new(ended)));
        self.state.send_replace(TaskState::Ended { status, exit_code });
    }

    /// Detaches the command and stops watching it.
    fn detach(self, process: Process) {
        let event = self.facts.detached_event(process.detach());
        // The session may be gone.
        let _ = self.events.send(InternalEvent::Task(Box::new(event)));
        self.state.send_replace(TaskState::Ended { status: TaskStatus::Stopped, exit_code: None });
    }
}

/// Awaits `work`, with a timeout if there is a limit.
async fn with_optional_timeout<T>(limit: Option<Duration>, work: impl Future<Output = T>) -> Option<T> {
    match limit {
        Some(limit) => tokio::time::timeout(limit, work).await.ok(),
        None => Some(work.await),
    }
}
