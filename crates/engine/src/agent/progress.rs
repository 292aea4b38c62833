//! Progress of an agent: tool calls and last text. Subagents report it to the host after each step.

use std::time::Instant;

use whimbrel_os::clock;
use whimbrel_tools::tasks::TaskInfo;
use whimbrel_wire::system::{TaskProgress, TaskUsage};

use super::Agent;

#[derive(Debug, Clone, Default)]
pub struct AgentProgress {
    /// The task and its start time; `None` for the main agent.
    task: Option<(TaskInfo, Instant)>,
    tool_uses: u64,
    last_tool: Option<String>,
    last_text: String,
}

impl AgentProgress {
    pub fn for_task(info: TaskInfo) -> Self {
        Self { task: Some((info, clock::monotonic())), ..Self::default() }
    }

    pub fn record_tool_call(&mut self, tool: &str) {
        self.tool_uses += 1;
        self.last_tool = Some(tool.to_owned());
    }

    /// Records text of a reply; blank text is ignored.
    pub fn record_text(&mut self, text: &str) {
        if !text.trim().is_empty() {
            text.clone_into(&mut self.last_text);
        }
    }

    /// The last text; empty if there is none.
    pub fn last_text(&self) -> &str {
        &self.last_text
    }

    pub fn tool_uses(&self) -> u64 {
        self.tool_uses
    }
}

impl Agent {
    /// Tokens, tool calls and duration of this agent so far.
    pub fn task_usage(&self) -> TaskUsage {
        let started_at = self.progress.task.as_ref().map(|(_, started_at)| *started_at);
        let elapsed = started_at.map_or(0, |started_at| (clock::monotonic() - started_at).as_millis());
        TaskUsage {
            total_tokens: self.ledger.own_usage().total(),
            tool_uses: self.progress.tool_uses,
            duration_ms: u64::try_from(elapsed).unwrap_or(u64::MAX),
        }
    }

    /// Sends a progress notice if this is a subagent.
    pub async fn notify_progress(&self) {
        let Some((info, _)) = &self.progress.task else { return };
        let notice = TaskProgress {
            task_id: info.task_id.clone(),
            tool_use_id: Some(info.tool_use_id.clone()),
            description: info.description.clone(),
            subagent_type: info.agent_type.clone(),
            usage: self.task_usage(),
            last_tool_name: self.progress.last_tool.clone(),
            ..TaskProgress::default()
        };
        self.frame_sender.notify(notice).await;
    }
}
