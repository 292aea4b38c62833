//! Background work as others see it: what is known about it, how it stands, and news of it.

use std::path::PathBuf;

use super::process::ProcessExit;

/// What is known about background work from its beginning.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskFacts {
    /// Its name.
    pub task_id: String,
    /// The call that started it.
    pub tool_use_id: String,
    /// The agent whose call that was; none if it was the main one's.
    pub owner: Option<String>,
    /// What kind of work it is.
    pub kind: TaskKind,
    /// What it does, in a few words.
    pub description: String,
    /// The command; empty if it is none.
    pub command: String,
    /// The kind of subagent, if it is one.
    pub agent_type: Option<String>,
    /// The name by which it can be called besides, if it is an agent that has one.
    pub name: Option<String>,
    /// Where its output goes.
    pub output_file: PathBuf,
}

/// Background work as it is now.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskSnapshot {
    /// What does not change.
    pub facts: TaskFacts,
    /// What does.
    pub state: TaskState,
    /// Whether the turn goes on beside it.
    pub background: bool,
}

/// A kind of background work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskKind {
    /// A shell command.
    Command,
    /// A subagent.
    Agent,
    /// A teammate.
    Teammate,
}

/// Whether background work goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskState {
    /// It does.
    Running,
    /// It has ended.
    Ended {
        /// How.
        status: TaskStatus,
        /// The exit code, if it ended by itself.
        exit_code: Option<i32>,
    },
}

/// How background work ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskStatus {
    /// As it should.
    Completed,
    /// With an error.
    Failed,
    /// Somebody stopped it.
    Stopped,
}

/// Something happened to background work.
#[derive(Debug, Clone, PartialEq)]
pub enum TaskEvent {
    /// It began.
    Started {
        /// Its name.
        task_id: String,
        /// The call that started it.
        tool_use_id: String,
        /// What it does.
        description: String,
        /// What kind of work it is.
        kind: TaskKind,
    },
    /// It ended.
    Ended {
        /// Its name.
        task_id: String,
        /// The call that started it.
        tool_use_id: String,
        /// How it ended.
        status: TaskStatus,
        /// What it printed.
        output_file: PathBuf,
        /// The end in a sentence.
        summary: String,
        /// The exit code, if it ended by itself.
        exit_code: Option<i32>,
        /// Whether the main model is told, and when.
        notify: NotifyModel,
    },
    /// It goes on, but no longer as the session's work.
    Detached {
        /// Its name.
        task_id: String,
        /// The call that started it.
        tool_use_id: String,
        /// What it prints.
        output_file: PathBuf,
        /// What is to be known about it, in a sentence.
        summary: String,
    },
    /// It printed something that the model wants to hear.
    Output {
        /// Its name.
        task_id: String,
        /// What it does.
        description: String,
        /// The lines.
        text: String,
    },
}

/// Whether the main model is told that background work has ended, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotifyModel {
    /// At once, in a turn of its own if none runs.
    Now,
    /// With whatever it is told next: the host ended it, and knows.
    WithNextInput,
    /// Not at all: an agent ended it, and knows.
    Never,
}

/// Who wants something of background work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskScope<'a> {
    /// The host. All of it is its own.
    Host,
    /// The main agent, which answers for all others.
    Main,
    /// Another agent, by its id. It reaches what it has started itself.
    Agent(&'a str),
}

/// What a background task has printed so far.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskOutputReport {
    /// The task.
    pub task: TaskSnapshot,
    /// The last part of its output.
    pub output: String,
    /// How many bytes came before that.
    pub omitted_bytes: u64,
}

/// There is no such background task, or none that is running.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TaskError {
    /// Nobody knows this id.
    #[error("no background task has the id {id}; known: {}", format_ids(.known))]
    Unknown {
        /// The id.
        id: String,
        /// The ids that there are.
        known: Vec<String>,
    },
    /// Another agent's business.
    #[error("the background task {id} was started by somebody else")]
    OtherAgent {
        /// The id.
        id: String,
    },
    /// It has ended before.
    #[error("the background task {id} is not running: {}", .state.as_str())]
    Ended {
        /// The id.
        id: String,
        /// How it ended.
        state: TaskState,
    },
}

/// What the caller says about a command that it starts in the background.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTask {
    /// The call that starts it.
    pub tool_use_id: String,
    /// The agent whose call that is; none if it is the main one's.
    pub owner: Option<String>,
    /// What it does, in a few words.
    pub description: String,
}

impl<'a> TaskScope<'a> {
    /// That of an agent; none is the main one.
    pub fn for_agent(id: Option<&'a str>) -> Self {
        id.map_or(Self::Main, Self::Agent)
    }

    /// Whether work is within it.
    pub fn includes(self, facts: &TaskFacts) -> bool {
        match self {
            Self::Host | Self::Main => true,
            Self::Agent(id) => facts.owner.as_deref() == Some(id),
        }
    }
}

impl TaskKind {
    /// The kind on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Command => "local_bash",
            Self::Agent => "local_agent",
            Self::Teammate => "in_process_teammate",
        }
    }
}

impl TaskStatus {
    /// The status on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
        }
    }

    /// The status of a command that ended by itself, and its exit code.
    pub(super) fn from_exit(ending: ProcessExit) -> (Self, Option<i32>) {
        match ending {
            ProcessExit::Exited(0) => (Self::Completed, Some(0)),
            ProcessExit::Exited(code) => (Self::Failed, Some(code)),
            ProcessExit::Killed(_) | ProcessExit::TimedOut | ProcessExit::Unknown => (Self::Failed, None),
        }
    }
}

impl TaskEvent {
    /// The name of the work that it is about.
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
    /// The state on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Ended { status, .. } => status.as_str(),
        }
    }

    /// The exit code, if there is one.
    pub fn exit_code(self) -> Option<i32> {
        match self {
            Self::Running => None,
            Self::Ended { exit_code, .. } => exit_code,
        }
    }
}

impl TaskFacts {
    /// Whether it is called so: by a teammate's name also with the team behind it.
    pub(super) fn has_name(&self, name: &str) -> bool {
        let bare = match self.kind {
            TaskKind::Teammate => name.split_once('@').map_or(name, |(name, _)| name),
            TaskKind::Agent | TaskKind::Command => name,
        };
        self.name.as_deref() == Some(bare)
    }

    /// The news that it began.
    pub(super) fn started_event(&self) -> TaskEvent {
        TaskEvent::Started {
            task_id: self.task_id.clone(),
            tool_use_id: self.tool_use_id.clone(),
            description: self.description.clone(),
            kind: self.kind,
        }
    }

    /// The news that it printed something.
    pub(super) fn output_event(&self, text: &str) -> TaskEvent {
        let (task_id, description) = (self.task_id.clone(), self.description.clone());
        TaskEvent::Output { task_id, description, text: text.to_owned() }
    }

    /// The news that it goes on without the session, as this process.
    pub(super) fn detached_event(&self, process: Option<i32>) -> TaskEvent {
        let process = process.map(|id| format!(" as process {id}")).unwrap_or_default();
        let summary = format!(
            "Background command \"{}\" goes on without the session{process}; its output goes to {}",
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

    /// The news that its time was up.
    pub(super) fn timed_out_event(&self) -> TaskEvent {
        TaskEvent::Ended {
            task_id: self.task_id.clone(),
            tool_use_id: self.tool_use_id.clone(),
            status: TaskStatus::Stopped,
            output_file: self.output_file.clone(),
            summary: format!("\"{}\" was ended, because its time was up", self.description),
            exit_code: None,
            notify: NotifyModel::Now,
        }
    }

    /// The news that it ended.
    pub(super) fn ended_event(&self, status: TaskStatus, exit_code: Option<i32>, told: NotifyModel) -> TaskEvent {
        let exit = exit_code.map(|code| format!(" with exit code {code}")).unwrap_or_default();
        TaskEvent::Ended {
            task_id: self.task_id.clone(),
            tool_use_id: self.tool_use_id.clone(),
            status,
            output_file: self.output_file.clone(),
            summary: format!("Background command \"{}\" {}{exit}", self.description, status.as_str()),
            exit_code,
            notify: told,
        }
    }
}

fn format_ids(ids: &[String]) -> String {
    if ids.is_empty() { "none".into() } else { ids.join(", ") }
}
