//! One call of a tool: what surrounds it, and how it ends.

use std::sync::Arc;

use serde_json::Value;
use tokio_util::sync::CancellationToken;
use whimbrel_models::{ModelError, ModelErrorKind};
use whimbrel_policy::ResolvedFile;
use whimbrel_wire::content::ResultContent;

use crate::task_list::{TaskList, TodoList};
use crate::agents::AgentSpawner;
use crate::small_model::SmallModel;
use crate::hooks::HookDispatcher;
use crate::deferred_tools::DeferredTools;
use crate::permission::{ModeSwitch, SearchFilter};
use crate::session::TranscriptWriter;
#[cfg(test)]
use crate::session::Mirror;
use crate::tasks::{TaskScope, NewTask, TaskRegistry};
use crate::tool_set::AgentToolSet;
use crate::workspace::Workspace;

/// What surrounds one call.
#[derive(Clone)]
pub struct ToolContext {
    /// The id of the call.
    pub id: String,
    /// The file that the call was judged by, if it is about one.
    pub checked_file: Option<ResolvedFile>,
    /// What the model wrote, where the host or a hook has changed the input since.
    pub original_input: Option<Arc<Value>>,
    /// Where the session works.
    pub workspace: Arc<Workspace>,
    /// The background work of the session.
    pub tasks: TaskRegistry,
    /// The tools of the agent; filled in for each call.
    pub tool_set: Arc<AgentToolSet>,
    /// Which of them it has been shown.
    pub deferred_tools: DeferredTools,
    /// What may be read; taken anew for each call.
    pub read_filter: SearchFilter,
    /// The list of tasks of the session or its team.
    pub task_list: TaskList,
    /// What the agent wants to do.
    pub todos: TodoList,
    /// A small model to ask.
    pub small_model: SmallModel,
    /// Starts other agents, and reaches them; none if this one may do neither.
    pub agents: Option<AgentSpawner>,
    /// Turns the mode of the session.
    pub mode: ModeSwitch,
    /// Tells hooks what happens; filled in for each call.
    pub hooks: HookDispatcher,
    /// Where the start of a call with effects is recorded before it is made, and which agent makes it.
    pub transcript: TranscriptWriter,
    /// Fires when the turn is interrupted or the session ends.
    pub cancel: CancellationToken,
}

impl ToolContext {
    /// What background work is told of this call, which starts it.
    pub(crate) fn new_task(&self, description: String) -> NewTask {
        NewTask { tool_use_id: self.id.clone(), owner: self.hooks.agent_id().map(Into::into), description }
    }

    /// The background work that the agent reaches.
    pub(crate) fn task_scope(&self) -> TaskScope<'_> {
        TaskScope::for_agent(self.hooks.agent_id())
    }

    /// The name of the teammate that makes it, if it is one.
    pub(crate) fn teammate_name(&self) -> Option<String> {
        self.agents.as_ref().filter(|agents| agents.is_teammate()).map(|agents| agents.sender_name().to_owned())
    }

    /// The team of the session, if it has one.
    pub(crate) fn team_name(&self) -> Option<String> {
        self.agents.as_ref().and_then(|agents| agents.team().name())
    }

    /// Notes why a question to a model beside the turn failed. What was interrupted when it was recorded interrupts the turn
    /// again.
    pub(crate) fn cancel_if_interrupted(&self, fault: &ModelError) {
        if fault.kind == ModelErrorKind::Interrupted {
            self.cancel.cancel();
        }
    }
}

#[cfg(test)]
impl ToolContext {
    /// A call in a session that has no model, no subagents and all tools.
    pub(crate) fn for_test(workspace: Arc<Workspace>) -> Self {
        Self {
            id: "toolu_1".into(),
            checked_file: None,
            original_input: None,
            mode: ModeSwitch::for_tests(&workspace),
            hooks: HookDispatcher::disabled(&workspace),
            workspace,
            tasks: TaskRegistry::new(tokio::sync::mpsc::unbounded_channel().0),
            tool_set: Arc::new(AgentToolSet::from_tools(super::builtin_tools())),
            deferred_tools: DeferredTools::default(),
            task_list: TaskList::default(),
            todos: TodoList::default(),
            read_filter: SearchFilter::default(),
            small_model: SmallModel::unavailable(),
            agents: None,
            transcript: TranscriptWriter::new("session", None, Mirror::Off),
            cancel: CancellationToken::new(),
        }
    }
}

/// How a call ended.
pub type ToolResult = Result<ToolOutput, ToolError>;

/// A call that did its work.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolOutput {
    /// What the model reads.
    pub content: ResultContent,
    /// What the host gets beside it (`tool_use_result`).
    pub meta: Value,
}

/// A call that did not. The text is for the model: what is wrong and what to do instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolError {
    /// The call makes no sense; nothing was done.
    Rejected(String),
    /// The work was begun and failed.
    Failed(String),
    /// Somebody ended the whole turn from within the call.
    StopTurn(String),
}

impl ToolOutput {
    /// A text for the model and a structure for the host.
    pub fn text(text: impl Into<String>, meta: Value) -> Self {
        Self { content: ResultContent::Text(text.into()), meta }
    }
}

impl ToolError {
    /// The text as the model reads it.
    pub fn render_for_model(&self) -> String {
        match self {
            Self::Rejected(text) => format!("<tool_use_error>{text}</tool_use_error>"),
            Self::Failed(text) | Self::StopTurn(text) => text.clone(),
        }
    }

    /// The bare text.
    pub fn reason(&self) -> &str {
        match self {
            Self::Rejected(text) | Self::Failed(text) | Self::StopTurn(text) => text,
        }
    }
}
