//! Tasks of a session: commands and agents, in the foreground and in the background.
//!
//! - `foreground`: commands that a call waits for; `background`: commands that the turn does not wait for; `detach`:
//!   commands that may outlive the session
//! - `agent_task`: agents as tasks; `monitor_output`: output lines of monitors
//!
//! Processes, their output and their cleanup are in the crate [`whimbrel_process`].

mod agent_task;
mod background;
mod detach;
mod foreground;
mod monitor_output;
#[cfg(test)]
pub(crate) mod tests;

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};
use whimbrel_process::{
    CapturedOutput, CommandSpec, KILL_GRACE, Launch, Leftover, ProcessExit, ProcessGroups, bounded_output,
};
use whimbrel_transport::frame_sender::FrameSender;

pub use self::agent_task::AgentTask;
pub use self::foreground::CommandRun;
use crate::internal_events::EventSender;
use crate::live_output::{LiveOutput, LiveStream, OutputSource};
use crate::sandbox::ConfinedRun;
use crate::sandbox::report::ViolationReport;
pub use crate::task_types::{
    BackgroundPolicy, NewTask, NotifyModel, TaskError, TaskEvent, TaskInfo, TaskKind, TaskOutputReport,
    TaskScope, TaskSnapshot, TaskState, TaskStatus,
};
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
    live_output: LiveOutput,
    timers: Timers,
    /// What happens to background commands when the session ends.
    at_end: BackgroundPolicy,
    /// Set once agents were stopped because the session ends.
    agents_stopped: AtomicBool,
}

/// One row of the table.
struct TaskRow {
    info: TaskInfo,
    state: watch::Receiver<TaskState>,
    stop: CancellationToken,
    /// Fires before `stop` if the host stops the task: then the main model does not know.
    stopped_by_host: CancellationToken,
    /// Whether the turn continues without waiting for it.
    background: watch::Sender<bool>,
    /// Set just before the agent ends: no more moves between foreground and background.
    background_locked: bool,
    /// Detaches the command from the session, if it is detachable.
    detach: Option<CancellationToken>,
}

/// A foreground command that has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct FinishedCommand {
    pub exit: ProcessExit,
    pub output: CapturedOutput,
    pub leftover: Leftover,
    /// What was refused to a confined command.
    pub report: Option<ViolationReport>,
}

/// A command to start.
#[derive(Debug)]
pub struct TaskCommand<'a> {
    pub launch: Launch<'a>,
    /// Set for a confined command.
    pub confined: Option<ConfinedRun>,
}

impl<'a> From<&'a CommandSpec> for TaskCommand<'a> {
    fn from(spec: &'a CommandSpec) -> Self {
        Self { launch: Launch::Unconfined(spec), confined: None }
    }
}

impl TaskRegistry {
    /// An empty registry that reports to `events`, for work without a host that could subscribe to its output.
    pub fn new(events: EventSender) -> Self {
        let live_output = LiveOutput::new(FrameSender::disconnected());
        Self::for_session(events, BackgroundPolicy::default(), live_output)
    }

    /// The same with a policy for background work at the end of the session, and with live output for the host.
    pub fn for_session(events: EventSender, at_end: BackgroundPolicy, live_output: LiveOutput) -> Self {
        let groups = Arc::new(ProcessGroups::new());
        let timers = Timers::new(events.clone(), groups.closed.clone());
        Self {
            table: Arc::new(TaskTable {
                groups,
                tasks: Mutex::default(),
                events,
                live_output,
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

    /// Live output of the session's commands.
    pub fn live_output(&self) -> &LiveOutput {
        &self.table.live_output
    }

    /// Tells a host that has subscribed to live output that a call has its permission and starts.
    pub async fn notify_call_start(&self, tool_use_id: &str, tool: &str, agent_id: Option<&str>) {
        let source = self.table.output_source(tool_use_id, agent_id.map(str::to_owned));
        self.table.live_output.send_call_start(source, tool).await;
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
        self.table.rows().iter().filter(|task| task.is_in_background() && is_counted(task.info.kind)).count()
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
        let (output, omitted_bytes) = match bounded_output::read_tail(&task.info.output_file) {
            Ok(printed) => printed,
            // An agent writes its report only when it ends.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => (String::new(), 0),
            Err(error) => (format!("(the output file cannot be read: {error})"), 0),
        };
        Ok(TaskOutputReport { task, output, omitted_bytes })
    }

    /// The agent that started a task; `None` for the main agent or an unknown task.
    pub fn owner(&self, id: &str) -> Option<String> {
        self.table.find(id, TaskScope::Host, |task| task.info.owner.clone()).ok().flatten()
    }

    /// Tasks that these calls started, directly or through agents that they started; also those that have ended.
    pub fn started_by(&self, calls: &HashSet<String>) -> Vec<TaskSnapshot> {
        let rows = self.table.rows();
        let mut found: HashSet<&str> = HashSet::new();
        // Repeated, because an agent that was continued is listed after tasks that it had started.
        loop {
            let known = found.len();
            let is_found = |task: &&TaskRow| {
                calls.contains(&task.info.tool_use_id)
                    || task.info.owner.as_deref().is_some_and(|owner| found.contains(owner))
            };
            let more: Vec<&str> =
                rows.iter().filter(is_found).map(|task| task.info.task_id.as_str()).collect();
            found.extend(more);
            if found.len() == known {
                break;
            }
        }
        rows.iter().filter(|task| found.contains(task.info.task_id.as_str())).map(TaskRow::snapshot).collect()
    }

    /// Stops running tasks without waiting for them and without a notification for the model.
    pub fn stop_unnotified(&self, ids: &[String]) {
        let rows = self.table.rows();
        rows.iter().filter(|task| ids.contains(&task.info.task_id)).for_each(|task| task.stop.cancel());
    }

    /// Stops running tasks of an agent without waiting for them.
    pub fn stop_tasks_of(&self, owner: &str) {
        let rows = self.table.rows();
        rows.iter()
            .filter(|task| task.info.owner.as_deref() == Some(owner))
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

    /// Waits for tasks that are stopping, at most for `limit`.
    pub async fn wait_for_stopped(&self, limit: Duration) {
        let stopped: Vec<_> = {
            let rows = self.table.rows();
            let stopped = rows.iter().filter(|task| task.stop.is_cancelled());
            stopped.map(|task| task.state.clone()).collect()
        };
        let all_ended = async {
            for mut state in stopped {
                // A closed channel means that the task has ended, too.
                let _ = state.wait_for(|state| *state != TaskState::Running).await;
            }
        };
        let _ = tokio::time::timeout(limit, all_ended).await;
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

    /// Opens the live output of a command; `task_id` is that of a background task.
    fn open_live_stream(&self, new_task: &NewTask, task_id: Option<&str>) -> LiveStream {
        let source = self.output_source(&new_task.tool_use_id, new_task.owner.clone());
        self.live_output.open_stream(OutputSource { task_id: task_id.map(str::to_owned), ..source })
    }

    /// A call and the agent that makes it.
    fn output_source(&self, tool_use_id: &str, agent_id: Option<String>) -> OutputSource {
        // A subagent is a task, too: of the call that started it.
        let started_by = |agent: &String| {
            let rows = self.rows();
            let row = rows.iter().find(|task| task.info.task_id == *agent);
            row.map(|task| task.info.tool_use_id.clone())
        };
        OutputSource {
            tool_use_id: tool_use_id.to_owned(),
            task_id: None,
            parent_tool_use_id: agent_id.as_ref().and_then(started_by),
            agent_id,
        }
    }

    /// Finds a task by id, or an agent by name; among several of a name the last running one.
    fn find<T>(&self, id: &str, scope: TaskScope<'_>, read: impl Fn(&TaskRow) -> T) -> Result<T, TaskError> {
        let rows = self.rows();
        let by_id = rows.iter().find(|task| task.info.task_id == id);
        let with_name = || rows.iter().rev().filter(|task| task.info.has_name(id));
        let by_name =
            || with_name().find(|task| *task.state.borrow() == TaskState::Running).or(with_name().next());
        match by_id.or_else(by_name) {
            Some(task) if scope.includes(&task.info) => Ok(read(task)),
            Some(_) => Err(TaskError::OtherAgent { id: id.into() }),
            None => {
                let known =
                    rows.iter().filter(|task| *task.background.borrow() && scope.includes(&task.info));
                let known = known.map(|task| task.info.task_id.clone()).collect();
                Err(TaskError::Unknown { id: id.into(), known })
            }
        }
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
            info: self.info.clone(),
            state: *self.state.borrow(),
            background: *self.background.borrow(),
        }
    }

    /// Returns whether it runs in the background.
    fn is_in_background(&self) -> bool {
        *self.background.borrow() && *self.state.borrow() == TaskState::Running
    }
}
