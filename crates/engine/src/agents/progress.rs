//! How far an agent is: what it has called and said so far. A subagent tells the host of it after each step.

use std::time::Instant;

use whimbrel_wire::system::{TaskProgress, TaskUsage};

use crate::agent::Agent;
use crate::clock;
use crate::tasks::TaskFacts;

/// How far an agent is.
#[derive(Debug, Clone, Default)]
pub struct AgentProgress {
    /// What the host knows it by; the main agent has no such name.
    task: Option<(TaskFacts, Instant)>,
    tool_uses: u64,
    last_tool: Option<String>,
    last_text: String,
}

impl AgentProgress {
    /// Nothing so far, of an agent that the host knows as this task.
    pub fn for_task(facts: TaskFacts) -> Self {
        Self { task: Some((facts, clock::monotonic())), ..Self::default() }
    }

    /// It called a tool.
    pub fn record_tool_call(&mut self, tool: &str) {
        self.tool_uses += 1;
        self.last_tool = Some(tool.to_owned());
    }

    /// It said something.
    pub fn record_text(&mut self, text: &str) {
        if !text.trim().is_empty() {
            text.clone_into(&mut self.last_text);
        }
    }

    /// What it said last; empty if nothing.
    pub fn last_text(&self) -> &str {
        &self.last_text
    }

    /// How many tools it called.
    pub fn tool_uses(&self) -> u64 {
        self.tool_uses
    }
}

impl Agent {
    /// What it has spent, as tasks are counted.
    pub fn task_usage(&self) -> TaskUsage {
        let began = self.progress.task.as_ref().map(|(_, began)| *began);
        let took = began.map_or(0, |began| (clock::monotonic() - began).as_millis());
        TaskUsage {
            total_tokens: self.ledger.own_usage().total(),
            tool_uses: self.progress.tool_uses,
            duration_ms: u64::try_from(took).unwrap_or(u64::MAX),
        }
    }

    /// Tells the host how far it is, if it is a subagent.
    pub async fn notify_progress(&self) {
        let Some((facts, _)) = &self.progress.task else { return };
        let notice = TaskProgress {
            task_id: facts.task_id.clone(),
            tool_use_id: Some(facts.tool_use_id.clone()),
            description: facts.description.clone(),
            subagent_type: facts.agent_type.clone(),
            usage: self.task_usage(),
            last_tool_name: self.progress.last_tool.clone(),
            ..TaskProgress::default()
        };
        self.frame_sender.notify(notice).await;
    }
}
