//! Messages to subagents: a running agent gets them after its turn, a finished one or one of an earlier run resumes.

use whimbrel_tools::api::{ToolContext, ToolError};

use super::registry::{Delivery, FinishedAgent, ReachableAgent};
use super::run::AgentOrigin;
use super::spawn::PendingAgent;
use super::team::MemberInfo;
use super::{AgentSpawner, LaunchOutcome, LaunchedAgent, SubagentTask};

/// Outcome of restoring an agent of an earlier run.
enum Restored {
    /// It was spawned again.
    Started(PendingAgent),
    /// A concurrent call has restored it already; it gets the message after its turn.
    AlreadyRunning(String),
}

impl AgentSpawner {
    /// The subagents that can be messaged from here: running and finished ones.
    pub fn reachable_agents(&self) -> Vec<ReachableAgent> {
        if self.is_teammate() {
            return Vec::new();
        }
        let tasks = self.context.environment.tasks.list();
        self.context.spawning.registry.reachable(self.position.agent_id.as_deref(), |id| {
            let task = tasks.iter().find(|task| task.facts.task_id == id)?;
            Some((task.facts.agent_type.clone().unwrap_or_default(), task.facts.description.clone()))
        })
    }

    /// The teammates that can be messaged from here.
    pub fn reachable_teammates(&self) -> Vec<MemberInfo> {
        match self.position.agent_id.is_none() || self.is_teammate() {
            true => self
                .context
                .spawning
                .team
                .members()
                .into_iter()
                .filter(|teammate| teammate.facts.name != self.sender_name())
                .collect(),
            false => Vec::new(),
        }
    }

    /// Sends a message to an agent: a running one gets it after its turn, a finished one continues in the background.
    pub async fn send_message(
        &self,
        to: &str,
        message: &str,
        call: &ToolContext,
    ) -> Result<LaunchOutcome, ToolError> {
        match self.deliver(to, message) {
            Delivery::Queued(agent_id) => Ok(queued_outcome(agent_id, call)),
            Delivery::Finished(id, finished) => {
                let pending = self.continue_agent(id, *finished, message, true, call).await?;
                self.wait_for(pending, call).await
            }
            Delivery::NotOwner(id) => Err(not_owner_error(&id)),
            Delivery::Unknown(_) => match self.restore_agent(to, message, true, call).await? {
                Restored::Started(pending) => self.wait_for(pending, call).await,
                Restored::AlreadyRunning(agent_id) => Ok(queued_outcome(agent_id, call)),
            },
        }
    }

    /// Continues a finished agent with a further task; a running one gets it as a message.
    pub async fn resume(
        &self,
        id: &str,
        task: &SubagentTask,
        call: &ToolContext,
    ) -> Result<LaunchOutcome, ToolError> {
        let background = task.background.unwrap_or(false);
        match self.deliver(id, &task.prompt) {
            Delivery::Queued(agent_id) => Ok(queued_outcome(agent_id, call)),
            Delivery::NotOwner(id) => Err(not_owner_error(&id)),
            Delivery::Finished(id, finished) => {
                let pending = self.continue_agent(id, *finished, &task.prompt, background, call).await?;
                self.wait_for(pending, call).await
            }
            Delivery::Unknown(_) => match self.restore_agent(id, &task.prompt, background, call).await? {
                Restored::Started(pending) => self.wait_for(pending, call).await,
                Restored::AlreadyRunning(agent_id) => Ok(queued_outcome(agent_id, call)),
            },
        }
    }

    fn deliver(&self, to: &str, message: &str) -> Delivery {
        self.context.spawning.registry.deliver(self.position.agent_id.as_deref(), to, message)
    }

    async fn continue_agent(
        &self,
        id: String,
        finished: FinishedAgent,
        message: &str,
        background: bool,
        call: &ToolContext,
    ) -> Result<PendingAgent, ToolError> {
        let task = SubagentTask {
            agent_type: finished.definition.name.clone(),
            description: finished.description.clone(),
            prompt: message.to_owned(),
            ..SubagentTask::default()
        };
        self.launch(id, AgentOrigin::Continued(Box::new(finished)), task, background, call).await
    }

    /// Restores an agent of an earlier run and gives it a message, unless a concurrent call has restored it.
    async fn restore_agent(
        &self,
        to: &str,
        message: &str,
        background: bool,
        call: &ToolContext,
    ) -> Result<Restored, ToolError> {
        let _restore_guard = self.context.spawning.registry.restore_lock.lock().await;
        let known = match self.deliver(to, message) {
            Delivery::Queued(id) => return Ok(Restored::AlreadyRunning(id)),
            Delivery::NotOwner(id) => return Err(not_owner_error(&id)),
            Delivery::Finished(id, finished) => {
                return self
                    .continue_agent(id, *finished, message, background, call)
                    .await
                    .map(Restored::Started);
            }
            Delivery::Unknown(known) => known,
        };
        let restored = self.load_stored(to).await?.ok_or_else(|| {
            let teammates = self.reachable_teammates().into_iter().map(|teammate| teammate.facts.name);
            unknown_agent_error(to, &teammates.chain(known).collect::<Vec<_>>())
        })?;
        if self.position.agent_id.is_some() && restored.metadata.parent_agent_id != self.position.agent_id {
            return Err(not_owner_error(&restored.id));
        }
        let task = restored.metadata.to_task(message);
        let id = restored.id.clone();
        self.launch(id, AgentOrigin::Restored(Box::new(restored)), task, background, call)
            .await
            .map(Restored::Started)
    }
}

/// Outcome for a running agent that has queued the message.
fn queued_outcome(agent_id: String, call: &ToolContext) -> LaunchOutcome {
    let output_file = call.tasks.output_file(&agent_id).unwrap_or_default();
    LaunchOutcome::Background(LaunchedAgent { agent_id, output_file })
}

/// An agent has the permissions of its parent, so no other agent may continue it.
fn not_owner_error(id: &str) -> ToolError {
    ToolError::Rejected(format!(
        "The agent {id} was started by another agent, and only that agent can continue it. Start your own."
    ))
}

fn unknown_agent_error(name: &str, known: &[String]) -> ToolError {
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    ToolError::Rejected(format!("There is no agent {name}. Reachable agents: {known}."))
}
