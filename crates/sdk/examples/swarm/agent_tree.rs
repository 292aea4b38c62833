//! Status of all agents, derived from frames: task frames report start, progress and end, and `parent_tool_use_id`
//! identifies the agent that made a call.

use serde_json::Value;
use whimbrel::Frame;
use whimbrel::wire::Block;
use whimbrel::wire::system::{SystemEvent, TaskEnd, TaskNotification, TaskProgress, TaskStarted};

/// The leader and its subagents.
#[derive(Default)]
pub(crate) struct AgentTree {
    pub(crate) leader: AgentStatus,
    pub(crate) subagents: Vec<AgentStatus>,
    total_cost_usd: f64,
}

/// Status of one agent.
#[derive(Default)]
pub(crate) struct AgentStatus {
    pub(crate) name: String,
    pub(crate) task_description: String,
    pub(crate) activity: String,
    pub(crate) tokens: u64,
    pub(crate) end: Option<TaskEnd>,
    task_id: String,
    /// The `Agent` call that started it; frames of the agent carry this id.
    tool_use_id: String,
    cost_usd: f64,
}

/// One line of progress: agent and text.
pub(crate) struct ProgressEvent {
    pub(crate) agent: String,
    pub(crate) text: String,
}

impl AgentTree {
    /// Handles a frame; returns an event if it is worth a line.
    pub(crate) fn handle_frame(&mut self, frame: &Frame) -> Option<ProgressEvent> {
        match frame {
            Frame::System(system) => match &system.event {
                SystemEvent::TaskStarted(begun) => Some(self.start_agent(begun)),
                SystemEvent::TaskProgress(progress) => self.update_tokens(progress),
                SystemEvent::TaskNotification(ended) => self.finish_agent(ended),
                _ => None,
            },
            Frame::Assistant(said) => {
                let doing = said.message.content.iter().find_map(describe_block)?;
                self.set_activity(said.parent_tool_use_id.as_deref(), doing)
            }
            Frame::User(user) => {
                self.record_cost(user.tool_use_result.as_ref()?);
                None
            }
            Frame::Result(result) => {
                self.total_cost_usd = result.total_cost_usd;
                self.leader.end = Some(if result.is_error { TaskEnd::Failed } else { TaskEnd::Completed });
                Some(ProgressEvent {
                    agent: "leader".into(),
                    text: format!("is done: {} turns", result.num_turns),
                })
            }
            _ => None,
        }
    }

    /// Returns the cost per agent. The leader's share is the total without that of the subagents.
    pub(crate) fn costs(&self) -> Vec<(&str, f64)> {
        let others = self.subagents.iter().map(|member| (member.name.as_str(), member.cost_usd));
        let spent: f64 = self.subagents.iter().map(|member| member.cost_usd).sum();
        let leader = ("leader", self.total_cost_usd - spent);
        std::iter::once(leader).chain(others).chain([("together", self.total_cost_usd)]).collect()
    }

    fn start_agent(&mut self, begun: &TaskStarted) -> ProgressEvent {
        let member = AgentStatus {
            name: begun.subagent_type.clone().unwrap_or_default(),
            task_description: begun.description.clone(),
            activity: "thinks".into(),
            task_id: begun.task_id.clone(),
            tool_use_id: begun.tool_use_id.clone().unwrap_or_default(),
            ..AgentStatus::default()
        };
        let news = ProgressEvent {
            agent: member.name.clone(),
            text: format!("begins: {}", member.task_description),
        };
        self.subagents.push(member);
        news
    }

    /// Updates the token count; the tree shows it, but it is not worth a line.
    fn update_tokens(&mut self, progress: &TaskProgress) -> Option<ProgressEvent> {
        self.find_agent(|member| member.task_id == progress.task_id)?.tokens = progress.usage.total_tokens;
        None
    }

    fn finish_agent(&mut self, ended: &TaskNotification) -> Option<ProgressEvent> {
        let member = self.find_agent(|member| member.task_id == ended.task_id)?;
        let usage = ended.usage.clone().unwrap_or_default();
        member.tokens = usage.total_tokens;
        member.end = Some(ended.status.clone());
        member.activity = format!("{} calls, {:.1} s", usage.tool_uses, usage.duration_ms as f64 / 1000.0);
        let word = if ended.status == TaskEnd::Completed { "is done" } else { "could not finish" };
        Some(ProgressEvent {
            agent: member.name.clone(),
            text: format!("{word}: {}, {} tokens", member.activity, member.tokens),
        })
    }

    /// Sets the activity of the subagent that this call started; without a call, that of the leader.
    fn set_activity(&mut self, call: Option<&str>, what: String) -> Option<ProgressEvent> {
        let (who, doing) = match call {
            None => ("leader".to_owned(), &mut self.leader.activity),
            Some(call) => {
                let member = self.find_agent(|member| member.tool_use_id == call)?;
                (member.name.clone(), &mut member.activity)
            }
        };
        doing.clone_from(&what);
        Some(ProgressEvent { agent: who, text: what })
    }

    /// Records the cost that the result of an `Agent` call reports.
    fn record_cost(&mut self, result: &Value) {
        let (Some(id), Some(dollars)) = (result["agentId"].as_str(), result["costUsd"].as_f64()) else {
            return;
        };
        if let Some(member) = self.find_agent(|member| member.task_id == id) {
            member.cost_usd = dollars;
        }
    }

    fn find_agent(&mut self, is_it: impl Fn(&AgentStatus) -> bool) -> Option<&mut AgentStatus> {
        self.subagents.iter_mut().find(|member| is_it(member))
    }
}

/// Describes a block. `Agent` calls are left out: the tree shows the subagents.
fn describe_block(block: &Block) -> Option<String> {
    match block {
        Block::Text { text, .. } => Some(text.clone()),
        Block::ToolUse { name, input, .. } if name != "Agent" => {
            let about = ["file_path", "pattern"].iter().find_map(|field| input[*field].as_str());
            let about = about.and_then(|path| path.rsplit('/').next()).unwrap_or_default();
            Some(format!("{name} {about}"))
        }
        _ => None,
    }
}
