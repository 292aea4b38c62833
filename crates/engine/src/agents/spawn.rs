//! Spawns subagents, in the foreground or background, and waits for those in the foreground.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;
use whimbrel_models::Effort;
use whimbrel_os::ids;
use whimbrel_session_store::awaited_agents::AwaitedAgent;
use whimbrel_session_store::transcript_writer::TranscriptWriter;
use whimbrel_tools::api::{ToolContext, ToolError};
use whimbrel_tools::tasks::{TaskInfo, TaskKind};
use whimbrel_tools::telemetry::in_current_span;
use whimbrel_wire::permission::PermissionMode;

use super::awaited_agents::lost_agents_reminder;
use super::notices::{self, SpawnDetails};
use super::run::{AgentOrigin, AgentRun};
use super::spawn_limits::may_run_in_background;
use super::{AgentReport, AgentSpawner, ResolvedDefinition, worktree_isolation};
use crate::skills::InvokedSkill;

/// A request to spawn a subagent.
#[derive(Debug, Clone, Default)]
pub struct SpawnRequest {
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
    /// Whether it runs in the background; `None` means as its definition says.
    pub background: Option<bool>,
    /// Overrides the definition's isolation.
    pub isolation: Option<String>,
    /// Permission mode, applied where it is narrower than the parent's.
    pub mode: Option<PermissionMode>,
    /// Skill that is the task: its text is rendered for the agent itself.
    pub skill: Option<Arc<InvokedSkill>>,
}

/// Outcome of spawning an agent.
#[derive(Debug)]
pub enum SpawnOutcome {
    /// The agent has finished in the foreground.
    Finished(Box<AgentReport>),
    /// The agent runs in the background.
    Background(SpawnedAgent),
}

/// A background agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpawnedAgent {
    pub agent_id: String,
    /// File that its report will be written to.
    pub output_file: PathBuf,
}

/// A spawned agent with the channels to wait for it.
pub(super) struct PendingAgent {
    report: oneshot::Receiver<AgentReport>,
    backgrounded: watch::Receiver<bool>,
    stop_guard: StopGuard,
    spawned: SpawnedAgent,
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
    pub fn definition(&self, name: &str) -> Result<&ResolvedDefinition, ToolError> {
        let known: Vec<&ResolvedDefinition> = self
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

    /// Starts a subagent for a tool call. A foreground agent stops if the call is dropped.
    pub async fn spawn(&self, request: SpawnRequest, call: &ToolContext) -> Result<SpawnOutcome, ToolError> {
        let definition = self.definition(&request.agent_type)?.clone();
        let background = request.background.unwrap_or(definition.background);
        let origin = AgentOrigin::New(Box::new(definition));
        let pending = self.spawn_pending(ids::new_task_id('a'), origin, request, background, call).await?;
        self.wait_for(pending, call).await
    }

    /// Waits for a spawned agent. One that moves to the background is awaited from then on.
    pub(super) async fn wait_for(
        &self,
        pending: PendingAgent,
        call: &ToolContext,
    ) -> Result<SpawnOutcome, ToolError> {
        let outcome = pending.wait().await?;
        if let SpawnOutcome::Background(spawned) = &outcome {
            self.context.spawning.awaited.add(&spawned.agent_id, &call.id, &call.transcript).await;
        }
        Ok(outcome)
    }

    /// Called when the first messages of a turn are in the transcript, and with them the reminder about lost agents.
    pub async fn confirm_lost_reminder(&self, transcript: &TranscriptWriter) {
        self.context.spawning.awaited.confirm_reminder(transcript).await;
    }

    /// The reminder about awaited agents that do not exist in this run; they ended with an earlier one.
    pub fn lost_reminder(&self, awaited: &[AwaitedAgent]) -> Option<String> {
        let known = self.context.environment.tasks.list();
        let is_lost = |agent: &&AwaitedAgent| known.iter().all(|task| task.info.task_id != agent.agent_id);
        let lost: Vec<AwaitedAgent> = awaited.iter().filter(is_lost).cloned().collect();
        let reminder = lost_agents_reminder(&lost)?;
        self.context.spawning.awaited.mark_reminder_pending();
        Some(reminder)
    }

    /// Called when the report of a background agent has reached the conversation of the main agent.
    pub async fn mark_reported(&self, agent_id: &str, transcript: &TranscriptWriter) {
        self.context.spawning.awaited.remove(agent_id, transcript).await;
    }

    /// Spawns an agent, in the background if wanted and allowed at its depth.
    pub(super) async fn spawn_pending(
        &self,
        id: String,
        origin: AgentOrigin,
        request: SpawnRequest,
        background: bool,
        call: &ToolContext,
    ) -> Result<PendingAgent, ToolError> {
        let depth = self.position.depth + 1;
        let is_disabled = self.context.environment.workspace.is_background_disabled();
        let background = background && may_run_in_background(depth) && !is_disabled;
        let reservation = self
            .context
            .spawning
            .limits
            .reserve(depth)
            .map_err(|error| ToolError::Rejected(error.to_string()))?;
        let worktree = worktree_isolation::create_worktree(&origin, &request, &id, call).await?;
        let output_file =
            self.context.environment.workspace.output_dir().join("tasks").join(format!("{id}.output"));
        let spawned = SpawnedAgent { agent_id: id.clone(), output_file: output_file.clone() };
        let info = TaskInfo {
            task_id: id,
            tool_use_id: call.id.clone(),
            owner: self.position.agent_id.clone(),
            kind: TaskKind::Agent,
            description: request.description.clone(),
            command: String::new(),
            agent_type: Some(request.agent_type.clone()),
            name: request.name.clone().or_else(|| self.context.spawning.registry.name_of(&spawned.agent_id)),
            output_file,
        };
        // Written before the agent runs, so that a resume after a crash knows the agent.
        call.transcript.record_call_agent(&call.id, &info.task_id).await;
        let entry = call.tasks.register_agent(info, background);
        let parent = self.position.agent_id.as_deref();
        let details = SpawnDetails { depth, parent, background, prompt: &request.prompt };
        notices::notify_started(&self.context.frame_sender, &call.tasks, &entry.info, details).await;
        let mailbox =
            self.context.spawning.registry.register(&entry.info.task_id, request.name.as_deref(), parent);
        let stop_guard = StopGuard(Some(entry.stop.clone()));
        let backgrounded = entry.watch_background();
        let (report_sender, report) = oneshot::channel();
        let run = AgentRun {
            agents: self.clone(),
            origin,
            request,
            tool_context: call.clone(),
            entry,
            reservation,
            mailbox,
            worktree,
        };
        if background {
            // Before it runs, so that its end finds the entry.
            self.context.spawning.awaited.add(&spawned.agent_id, &call.id, &call.transcript).await;
        }
        tokio::spawn(in_current_span(run.run(report_sender)));
        Ok(PendingAgent { report, backgrounded, stop_guard, spawned })
    }
}

impl PendingAgent {
    /// Waits for the report, or until the agent moves to the background.
    async fn wait(self) -> Result<SpawnOutcome, ToolError> {
        let Self { report, mut backgrounded, stop_guard, spawned } = self;
        let report = tokio::select! {
            biased;
            report = report => report,
            _ = backgrounded.wait_for(|backgrounded| *backgrounded) => {
                stop_guard.disarm();
                return Ok(SpawnOutcome::Background(spawned));
            }
        };
        match report {
            // Moved to the background just as it ended: the report arrives as a notification.
            Ok(report) if report.background => Ok(SpawnOutcome::Background(spawned)),
            Ok(report) => Ok(SpawnOutcome::Finished(Box::new(report))),
            Err(_) => Err(ToolError::Failed(
                "The agent stopped because of an internal error. Try another approach.".into(),
            )),
        }
    }
}
