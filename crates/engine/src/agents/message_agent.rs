//! Messages to subagents: a running agent gets them after its turn, a finished one or one of an earlier run resumes.

use whimbrel_tools::api::{ToolContext, ToolError};

use super::registry::{FinishedAgent, ReachableAgent, SendOutcome};
use super::run::AgentOrigin;
use super::spawn::PendingAgent;
use super::team::MemberStatus;
use super::{AgentSpawner, SpawnOutcome, SpawnRequest, SpawnedAgent};

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
            let task = tasks.iter().find(|task| task.info.task_id == id)?;
            Some((task.info.agent_type.clone().unwrap_or_default(), task.info.description.clone()))
        })
    }

    /// The teammates that can be messaged from here.
    pub fn reachable_teammates(&self) -> Vec<MemberStatus> {
        match self.position.agent_id.is_none() || self.is_teammate() {
            true => self
                .context
                .spawning
                .team
                .members()
                .into_iter()
                .filter(|teammate| teammate.spec.name != self.sender_name())
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
    ) -> Result<SpawnOutcome, ToolError> {
        match self.deliver(to, message) {
            SendOutcome::Queued(agent_id) => Ok(queued_outcome(agent_id, call)),
            SendOutcome::Finished(id, finished) => {
                let pending = self.continue_agent(id, *finished, message, true, call).await?;
                self.wait_for(pending, call).await
            }
            SendOutcome::NotOwner(id) => Err(not_owner_error(&id)),
            SendOutcome::Unknown(_) => match self.restore_agent(to, message, true, call).await? {
                Restored::Started(pending) => self.wait_for(pending, call).await,
                Restored::AlreadyRunning(agent_id) => Ok(queued_outcome(agent_id, call)),
            },
        }
    }

    /// Continues a finished agent with a further task; a running one gets it as a message.
    pub async fn resume(
        &self,
        id: &str,
        request: &SpawnRequest,
        call: &ToolContext,
    ) -> Result<SpawnOutcome, ToolError> {
        let background = request.background.unwrap_or(false);
        match self.deliver(id, &request.prompt) {
            SendOutcome::Queued(agent_id) => Ok(queued_outcome(agent_id, call)),
            SendOutcome::NotOwner(id) => Err(not_owner_error(&id)),
            SendOutcome::Finished(id, finished) => {
                let pending = self.continue_agent(id, *finished, &request.prompt, background, call).await?;
                self.wait_for(pending, call).await
            }
            SendOutcome::Unknown(_) => match self.restore_agent(id, &request.prompt, background, call).await?
            {
                Restored::Started(pending) => self.wait_for(pending, call).await,
                Restored::AlreadyRunning(agent_id) => Ok(queued_outcome(agent_id, call)),
            },
        }
    }

    fn deliver(&self, to: &str, message: &str) -> SendOutcome {
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
        let request = SpawnRequest {
            agent_type: finished.definition.name.clone(),
            description: finished.description.clone(),
            prompt: message.to_owned(),
            ..SpawnRequest::default()
        };
        self.spawn_pending(id, AgentOrigin::Continued(Box::new(finished)), request, background, call).await
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
            SendOutcome::Queued(id) => return Ok(Restored::AlreadyRunning(id)),
            SendOutcome::NotOwner(id) => return Err(not_owner_error(&id)),
            SendOutcome::Finished(id, finished) => {
                return self
                    .continue_agent(id, *finished, message, background, call)
                    .await
                    .map(Restored::Started);
            }
            SendOutcome::Unknown(known) => known,
        };
        let restored = self.load_stored(to).await?.ok_or_else(|| {
            let teammates = self.reachable_teammates().into_iter().map(|teammate| teammate.spec.name);
            unknown_agent_error(to, &teammates.chain(known).collect::<Vec<_>>())
        })?;
        if self.position.agent_id.is_some() && restored.metadata.parent_agent_id != self.position.agent_id {
            return Err(not_owner_error(&restored.id));
        }
        let request = restored.metadata.to_spawn_request(message);
        let id = restored.id.clone();
        self.spawn_pending(id, AgentOrigin::Restored(Box::new(restored)), request, background, call)
            .await
            .map(Restored::Started)
    }
}

/// Outcome for a running agent that has queued the message.
fn queued_outcome(agent_id: String, call: &ToolContext) -> SpawnOutcome {
    let output_file = call.tasks.output_file(&agent_id).unwrap_or_default();
    SpawnOutcome::Background(SpawnedAgent { agent_id, output_file })
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
