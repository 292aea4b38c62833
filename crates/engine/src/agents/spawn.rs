//! Sends agents on errands: in the call that waits for them, or beside the turn.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;
use whimbrel_models::Effort;
use whimbrel_wire::permission::PermissionMode;

use super::registry::{Delivery, ReachableAgent, FinishedAgent};
use super::notices::{self, AgentStart};
use super::run::{AgentRun, AgentOrigin};
use super::team::MemberInfo;
use super::{AgentSpawner, Definition, AgentReport, isolation};
use crate::ids;
use crate::skills::agent_skills::InvokedSkill;
use crate::tasks::{TaskFacts, TaskKind};
use crate::tools::{ToolContext, ToolError};

/// What an agent is asked to do.
#[derive(Debug, Clone, Default)]
pub struct SubagentTask {
    /// The kind of agent.
    pub agent_type: String,
    /// The errand in a few words.
    pub description: String,
    /// The errand.
    pub prompt: String,
    /// The model, if not the kind's own.
    pub model: Option<String>,
    /// How hard the model tries, if not as the kind's own.
    pub effort: Option<Effort>,
    /// How many model calls it may take, if not as the kind's own.
    pub max_turns: Option<u32>,
    /// A name by which the agent can be reached.
    pub name: Option<String>,
    /// Whether the turn goes on beside it; none means as its kind says.
    pub background: Option<bool>,
    /// Where it works, if not where its parent does.
    pub isolation: Option<String>,
    /// Its mode, where that is narrower than its parent's.
    pub mode: Option<PermissionMode>,
    /// The skill that the errand is, if it is one: the agent itself reads what it says.
    pub skill: Option<Arc<InvokedSkill>>,
}

/// What came of sending an agent.
#[derive(Debug)]
pub enum LaunchOutcome {
    /// It is back.
    Finished(Box<AgentReport>),
    /// It works beside the turn.
    Background(LaunchedAgent),
}

/// An agent that works beside the turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchedAgent {
    /// The agent.
    pub agent_id: String,
    /// Where its report will be.
    pub output_file: PathBuf,
}

/// An agent that was sent off.
struct PendingAgent {
    report: oneshot::Receiver<AgentReport>,
    backgrounded: watch::Receiver<bool>,
    stop_guard: StopGuard,
    launched: LaunchedAgent,
}

/// How an agent of an earlier run was met.
enum Restored {
    /// It goes on.
    Started(PendingAgent),
    /// Somebody has brought it back already; it takes the message up next.
    AlreadyRunning(String),
}

/// Stops an agent when whoever waits for it no longer does.
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
    /// The kind of this name, if it may be started from here.
    pub fn definition(&self, name: &str) -> Result<&Definition, ToolError> {
        let known: Vec<&Definition> =
            self.context.definitions.iter().filter(|kind| self.position.startable.allows(&kind.name)).collect();
        known.iter().find(|kind| kind.name == name).copied().ok_or_else(|| {
            let names: Vec<&str> = known.iter().map(|kind| kind.name.as_str()).collect();
            ToolError::Rejected(format!("There is no agent type '{name}'. There are: {}.", names.join(", ")))
        })
    }

    /// The agents on errands that can be reached from here: those at work, and those that can go on.
    pub fn reachable_agents(&self) -> Vec<ReachableAgent> {
        if self.is_teammate() {
            return Vec::new();
        }
        let tasks = self.context.tasks.list();
        self.context.registry.reachable(self.position.agent_id.as_deref(), |id| {
            let task = tasks.iter().find(|task| task.facts.task_id == id)?;
            Some((task.facts.agent_type.clone().unwrap_or_default(), task.facts.description.clone()))
        })
    }

    /// The teammates that can be written to from here.
    pub fn reachable_teammates(&self) -> Vec<MemberInfo> {
        match self.position.agent_id.is_none() || self.is_teammate() {
            true => {
                self.context.team.members().into_iter().filter(|mate| mate.facts.name != self.sender_name()).collect()
            }
            false => Vec::new(),
        }
    }

    /// Sends an agent on an errand that a call gives. If nobody waits for the answer any more, the agent stops, unless the
    /// turn was to go on beside it.
    pub async fn spawn(&self, errand: SubagentTask, call: &ToolContext) -> Result<LaunchOutcome, ToolError> {
        let definition = self.definition(&errand.agent_type)?.clone();
        let background = errand.background.unwrap_or(definition.background);
        let who = AgentOrigin::New(Box::new(definition));
        self.launch(ids::new_task_id('a'), who, errand, background, call).await?.wait().await
    }

    /// Sends a message to an agent: one at work takes it up next, one that has ended goes on with it beside the turn.
    pub async fn send_message(&self, to: &str, message: &str, call: &ToolContext) -> Result<LaunchOutcome, ToolError> {
        match self.deliver(to, message) {
            Delivery::Queued(agent_id) => Ok(queued_outcome(agent_id, call)),
            Delivery::Finished(id, rested) => self.continue_agent(id, *rested, message, true, call).await?.wait().await,
            Delivery::NotOwner(id) => Err(not_owner_error(&id)),
            Delivery::Unknown(_) => match self.restore_agent(to, message, true, call).await? {
                Restored::Started(underway) => underway.wait().await,
                Restored::AlreadyRunning(agent_id) => Ok(queued_outcome(agent_id, call)),
            },
        }
    }

    /// Lets an agent that has ended go on with a further errand; one at work takes it up next.
    pub async fn resume(&self, id: &str, errand: &SubagentTask, call: &ToolContext) -> Result<LaunchOutcome, ToolError> {
        let background = errand.background.unwrap_or(false);
        match self.deliver(id, &errand.prompt) {
            Delivery::Queued(agent_id) => Ok(queued_outcome(agent_id, call)),
            Delivery::NotOwner(id) => Err(not_owner_error(&id)),
            Delivery::Finished(id, rested) => {
                self.continue_agent(id, *rested, &errand.prompt, background, call).await?.wait().await
            }
            Delivery::Unknown(_) => match self.restore_agent(id, &errand.prompt, background, call).await? {
                Restored::Started(underway) => underway.wait().await,
                Restored::AlreadyRunning(agent_id) => Ok(queued_outcome(agent_id, call)),
            },
        }
    }

    fn deliver(&self, to: &str, message: &str) -> Delivery {
        self.context.registry.deliver(self.position.agent_id.as_deref(), to, message)
    }

    async fn continue_agent(
        &self,
        id: String,
        rested: FinishedAgent,
        message: &str,
        background: bool,
        call: &ToolContext,
    ) -> Result<PendingAgent, ToolError> {
        let errand = SubagentTask {
            agent_type: rested.definition.name.clone(),
            description: rested.description.clone(),
            prompt: message.to_owned(),
            ..SubagentTask::default()
        };
        self.launch(id, AgentOrigin::Continued(Box::new(rested)), errand, background, call).await
    }

    /// Lets an agent of an earlier run go on with a message, unless somebody else has brought it back meanwhile.
    async fn restore_agent(
        &self,
        to: &str,
        message: &str,
        background: bool,
        call: &ToolContext,
    ) -> Result<Restored, ToolError> {
        let _one_at_a_time = self.context.registry.restore_lock.lock().await;
        let known = match self.deliver(to, message) {
            Delivery::Queued(id) => return Ok(Restored::AlreadyRunning(id)),
            Delivery::NotOwner(id) => return Err(not_owner_error(&id)),
            Delivery::Finished(id, rested) => {
                return self.continue_agent(id, *rested, message, background, call).await.map(Restored::Started);
            }
            Delivery::Unknown(known) => known,
        };
        let back = self.load_stored(to).await?.ok_or_else(|| {
            let mates = self.reachable_teammates().into_iter().map(|mate| mate.facts.name);
            unknown_agent_error(to, &mates.chain(known).collect::<Vec<_>>())
        })?;
        if self.position.agent_id.is_some() && back.metadata.parent_agent_id != self.position.agent_id {
            return Err(not_owner_error(&back.id));
        }
        let errand = back.metadata.to_task(message);
        let id = back.id.clone();
        self.launch(id, AgentOrigin::Restored(Box::new(back)), errand, background, call).await.map(Restored::Started)
    }

    /// Sends somebody off. What an agent itself starts is always waited for: its report is the agent's business, not the
    /// session's.
    async fn launch(
        &self,
        id: String,
        who: AgentOrigin,
        errand: SubagentTask,
        background: bool,
        call: &ToolContext,
    ) -> Result<PendingAgent, ToolError> {
        let depth = self.position.depth + 1;
        let background = background && depth == 1;
        let ticket = self.context.spawn_limits.reserve(depth).map_err(|none| ToolError::Rejected(none.to_string()))?;
        let tree = isolation::create_worktree(&who, &errand, &id, call).await?;
        let output_file = self.context.workspace.output_dir().join("tasks").join(format!("{id}.output"));
        let launched = LaunchedAgent { agent_id: id.clone(), output_file: output_file.clone() };
        let facts = TaskFacts {
            task_id: id,
            tool_use_id: call.id.clone(),
            owner: self.position.agent_id.clone(),
            kind: TaskKind::Agent,
            description: errand.description.clone(),
            command: String::new(),
            agent_type: Some(errand.agent_type.clone()),
            name: errand.name.clone().or_else(|| self.context.registry.name_of(&launched.agent_id)),
            output_file,
        };
        // Whoever goes on after a crash has to know who was sent.
        call.transcript.record_call_agent(&call.id, &facts.task_id).await;
        let entry = call.tasks.register_agent(facts, background);
        let parent = self.position.agent_id.as_deref();
        let standing = AgentStart { depth, parent, background, prompt: &errand.prompt };
        notices::notify_started(&self.context.frame_sender, &call.tasks, &entry.facts, standing).await;
        let mailbox = self.context.registry.register(&entry.facts.task_id, errand.name.as_deref(), parent);
        let leash = StopGuard(Some(entry.stop.clone()));
        let beside = entry.watch_background();
        let (done, report) = oneshot::channel();
        let run = AgentRun { agents: self.clone(), origin: who, task: errand, tool_context: call.clone(), entry, reservation: ticket, mailbox, worktree: tree };
        tokio::spawn(run.run(done));
        Ok(PendingAgent { report, backgrounded: beside, stop_guard: leash, launched })
    }
}

impl PendingAgent {
    /// Waits for the report, unless the turn goes on beside the agent.
    async fn wait(self) -> Result<LaunchOutcome, ToolError> {
        let Self { report, backgrounded: mut beside, stop_guard: leash, launched } = self;
        let report = tokio::select! {
            biased;
            report = report => report,
            _ = beside.wait_for(|beside| *beside) => {
                leash.disarm();
                return Ok(LaunchOutcome::Background(launched));
            }
        };
        match report {
            // The turn was to go on beside it just when it ended: the report comes as news.
            Ok(report) if report.background => Ok(LaunchOutcome::Background(launched)),
            Ok(report) => Ok(LaunchOutcome::Finished(Box::new(report))),
            Err(_) => Err(ToolError::Failed("The agent broke down. Try another way.".into())),
        }
    }
}

/// An agent at work takes a message up next.
fn queued_outcome(agent_id: String, call: &ToolContext) -> LaunchOutcome {
    let output_file = call.tasks.output_file(&agent_id).unwrap_or_default();
    LaunchOutcome::Background(LaunchedAgent { agent_id, output_file })
}

/// An agent has the rights of whoever sent it, so nobody else sends it on.
fn not_owner_error(id: &str) -> ToolError {
    ToolError::Rejected(format!(
        "The agent {id} was sent by somebody else, and only they can go on with it. Start one of your own."
    ))
}

fn unknown_agent_error(name: &str, known: &[String]) -> ToolError {
    let known = if known.is_empty() { "nobody".to_owned() } else { known.join(", ") };
    ToolError::Rejected(format!("No agent {name} can be reached. There is: {known}."))
}
