//! Launches subagents, in the foreground or background, and sends messages to them.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;
use whimbrel_models::Effort;
use whimbrel_os::ids;
use whimbrel_session_store::writer::TranscriptWriter;
use whimbrel_tools::api::{ToolContext, ToolError};
use whimbrel_tools::tasks::{TaskFacts, TaskKind};
use whimbrel_wire::permission::PermissionMode;

use super::notices::{self, AgentStart};
use super::registry::{Delivery, FinishedAgent, ReachableAgent};
use super::run::{AgentOrigin, AgentRun};
use super::team::MemberInfo;
use super::{AgentReport, AgentSpawner, Definition, worktree_isolation};
use crate::skills::InvokedSkill;

/// A task for a subagent.
#[derive(Debug, Clone, Default)]
pub struct SubagentTask {
    pub agent_type: String,
    /// Short description for the host.
    pub description: String,
    pub prompt: String,
    /// Overrides the definition's model.
    pub model: Option<String>,
    /// Overrides the definition's effort.
    pub effort: Option<Effort>,
    /// Overrides the definition's limit on model calls.
    pub max_turns: Option<u32>,
    /// Name by which the agent can be messaged.
    pub name: Option<String>,
    /// Whether it runs in the background; none means as its definition says.
    pub background: Option<bool>,
    /// Overrides the definition's isolation.
    pub isolation: Option<String>,
    /// Permission mode, applied where it is narrower than the parent's.
    pub mode: Option<PermissionMode>,
    /// Skill that is the task: its text is rendered for the agent itself.
    pub skill: Option<Arc<InvokedSkill>>,
}

/// Outcome of a launch.
#[derive(Debug)]
pub enum LaunchOutcome {
    /// The agent has finished in the foreground.
    Finished(Box<AgentReport>),
    /// The agent runs in the background.
    Background(LaunchedAgent),
}

/// A background agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchedAgent {
    pub agent_id: String,
    /// File that its report will be written to.
    pub output_file: PathBuf,
}

/// A launched agent with the channels to wait for it.
struct PendingAgent {
    report: oneshot::Receiver<AgentReport>,
    backgrounded: watch::Receiver<bool>,
    stop_guard: StopGuard,
    launched: LaunchedAgent,
}

/// Outcome of restoring an agent of an earlier run.
enum Restored {
    /// It was launched again.
    Started(PendingAgent),
    /// A concurrent call has restored it already; it gets the message after its turn.
    AlreadyRunning(String),
}

/// Stops an agent when the caller that waits for it is dropped.
struct StopGuard(Option<CancellationToken>);

impl StopGuard {
    fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for StopGuard {
    fn drop(&mut self) {
        if let Some(stop) = &self.0 {
            stop.cancel();
        }
    }
}

impl AgentSpawner {
    /// The definition of this name, if it may be started from here.
    pub fn definition(&self, name: &str) -> Result<&Definition, ToolError> {
        let known: Vec<&Definition> = self
            .context
            .spawning
            .definitions
            .iter()
            .filter(|definition| self.position.startable.allows(&definition.name))
            .collect();
        known.iter().find(|definition| definition.name == name).copied().ok_or_else(|| {
            let names: Vec<&str> = known.iter().map(|definition| definition.name.as_str()).collect();
            ToolError::Rejected(format!("Unknown agent type '{name}'. Available: {}.", names.join(", ")))
        })
    }

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

    /// Starts a subagent for a tool call. A foreground agent stops if the call is dropped.
    pub async fn spawn(&self, task: SubagentTask, call: &ToolContext) -> Result<LaunchOutcome, ToolError> {
        let definition = self.definition(&task.agent_type)?.clone();
        let background = task.background.unwrap_or(definition.background);
        let origin = AgentOrigin::New(Box::new(definition));
        let pending = self.launch(ids::new_task_id('a'), origin, task, background, call).await?;
        self.wait_for(pending, call).await
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

    /// Waits for a launched agent. One that moves to the background is awaited from then on.
    async fn wait_for(&self, pending: PendingAgent, call: &ToolContext) -> Result<LaunchOutcome, ToolError> {
        let outcome = pending.wait().await?;
        if let LaunchOutcome::Background(launched) = &outcome {
            self.context.spawning.awaited.add(&launched.agent_id, &call.id, &call.transcript).await;
        }
        Ok(outcome)
    }

    /// Called when the first messages of a turn are in the transcript, and with them the notice about lost agents.
    pub async fn confirm_lost_notice(&self, transcript: &TranscriptWriter) {
        self.context.spawning.awaited.confirm_notice(transcript).await;
    }

    /// Called when the report of a background agent has reached the conversation of the main agent.
    pub async fn mark_reported(&self, agent_id: &str, transcript: &TranscriptWriter) {
        self.context.spawning.awaited.remove(agent_id, transcript).await;
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

    /// Launches an agent. Only subagents of the main agent may run in the background: deeper ones report to their
    /// parent, not to the session.
    async fn launch(
        &self,
        id: String,
        origin: AgentOrigin,
        subagent_task: SubagentTask,
        background: bool,
        call: &ToolContext,
    ) -> Result<PendingAgent, ToolError> {
        let depth = self.position.depth + 1;
        let background = background && depth == 1;
        let reservation = self
            .context
            .spawning
            .limits
            .reserve(depth)
            .map_err(|error| ToolError::Rejected(error.to_string()))?;
        let worktree = worktree_isolation::create_worktree(&origin, &subagent_task, &id, call).await?;
        let output_file =
            self.context.environment.workspace.output_dir().join("tasks").join(format!("{id}.output"));
        let launched = LaunchedAgent { agent_id: id.clone(), output_file: output_file.clone() };
        let facts = TaskFacts {
            task_id: id,
            tool_use_id: call.id.clone(),
            owner: self.position.agent_id.clone(),
            kind: TaskKind::Agent,
            description: subagent_task.description.clone(),
            command: String::new(),
            agent_type: Some(subagent_task.agent_type.clone()),
            name: subagent_task
                .name
                .clone()
                .or_else(|| self.context.spawning.registry.name_of(&launched.agent_id)),
            output_file,
        };
        // Written before the launch, so that a resume after a crash knows the agent.
        call.transcript.record_call_agent(&call.id, &facts.task_id).await;
        let entry = call.tasks.register_agent(facts, background);
        let parent = self.position.agent_id.as_deref();
        let start = AgentStart { depth, parent, background, prompt: &subagent_task.prompt };
        notices::notify_started(&self.context.frame_sender, &call.tasks, &entry.facts, start).await;
        let mailbox = self.context.spawning.registry.register(
            &entry.facts.task_id,
            subagent_task.name.as_deref(),
            parent,
        );
        let stop_guard = StopGuard(Some(entry.stop.clone()));
        let backgrounded = entry.watch_background();
        let (report_sender, report) = oneshot::channel();
        let run = AgentRun {
            agents: self.clone(),
            origin,
            task: subagent_task,
            tool_context: call.clone(),
            entry,
            reservation,
            mailbox,
            worktree,
        };
        if background {
            // Before it runs, so that its end finds the entry.
            self.context.spawning.awaited.add(&launched.agent_id, &call.id, &call.transcript).await;
        }
        tokio::spawn(run.run(report_sender));
        Ok(PendingAgent { report, backgrounded, stop_guard, launched })
    }
}

impl PendingAgent {
    /// Waits for the report, or until the agent moves to the background.
    async fn wait(self) -> Result<LaunchOutcome, ToolError> {
        let Self { report, mut backgrounded, stop_guard, launched } = self;
        let report = tokio::select! {
            biased;
            report = report => report,
            _ = backgrounded.wait_for(|backgrounded| *backgrounded) => {
                stop_guard.disarm();
                return Ok(LaunchOutcome::Background(launched));
            }
        };
        match report {
            // Moved to the background just as it ended: the report arrives as a notification.
            Ok(report) if report.background => Ok(LaunchOutcome::Background(launched)),
            Ok(report) => Ok(LaunchOutcome::Finished(Box::new(report))),
            Err(_) => Err(ToolError::Failed(
                "The agent stopped because of an internal error. Try another approach.".into(),
            )),
        }
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
