//! Data types of tasks: info, state and events. Other crates import them from [`tasks`](crate::tasks); they are a
//! module of their own because `internal_events`, on which `tasks` depends, has task events.

use std::path::PathBuf;

use whimbrel_process::ProcessExit;

/// Handling of background work when no input is left.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BackgroundPolicy {
    /// Wait for agents; commands get a grace period.
    #[default]
    WaitForAgents,
    /// Wait for all background work.
    WaitForAll,
    /// Stop all background work.
    Stop,
    /// Wait for agents, which cannot run without the engine; detach commands.
    Detach,
}

/// Properties of a task that do not change.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskInfo {
    pub task_id: String,
    /// The call that started it.
    pub tool_use_id: String,
    /// The agent that started it; `None` for the main agent.
    pub owner: Option<String>,
    pub kind: TaskKind,
    pub description: String,
    /// The command; empty for an agent.
    pub command: String,
    /// The agent type of a subagent.
    pub agent_type: Option<String>,
    /// The agent's name, which can be used in place of the id.
    pub name: Option<String>,
    pub output_file: PathBuf,
}

/// Properties and current state.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskSnapshot {
    pub info: TaskInfo,
    pub state: TaskState,
    /// Whether the turn continues without waiting for it.
    pub background: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskKind {
    Command,
    Agent,
    Teammate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskState {
    Running,
    Ended {
        status: TaskStatus,
        /// The exit code, if it exited on its own.
        exit_code: Option<i32>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskStatus {
    Completed,
    Failed,
    Stopped,
}

#[derive(Debug, Clone, PartialEq)]
pub enum TaskEvent {
    Started {
        task_id: String,
        /// The call that started it.
        tool_use_id: String,
        description: String,
        kind: TaskKind,
    },
    Ended {
        task_id: String,
        /// The call that started it.
        tool_use_id: String,
        status: TaskStatus,
        output_file: PathBuf,
        /// One sentence.
        summary: String,
        /// The exit code, if it exited on its own.
        exit_code: Option<i32>,
        /// Whether and when the main model is notified.
        notify: NotifyModel,
    },
    /// It continues outside of the session.
    Detached {
        task_id: String,
        /// The call that started it.
        tool_use_id: String,
        output_file: PathBuf,
        /// One sentence.
        summary: String,
    },
    /// A monitor printed lines for the model.
    Output {
        task_id: String,
        description: String,
        /// The lines.
        text: String,
    },
}

/// Whether and when the main model is notified that a task has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotifyModel {
    /// At once, in a new turn if none runs.
    Now,
    /// With the next input: the host stopped the task and knows.
    WithNextInput,
    /// Not at all: an agent stopped the task and knows.
    Never,
}

/// Requester of an operation on tasks; decides which tasks it may access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskScope<'a> {
    /// The host: all tasks.
    Host,
    /// The main agent: all tasks.
    Main,
    /// Another agent, by id: the tasks it has started.
    Agent(&'a str),
}

/// Output of a task so far.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskOutputReport {
    pub task: TaskSnapshot,
    /// The tail of the output.
    pub output: String,
    /// Number of bytes before it.
    pub omitted_bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TaskError {
    #[error("no background task has the id {id}; known: {}", format_ids(.known))]
    Unknown {
        id: String,
        /// Accessible ids.
        known: Vec<String>,
    },
    /// Started by another agent.
    #[error("the background task {id} belongs to another agent")]
    OtherAgent { id: String },
    /// Already ended.
    #[error("the background task {id} is not running: {}", .state.as_str())]
    Ended { id: String, state: TaskState },
}

/// Data of a task to be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTask {
    /// The call that starts it.
    pub tool_use_id: String,
    /// The agent that starts it; `None` for the main agent.
    pub owner: Option<String>,
    pub description: String,
}

impl<'a> TaskScope<'a> {
    /// The scope of an agent; `None` is the main agent.
    pub fn for_agent(id: Option<&'a str>) -> Self {
        id.map_or(Self::Main, Self::Agent)
    }

    pub fn includes(self, info: &TaskInfo) -> bool {
        match self {
            Self::Host | Self::Main => true,
            Self::Agent(id) => info.owner.as_deref() == Some(id),
        }
    }
}

impl TaskKind {
    /// Value on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Command => "local_bash",
            Self::Agent => "local_agent",
            Self::Teammate => "in_process_teammate",
        }
    }
}

impl TaskStatus {
    /// Value on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
        }
    }

    /// Status and exit code of a command that exited on its own.
    pub(crate) fn from_exit(exit: ProcessExit) -> (Self, Option<i32>) {
        match exit {
            ProcessExit::Exited(0) => (Self::Completed, Some(0)),
            ProcessExit::Exited(code) => (Self::Failed, Some(code)),
            ProcessExit::Killed(_) | ProcessExit::TimedOut | ProcessExit::Unknown => (Self::Failed, None),
        }
    }
}

impl TaskEvent {
    pub fn task_id(&self) -> &str {
        match self {
            Self::Started { task_id, .. }
            | Self::Ended { task_id, .. }
            | Self::Detached { task_id, .. }
            | Self::Output { task_id, .. } => task_id,
        }
    }
}

impl TaskState {
    /// Value on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Ended { status, .. } => status.as_str(),
        }
    }

    pub fn exit_code(self) -> Option<i32> {
        match self {
            Self::Running => None,
            Self::Ended { exit_code, .. } => exit_code,
        }
    }
}

impl TaskInfo {
    /// Returns whether this is its name; a teammate's name may have `@team` appended.
    pub(crate) fn has_name(&self, name: &str) -> bool {
        let own_name = match self.kind {
            TaskKind::Teammate => name.split_once('@').map_or(name, |(name, _)| name),
            TaskKind::Agent | TaskKind::Command => name,
        };
        self.name.as_deref() == Some(own_name)
    }

    pub(crate) fn started_event(&self) -> TaskEvent {
        TaskEvent::Started {
            task_id: self.task_id.clone(),
            tool_use_id: self.tool_use_id.clone(),
            description: self.description.clone(),
            kind: self.kind,
        }
    }

    pub(crate) fn output_event(&self, text: &str) -> TaskEvent {
        let (task_id, description) = (self.task_id.clone(), self.description.clone());
        TaskEvent::Output { task_id, description, text: text.to_owned() }
    }

    pub(crate) fn detached_event(&self, process: Option<i32>) -> TaskEvent {
        let process = process.map(|id| format!(" as process {id}")).unwrap_or_default();
        let summary = format!(
            "Background command \"{}\" keeps running without the session{process}; its output goes to {}",
            self.description,
            self.output_file.display()
        );
        TaskEvent::Detached {
            task_id: self.task_id.clone(),
            tool_use_id: self.tool_use_id.clone(),
            output_file: self.output_file.clone(),
            summary,
        }
    }

    pub(crate) fn timed_out_event(&self) -> TaskEvent {
        TaskEvent::Ended {
            task_id: self.task_id.clone(),
            tool_use_id: self.tool_use_id.clone(),
            status: TaskStatus::Stopped,
            output_file: self.output_file.clone(),
            summary: format!("\"{}\" was stopped: its time limit was reached", self.description),
            exit_code: None,
            notify: NotifyModel::Now,
        }
    }

    pub(crate) fn ended_event(
        &self,
        status: TaskStatus,
        exit_code: Option<i32>,
        notify: NotifyModel,
    ) -> TaskEvent {
        let exit = exit_code.map(|code| format!(" with exit code {code}")).unwrap_or_default();
        TaskEvent::Ended {
            task_id: self.task_id.clone(),
            tool_use_id: self.tool_use_id.clone(),
            status,
            output_file: self.output_file.clone(),
            summary: format!("Background command \"{}\" {}{exit}", self.description, status.as_str()),
            exit_code,
            notify,
        }
    }
}

fn format_ids(ids: &[String]) -> String {
    if ids.is_empty() { "none".into() } else { ids.join(", ") }
}
