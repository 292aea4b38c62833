//! The task of one subagent, from the queue to its report. It runs as a tokio task, so it can move to the background
//! at any time.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use whimbrel_os::clock;
use whimbrel_process::OutputCapture;
use whimbrel_tools::api::{AgentServices, ToolContext};
use whimbrel_tools::hooks::HookInputBuilder;
use whimbrel_tools::internal_events::{InternalEvent, Notification};
use whimbrel_tools::tasks::AgentTask;
use whimbrel_tools::workspace::worktree::Worktree;
use whimbrel_wire::content::Content;
use whimbrel_wire::hook::HookEvent;

use super::build::AgentRole;
use super::metadata::AgentMetadata;
use super::registry::FinishedAgent;
use super::report::join_texts;
use super::restore::RestorableAgent;
use super::spawn_limits::SpawnReservation;
use super::{
    AgentReport, AgentSpawner, ResolvedDefinition, SpawnRequest, mcp_servers, notices, worktree_isolation,
};
use crate::agent::{Agent, AgentProgress};
use crate::next_step::TurnEnd;
use crate::turn::{self, TurnOutcome};
use crate::turn_telemetry::TurnTelemetry;

/// Time for a stopped agent to finish its turn.
const STOP_GRACE: Duration = Duration::from_millis(1000);

/// A subagent that is about to run.
pub(super) struct AgentRun {
    pub(super) agents: AgentSpawner,
    pub(super) origin: AgentOrigin,
    pub(super) request: SpawnRequest,
    pub(super) tool_context: ToolContext,
    pub(super) entry: AgentTask,
    pub(super) reservation: SpawnReservation,
    pub(super) mailbox: mpsc::UnboundedReceiver<String>,
    /// Its isolated worktree.
    pub(super) worktree: Option<Worktree>,
}

/// Origin of a subagent.
pub(super) enum AgentOrigin {
    /// New, with this definition.
    New(Box<ResolvedDefinition>),
    /// Continued: finished earlier in this run.
    Continued(Box<FinishedAgent>),
    /// Restored from an earlier run.
    Restored(Box<RestorableAgent>),
}

/// Result of a run.
struct RunResult {
    report: AgentReport,
    finished: Option<FinishedAgent>,
}

impl AgentRun {
    /// Runs the task and notifies host, model and caller.
    pub(super) async fn run(self, report_sender: oneshot::Sender<AgentReport>) {
        let Self {
            agents,
            origin,
            request,
            tool_context: mut call,
            entry,
            reservation,
            mut mailbox,
            worktree,
        } = self;
        if let Some(worktree) = &worktree {
            call.workspace = Arc::new(call.workspace.for_worktree(worktree.clone()));
        }
        let is_continued = !matches!(origin, AgentOrigin::New(_));
        let permit = entry.stop.run_until_cancelled(reservation.acquire()).await.flatten();
        let RunResult { mut report, mut finished } = match &permit {
            Some(_) => {
                let (agent, definition) = start_agent(&agents, origin, &request, &call, &entry).await;
                run_turns(&agents, agent, definition, &request, &entry, &mut mailbox).await
            }
            None => RunResult { report: not_started_report(&entry), finished: None },
        };
        let context = &agents.context;
        if let Some(worktree) = worktree {
            finished.iter_mut().for_each(|finished| finished.worktree = Some(worktree.clone()));
            report.kept_worktree = worktree_isolation::remove_if_clean(worktree, &call).await;
        }
        report.background = entry.lock_background_state();
        // The output file of a continued agent holds its earlier report and is overwritten.
        if report.background || is_continued {
            write_output(&entry, &report.text());
        }
        notices::notify_ended(&context.frame_sender, &call.tasks, &entry.info, &report).await;
        // Released only now, so that the host never sees more running agents than allowed.
        drop(permit);
        if let Some(finished) = finished {
            context.spawning.registry.store_finished(entry.id(), finished);
        }
        // An agent that stopped it needs no notification; a stop by the host starts no turn.
        let event = match report.background && (!report.stopped || entry.was_stopped_by_host()) {
            true => {
                let notification =
                    Notification::from_task(notices::render_notification(&entry.info, &report));
                InternalEvent::Notification(Box::new(Notification {
                    starts_turn: !report.stopped,
                    reporting_agent: Some(entry.id().to_owned()),
                    ..notification
                }))
            }
            false => {
                // An agent that a call has stopped is no longer awaited; one that ends with the session is lost.
                if report.stopped && !call.tasks.is_closing() {
                    context.spawning.awaited.remove(entry.id(), &call.transcript).await;
                }
                InternalEvent::RecheckIdle
            }
        };
        // The event loop may have ended.
        let _ = context.event_sender.send(event);
        entry.finish(report.status());
        let _ = report_sender.send(report);
    }
}

/// Builds or restores the agent and gives it the task.
async fn start_agent(
    agents: &AgentSpawner,
    origin: AgentOrigin,
    request: &SpawnRequest,
    call: &ToolContext,
    entry: &AgentTask,
) -> (Agent, ResolvedDefinition) {
    match origin {
        AgentOrigin::New(definition) => {
            let mut agent =
                agents.build_subagent(&definition, request, call, entry, &AgentRole::Subagent, None);
            let notes = run_start_hooks(&agent, &definition, entry).await;
            agents.start_servers(&mut agent, &definition, &entry.stop).await;
            agents.load_skills(&mut agent, &definition).await;
            agents.inject_memory(&mut agent, &definition).await;
            let prompt = match &request.skill {
                Some(skill) => {
                    let tools = &agents.position.tool_set;
                    let prompt = turn::invoked_skills::render(&mut agent, skill, tools, &entry.stop).await;
                    // The skill is the task, so its deny rules last for the agent's whole life.
                    agent.tool_env.checker.permissions.retain_denials();
                    prompt
                }
                None => request.prompt.clone(),
            };
            agent.conversation.push_task(&Content::from(prompt.as_str())).await;
            let parent = &agents.position;
            let metadata = AgentMetadata::for_request(
                &entry.info,
                request,
                parent.depth + 1,
                parent.agent_id.as_deref(),
            );
            metadata.write(&agents.context, entry.id(), agent.conversation.transcript_writer());
            if let Some(text) = &definition.reminder {
                agent.conversation.push_hidden(&format!("<system-reminder>\n{text}\n</system-reminder>"));
            }
            agent.inject_hook_context(&notes);
            (agent, *definition)
        }
        AgentOrigin::Continued(finished) => {
            let FinishedAgent { mut agent, definition, position, worktree, .. } = *finished;
            if worktree.is_some() {
                agent.tool_env.context.workspace.set_worktree(call.workspace.worktree());
            }
            let deps = &mut Arc::make_mut(&mut agent.tool_env).context;
            deps.agents =
                position.map(|position| Arc::new(agents.with_position(position)) as Arc<dyn AgentServices>);
            deps.cancel = entry.stop.clone();
            agent.progress = AgentProgress::for_task(entry.info.clone());
            agent.conversation.set_parent_call(&call.id);
            let notes = run_start_hooks(&agent, &definition, entry).await;
            agents.start_servers(&mut agent, &definition, &entry.stop).await;
            agent.conversation.push_task(&Content::from(request.prompt.as_str())).await;
            agent.inject_hook_context(&notes);
            (agent, definition)
        }
        AgentOrigin::Restored(restored) => {
            let RestorableAgent { definition, resumed, metadata, .. } = *restored;
            let agents = agents.at_least_depth(metadata.spawn_depth);
            let mut agent =
                agents.build_subagent(&definition, request, call, entry, &AgentRole::Subagent, Some(resumed));
            let notes = run_start_hooks(&agent, &definition, entry).await;
            agents.start_servers(&mut agent, &definition, &entry.stop).await;
            let prompt = match metadata.restore_denials(&agent.tool_env.checker.permissions) {
                Ok(()) => request.prompt.clone(),
                Err(reason) => format!("You cannot continue. Report this and stop: {reason}"),
            };
            agent.conversation.push_task(&Content::from(prompt.as_str())).await;
            agent.inject_hook_context(&notes);
            (agent, definition)
        }
    }
}

/// Runs the SubagentStart hooks, for new and continued agents; returns their context.
pub(super) async fn run_start_hooks(
    agent: &Agent,
    definition: &ResolvedDefinition,
    entry: &AgentTask,
) -> Vec<String> {
    let build_input = |input: &HookInputBuilder| input.subagent_start(entry.id(), &definition.name);
    let hooks = &agent.tool_env.checker.hooks;
    hooks.dispatch(HookEvent::SubagentStart, build_input, &entry.stop).await.contexts
}

/// Runs turns until no message is left.
async fn run_turns(
    agents: &AgentSpawner,
    mut agent: Agent,
    definition: ResolvedDefinition,
    request: &SpawnRequest,
    entry: &AgentTask,
    mailbox: &mut mpsc::UnboundedReceiver<String>,
) -> RunResult {
    let started_at = clock::monotonic();
    let mut texts = Vec::new();
    let outcome = loop {
        let outcome = run_one_turn(&mut agent, entry).await;
        if outcome.end != TurnEnd::Done || entry.stop.is_cancelled() {
            break outcome;
        }
        match agents.context.spawning.registry.take_next_or_close(entry.id(), mailbox) {
            Some(message) => {
                texts.push(outcome.text);
                agent.conversation.push_task(&Content::from(message.as_str())).await;
            }
            None => break outcome,
        }
    };
    // Later messages are rejected; those in the mailbox are counted as unread.
    mailbox.close();
    let unread = std::iter::from_fn(|| mailbox.try_recv().ok()).count();
    mcp_servers::stop_servers(&agent, &entry.stop).await;
    let stopped = entry.stop.is_cancelled() && outcome.end != TurnEnd::BudgetExceeded;
    if outcome.end == TurnEnd::BudgetExceeded {
        agent.tool_env.context.tasks.stop_tasks_of(entry.id());
    }
    let outcome = match outcome.end {
        TurnEnd::Done => TurnOutcome { text: join_texts(&texts, &outcome.text), ..outcome },
        _ => outcome,
    };
    // Without text since the last message, the last text is already in the report.
    let new_text =
        Some(agent.progress.last_text()).filter(|text| texts.last().is_none_or(|before| before != text));
    let report = AgentReport {
        agent_id: entry.id().to_owned(),
        partial_text: join_texts(&texts, new_text.unwrap_or_default()),
        model: agent.model(),
        usage: agent.ledger.own_usage(),
        cost_usd: agent.ledger.own_cost_usd(),
        task_usage: agent.task_usage(),
        duration: clock::monotonic() - started_at,
        background: false,
        stopped,
        kept_worktree: None,
        unread_messages: unread,
        outcome,
    };
    let context = &mut Arc::make_mut(&mut agent.tool_env).context;
    let position = AgentSpawner::from_context(context).map(|agents| Arc::clone(&agents.position));
    context.agents = None;
    let parent = agents.position.agent_id.clone();
    let description = request.description.clone();
    let finished = FinishedAgent { agent, position, definition, description, parent, worktree: None };
    RunResult { report, finished: Some(finished) }
}

/// Runs one turn; a stopped agent is aborted after `STOP_GRACE`. An exhausted budget stops it too, even while it does
/// something free of charge.
pub(super) async fn run_one_turn(agent: &mut Agent, entry: &AgentTask) -> TurnOutcome {
    let ledger = agent.ledger.clone();
    let stop_deadline = async {
        tokio::select! {
            () = entry.stop.cancelled() => {}
            () = ledger.wait_until_exhausted() => entry.stop.cancel(),
        }
        tokio::time::sleep(STOP_GRACE).await;
    };
    let telemetry = TurnTelemetry::for_subagent(
        agent,
        entry.id(),
        entry.info.agent_type.as_deref().unwrap_or("subagent"),
    );
    let outcome = tokio::select! {
        biased;
        outcome = telemetry.run(turn::run(agent, &entry.stop)) => outcome,
        () = stop_deadline => TurnOutcome::new(TurnEnd::AbortedStreaming),
    };
    telemetry.record_end(agent, &outcome);
    // Overrides by skills last for one turn, even an aborted one.
    agent.tool_env.checker.permissions.clear_turn_rules();
    agent.runtime_settings.clear_overrides();
    match outcome.end {
        TurnEnd::AbortedStreaming | TurnEnd::AbortedTools if ledger.is_budget_exhausted() => {
            TurnOutcome { end: TurnEnd::BudgetExceeded, ..outcome }
        }
        _ => outcome,
    }
}

/// The report of an agent that was stopped while queued.
fn not_started_report(entry: &AgentTask) -> AgentReport {
    AgentReport {
        agent_id: entry.id().to_owned(),
        outcome: TurnOutcome::new(TurnEnd::AbortedStreaming),
        partial_text: String::new(),
        model: String::new(),
        usage: whimbrel_wire::Usage::default(),
        cost_usd: 0.0,
        task_usage: whimbrel_wire::system::TaskUsage::default(),
        duration: Duration::ZERO,
        background: false,
        stopped: true,
        kept_worktree: None,
        unread_messages: 0,
    }
}

/// Writes the report to the output file that `TaskOutput` reads.
pub(super) fn write_output(entry: &AgentTask, text: &str) {
    // On error, the report is still in the notification.
    if let Ok(mut capture) = OutputCapture::in_file(entry.info.output_file.clone()) {
        capture.push(text.as_bytes());
        capture.finish();
    }
}
