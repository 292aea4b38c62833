//! Subagents: what they were asked, how far they are, and what they said and did.

use tokio::time::Instant;
use whimbrel::wire::content::Block;
use whimbrel::wire::message::{Assistant, User};
use whimbrel::wire::system::{TaskEnd, TaskNotification, TaskProgress, TaskStarted, TaskUpdated};

use super::Conversation;
use super::calls::{CallResult, RunningCall, result_text};
use crate::transcript::{FinishedCall, Item, Transcript};

/// State of a subagent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AgentState {
    Running,
    /// It runs on while the turn goes on or has ended.
    Background,
    Done,
    Failed,
}

/// A subagent.
#[derive(Debug, Clone)]
pub(crate) struct Subagent {
    /// The call that started it.
    pub(crate) call_id: String,
    pub(crate) task_id: Option<String>,
    /// Type of the agent definition.
    pub(crate) definition: String,
    pub(crate) description: String,
    pub(crate) state: AgentState,
    pub(crate) call_count: u64,
    pub(crate) tokens: u64,
    /// What it does now.
    pub(crate) activity: String,
    pub(crate) started: Instant,
    pub(crate) depth: u32,
    pub(crate) transcript: Transcript,
    calls: Vec<RunningCall>,
}

impl Conversation {
    /// Subagents that still run.
    pub(crate) fn running_agents(&self) -> impl Iterator<Item = &Subagent> {
        self.agents.iter().filter(|agent| matches!(agent.state, AgentState::Running | AgentState::Background))
    }

    fn agent_of_call(&mut self, call_id: &str, now: Instant) -> &mut Subagent {
        let index = match self.agents.iter().position(|agent| agent.call_id == call_id) {
            Some(index) => index,
            None => {
                let call = self.calls.iter().find(|call| call.id == call_id);
                let field = |name: &str| {
                    call.map(|call| super::text_field(&call.input, name).to_owned()).unwrap_or_default()
                };
                let definition = field("subagent_type");
                self.agents.push(Subagent {
                    call_id: call_id.to_owned(),
                    task_id: None,
                    definition: if definition.is_empty() { "agent".into() } else { definition },
                    description: field("description"),
                    state: AgentState::Running,
                    call_count: 0,
                    tokens: 0,
                    activity: String::new(),
                    started: now,
                    depth: 0,
                    transcript: Transcript::default(),
                    calls: Vec::new(),
                });
                self.agents.len() - 1
            }
        };
        &mut self.agents[index]
    }

    pub(super) fn handle_agent_reply(&mut self, parent: &str, assistant: &Assistant, now: Instant) {
        let agent = self.agent_of_call(parent, now);
        for block in &assistant.message.content {
            match block {
                Block::Text { text, .. } => agent.transcript.push(Item::Answer(text.clone())),
                Block::Thinking { thinking, .. } if !thinking.is_empty() => {
                    agent.transcript.push(Item::Thinking(thinking.clone()));
                }
                Block::ToolUse { id, name, input } => {
                    agent.call_count += 1;
                    agent.activity.clone_from(name);
                    agent.calls.push(RunningCall {
                        id: id.clone(),
                        name: name.clone(),
                        input: input.clone(),
                        started: now,
                        live: std::collections::VecDeque::new(),
                    });
                }
                _ => {}
            }
        }
    }

    pub(super) fn handle_agent_results(&mut self, parent: &str, user: &User, now: Instant) {
        let agent = self.agent_of_call(parent, now);
        let blocks = user.message.content.clone().into_blocks();
        for block in blocks {
            match block {
                Block::ToolResult { tool_use_id, content, is_error } => {
                    let result = CallResult {
                        text: result_text(content.as_ref()),
                        is_error: is_error == Some(true),
                        structured: user.tool_use_result.clone(),
                    };
                    agent.finish_call(&tool_use_id, result, now);
                }
                Block::Text { text, .. } => {
                    agent.transcript.push(Item::User { text, entry: crate::transcript::PromptEntry::Turn });
                }
                _ => {}
            }
        }
    }

    pub(super) fn handle_task_started(&mut self, started: &TaskStarted, now: Instant) {
        let is_agent = started.task_type.as_deref().is_none_or(|kind| kind.contains("agent"));
        let (Some(call_id), true) = (&started.tool_use_id, is_agent) else { return };
        let agent = self.agent_of_call(call_id, now);
        agent.task_id = Some(started.task_id.clone());
        agent.description.clone_from(&started.description);
        if let Some(definition) = &started.subagent_type {
            agent.definition.clone_from(definition);
        }
        agent.depth = started.spawn_depth.unwrap_or_default();
        if started.is_backgrounded == Some(true) {
            agent.state = AgentState::Background;
        }
    }

    pub(super) fn handle_task_progress(&mut self, progress: &TaskProgress) {
        let Some(agent) = self.agent_of_task(&progress.task_id) else { return };
        agent.call_count = agent.call_count.max(progress.usage.tool_uses);
        agent.tokens = progress.usage.total_tokens;
        if let Some(activity) = progress.summary.as_ref().or(progress.last_tool_name.as_ref()) {
            agent.activity.clone_from(activity);
        }
    }

    /// A subagent may go to the background while it runs.
    pub(super) fn handle_task_update(&mut self, updated: &TaskUpdated) {
        if updated.patch.is_backgrounded == Some(true)
            && let Some(agent) = self.agent_of_task(&updated.task_id)
        {
            agent.state = AgentState::Background;
        }
    }

    /// Ends the subagent of a task, and returns the state that it had.
    pub(super) fn handle_task_end(&mut self, ended: &TaskNotification) -> Option<AgentState> {
        let agent = self.agent_of_task(&ended.task_id)?;
        let state = match ended.status {
            TaskEnd::Completed => AgentState::Done,
            _ => AgentState::Failed,
        };
        let before = std::mem::replace(&mut agent.state, state);
        if let Some(usage) = &ended.usage {
            agent.tokens = usage.total_tokens;
            agent.call_count = usage.tool_uses;
        }
        Some(before)
    }

    fn agent_of_task(&mut self, task_id: &str) -> Option<&mut Subagent> {
        self.agents.iter_mut().find(|agent| agent.task_id.as_deref() == Some(task_id))
    }

    /// Ends the subagent of a call that has its result; one in the background runs on.
    pub(super) fn finish_agent(&mut self, call_id: &str, is_error: bool) {
        if let Some(agent) = self
            .agents
            .iter_mut()
            .find(|agent| agent.call_id == call_id && agent.state == AgentState::Running)
        {
            agent.state = if is_error { AgentState::Failed } else { AgentState::Done };
        }
    }
}

impl Subagent {
    fn finish_call(&mut self, id: &str, result: CallResult, now: Instant) {
        let Some(index) = self.calls.iter().position(|call| call.id == id) else { return };
        let RunningCall { id, name, input, started, .. } = self.calls.remove(index);
        let call = FinishedCall {
            id,
            name,
            input,
            text: result.text,
            is_error: result.is_error,
            structured: result.structured,
            elapsed: now.saturating_duration_since(started),
        };
        self.transcript.push(Item::Call(Box::new(call.limited())));
    }
}
