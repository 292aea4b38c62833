//! The context of a tool call and its result types.

use std::any::Any;
use std::sync::Arc;

use serde_json::Value;
use tokio_util::sync::CancellationToken;
use whimbrel_models::{ModelError, ModelErrorKind};
use whimbrel_policy::CheckedCall;
use whimbrel_session_store::TranscriptWriter;
use whimbrel_wire::content::{Block, ResultContent};
use whimbrel_wire::message::CommandExit;

use super::{AgentToolSet, DeferredTools};
use crate::hooks::HookDispatcher;
use crate::permission::{ModeSwitch, SearchFilter};
use crate::small_model::SmallModel;
use crate::task_list::{TaskList, TodoList};
use crate::tasks::{NewTask, TaskRegistry, TaskScope};
use crate::workspace::Workspace;
use crate::worktrees::Worktrees;

/// What `run` receives besides the input.
#[derive(Clone)]
pub struct ToolContext {
    /// The tool use id.
    pub id: String,
    /// What the permission check decided about. The tool must use the file that it resolved, not resolve again, and run a
    /// command as it was decided.
    pub checked: CheckedCall,
    /// The model's input, set if the host or a hook has changed it.
    pub original_input: Option<Arc<Value>>,
    pub workspace: Arc<Workspace>,
    /// Background tasks of the session.
    pub tasks: TaskRegistry,
    /// The tools of the agent; set for each call.
    pub tool_set: Arc<AgentToolSet>,
    /// Deferred tools and which of them are loaded.
    pub deferred_tools: DeferredTools,
    /// Filters paths that deny rules hide; taken anew for each call.
    pub read_filter: SearchFilter,
    /// The task list of the session or its team.
    pub task_list: TaskList,
    /// The agent's private to-do list.
    pub todos: TodoList,
    pub small_model: SmallModel,
    /// The other agents of the session; `None` if the agent may neither start nor message any.
    pub agents: Option<Arc<dyn AgentServices>>,
    /// Changes the permission mode of the session.
    pub mode: ModeSwitch,
    /// Dispatches hook events; set for each call.
    pub hooks: HookDispatcher,
    /// Records the start of a call with side effects before it is made; knows the calling agent.
    pub transcript: TranscriptWriter,
    /// Fires when the turn is interrupted or the session ends.
    pub cancel: CancellationToken,
}

impl ToolContext {
    /// Describes a background task that this call starts.
    pub fn new_task(&self, description: String) -> NewTask {
        NewTask { tool_use_id: self.id.clone(), owner: self.hooks.agent_id().map(Into::into), description }
    }

    /// The background tasks that the calling agent may access.
    pub fn task_scope(&self) -> TaskScope<'_> {
        TaskScope::for_agent(self.hooks.agent_id())
    }

    /// Name of the calling agent if it is a teammate.
    pub fn teammate_name(&self) -> Option<String> {
        self.agents.as_ref().and_then(|agents| agents.teammate_name())
    }

    /// Name of the session's team.
    pub fn team_name(&self) -> Option<String> {
        self.agents.as_ref().and_then(|agents| agents.team_name())
    }

    /// Git worktrees of the session.
    pub fn worktrees(&self) -> Worktrees {
        let (tasks, hooks) = (self.tasks.clone(), self.hooks.clone());
        Worktrees::new(&self.workspace, tasks, hooks, self.mode.trust(), self.cancel.clone())
    }

    /// Cancels the turn if a side request to a model was interrupted, so that replaying a recorded interrupt has the
    /// same effect.
    pub fn cancel_if_interrupted(&self, error: &ModelError) {
        if error.kind == ModelErrorKind::Interrupted {
            self.cancel.cancel();
        }
    }
}

/// What a tool call can ask about the other agents of its session. The layer that runs agents implements it; its own
/// tools, which start and message agents, downcast to the implementation.
pub trait AgentServices: Any + Send + Sync {
    /// Name of the calling agent if it is a teammate.
    fn teammate_name(&self) -> Option<String>;
    /// Name of the session's team.
    fn team_name(&self) -> Option<String>;
    /// Text that tells the model which agent definitions it can start.
    fn definitions_reminder(&self) -> Option<String>;
}

pub type ToolResult = Result<ToolOutput, ToolError>;

/// Result of a successful call.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolOutput {
    /// What the model reads.
    pub content: ResultContent,
    /// What the host receives as `tool_use_result`.
    pub meta: Value,
}

/// A failed call. The text is for the model: cause and remedy.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolError {
    /// The call was invalid and had no effect.
    Rejected(String),
    /// The call started and failed.
    Failed(String),
    /// The call started and failed, and its output has more than text.
    FailedWithContent { text: String, content: Vec<Block> },
    /// The command of the call ran and failed. `meta` is set if the host receives more than the text.
    CommandFailed { text: String, exit: CommandExit, meta: Option<Box<Value>> },
    /// The call ended the whole turn.
    StopTurn(String),
}

impl ToolOutput {
    /// Text for the model, structured data for the host.
    pub fn text(text: impl Into<String>, meta: Value) -> Self {
        Self { content: ResultContent::Text(text.into()), meta }
    }
}

impl ToolError {
    /// Renders the error as the model reads it.
    pub fn render_for_model(&self) -> String {
        match self {
            Self::Rejected(text) => format!("<tool_use_error>{text}</tool_use_error>"),
            Self::Failed(text)
            | Self::FailedWithContent { text, .. }
            | Self::CommandFailed { text, .. }
            | Self::StopTurn(text) => text.clone(),
        }
    }

    /// The message without markup.
    pub fn reason(&self) -> &str {
        match self {
            Self::Rejected(text)
            | Self::Failed(text)
            | Self::FailedWithContent { text, .. }
            | Self::CommandFailed { text, .. }
            | Self::StopTurn(text) => text,
        }
    }
}
