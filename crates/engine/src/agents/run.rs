//! An agent on its errand, from its place in the queue to its report. It is a task of its own, so that the turn can go on
//! beside it at any time.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use whimbrel_wire::content::Content;
use whimbrel_wire::hook::HookEvent;

use super::registry::FinishedAgent;
use super::spawn_limits::SpawnReservation;
use super::progress::AgentProgress;
use super::build::AgentRole;
use super::restore::RestorableAgent;
use super::report::join_texts;
use super::metadata::AgentMetadata;
use super::{AgentSpawner, Definition, SubagentTask, AgentReport, isolation, mcp_servers, notices};
use crate::agent::Agent;
use crate::clock;
use crate::hooks::HookInputBuilder;
use crate::internal_events::{Notification, InternalEvent};
use crate::skills::agent_skills;
use crate::tasks::{OutputCapture, AgentTask};
use crate::tools::ToolContext;
use crate::turn::{self, TurnOutcome};
use crate::next_step::TurnEnd;
use crate::worktree::Worktree;

/// How long an agent that is told to stop may take to leave its conversation in order.
const STOP_GRACE: Duration = Duration::from_millis(1000);

/// An agent that is about to go.
pub(super) struct AgentRun {
    pub(super) agents: AgentSpawner,
    pub(super) origin: AgentOrigin,
    pub(super) task: SubagentTask,
    pub(super) tool_context: ToolContext,
    pub(super) entry: AgentTask,
    pub(super) reservation: SpawnReservation,
    pub(super) mailbox: mpsc::UnboundedReceiver<String>,
    /// The work tree that was made for it.
    pub(super) worktree: Option<Worktree>,
}

/// Who goes.
pub(super) enum AgentOrigin {
    /// A new agent of this kind.
    New(Box<Definition>),
    /// One that has been there before.
    Continued(Box<FinishedAgent>),
    /// One that was there in an earlier run.
    Restored(Box<RestorableAgent>),
}

/// What is left when an agent has ended.
struct RunResult {
    report: AgentReport,
    finished: Option<FinishedAgent>,
}

impl AgentRun {
    /// Does the errand and tells everybody.
    pub(super) async fn run(self, done: oneshot::Sender<AgentReport>) {
        let Self { agents, origin: who, task: errand, tool_context: mut call, entry, reservation: ticket, mut mailbox, worktree: tree } = self;
        if let Some(tree) = &tree {
            call.workspace = Arc::new(call.workspace.for_worktree(tree.clone()));
        }
        let goes_on = !matches!(who, AgentOrigin::New(_));
        let place = entry.stop.run_until_cancelled(ticket.acquire()).await.flatten();
        let RunResult { mut report, finished: mut rested } = match &place {
            Some(_) => {
                let (agent, definition) = start_agent(&agents, who, &errand, &call, &entry).await;
                run_turns(&agents, agent, definition, &errand, &entry, &mut mailbox).await
            }
            None => RunResult { report: not_started_report(&entry), finished: None },
        };
        let home = &agents.context;
        if let Some(tree) = tree {
            rested.iter_mut().for_each(|rested| rested.worktree = Some(tree.clone()));
            report.kept_worktree = isolation::remove_if_clean(tree, &call).await;
        }
        report.background = entry.freeze_background();
        // What was reported there by one that goes on is not its word any more.
        if report.background || goes_on {
            write_output(&entry, &report.text());
        }
        notices::notify_ended(&home.frame_sender, &call.tasks, &entry.facts, &report).await;
        // Only now: to the host, too, no more than may are ever at work.
        drop(place);
        if let Some(rested) = rested {
            home.registry.store_finished(entry.id(), rested);
        }
        // An agent that stopped it need not be told; what the host stopped is no reason for a turn.
        let post = match report.background && (!report.stopped || entry.was_stopped_by_host()) {
            true => {
                let news = Notification::from_task(notices::render_notification(&entry.facts, &report));
                InternalEvent::Notification(Box::new(Notification { starts_turn: !report.stopped, ..news }))
            }
            false => InternalEvent::RecheckIdle,
        };
        // Nobody may be listening any more.
        let _ = home.event_sender.send(post);
        entry.finish(report.status());
        let _ = done.send(report);
    }
}

/// The agent, told of its errand.
async fn start_agent(
    agents: &AgentSpawner,
    who: AgentOrigin,
    errand: &SubagentTask,
    call: &ToolContext,
    entry: &AgentTask,
) -> (Agent, Definition) {
    match who {
        AgentOrigin::New(definition) => {
            let mut agent = agents.build_subagent(&definition, errand, call, entry, &AgentRole::Subagent, None);
            let notes = run_start_hooks(&agent, &definition, entry).await;
            agents.start_servers(&mut agent, &definition, &entry.stop).await;
            agents.load_skills(&mut agent, &definition).await;
            agents.inject_memory(&mut agent, &definition).await;
            let words = match &errand.skill {
                Some(skill) => {
                    let tools = &agents.position.tool_set;
                    let words = agent_skills::render(&mut agent, skill, tools, &entry.stop).await;
                    // Its errand is the skill for as long as it lives.
                    agent.tool_env.checker.permissions.retain_denials();
                    words
                }
                None => errand.prompt.clone(),
            };
            agent.conversation.push_task(&Content::from(words.as_str())).await;
            let above = &agents.position;
            let about = AgentMetadata::for_task(&entry.facts, errand, above.depth + 1, above.agent_id.as_deref());
            about.write(&agents.context, entry.id(), agent.conversation.transcript_writer());
            if let Some(text) = &definition.reminder {
                agent.conversation.push_hidden(&format!("<system-reminder>\n{text}\n</system-reminder>"));
            }
            turn::inject_hook_context(&mut agent, &notes);
            (agent, *definition)
        }
        AgentOrigin::Continued(rested) => {
            let FinishedAgent { mut agent, definition, position, worktree: tree, .. } = *rested;
            if tree.is_some() {
                agent.tool_env.context.workspace.set_worktree(call.workspace.worktree());
            }
            let around = &mut Arc::make_mut(&mut agent.tool_env).context;
            around.agents = position.map(|position| agents.with_position(position));
            around.cancel = entry.stop.clone();
            agent.progress = AgentProgress::for_task(entry.facts.clone());
            agent.conversation.set_parent_call(&call.id);
            let notes = run_start_hooks(&agent, &definition, entry).await;
            agents.start_servers(&mut agent, &definition, &entry.stop).await;
            agent.conversation.push_task(&Content::from(errand.prompt.as_str())).await;
            turn::inject_hook_context(&mut agent, &notes);
            (agent, definition)
        }
        AgentOrigin::Restored(back) => {
            let RestorableAgent { definition, resumed: past, metadata: about, .. } = *back;
            let agents = agents.at_least_depth(about.spawn_depth);
            let mut agent = agents.build_subagent(&definition, errand, call, entry, &AgentRole::Subagent, Some(past));
            let notes = run_start_hooks(&agent, &definition, entry).await;
            agents.start_servers(&mut agent, &definition, &entry.stop).await;
            let words = match about.restore_denials(&agent.tool_env.checker.permissions) {
                Ok(()) => errand.prompt.clone(),
                Err(why) => format!("You cannot go on, and should say so: {why}"),
            };
            agent.conversation.push_task(&Content::from(words.as_str())).await;
            turn::inject_hook_context(&mut agent, &notes);
            (agent, definition)
        }
    }
}

/// Tells the hooks that an agent begins, for the first time or again, and gives what they want it to know.
pub(super) async fn run_start_hooks(agent: &Agent, definition: &Definition, entry: &AgentTask) -> Vec<String> {
    let told = |scene: &HookInputBuilder| scene.subagent_start(entry.id(), &definition.name);
    let lookout = &agent.tool_env.checker.hooks;
    lookout.dispatch(HookEvent::SubagentStart, told, &entry.stop).await.contexts
}

/// Runs turns until nothing is left to do.
async fn run_turns(
    agents: &AgentSpawner,
    mut agent: Agent,
    definition: Definition,
    errand: &SubagentTask,
    entry: &AgentTask,
    mailbox: &mut mpsc::UnboundedReceiver<String>,
) -> RunResult {
    let began = clock::monotonic();
    let mut said = Vec::new();
    let ending = loop {
        let ending = run_one_turn(&mut agent, entry).await;
        if ending.end != TurnEnd::Done || entry.stop.is_cancelled() {
            break ending;
        }
        match agents.context.registry.take_next_or_close(entry.id(), mailbox) {
            Some(letter) => {
                said.push(ending.text);
                agent.conversation.push_task(&Content::from(letter.as_str())).await;
            }
            None => break ending,
        }
    };
    // Who cannot go on takes no more messages; those that came too late are told of.
    mailbox.close();
    let unread = std::iter::from_fn(|| mailbox.try_recv().ok()).count();
    mcp_servers::stop_servers(&agent, &entry.stop).await;
    let stopped = entry.stop.is_cancelled() && ending.end != TurnEnd::BudgetExceeded;
    if ending.end == TurnEnd::BudgetExceeded {
        agent.tool_env.context.tasks.stop_tasks_of(entry.id());
    }
    let ending = match ending.end {
        TurnEnd::Done => TurnOutcome { text: join_texts(&said, &ending.text), ..ending },
        _ => ending,
    };
    // Who has said nothing since its last message came has said that before.
    let since =
        Some(agent.progress.last_text()).filter(|text| said.last().is_none_or(|before| before != text));
    let report = AgentReport {
        agent_id: entry.id().to_owned(),
        partial_text: join_texts(&said, since.unwrap_or_default()),
        model: agent.model(),
        usage: agent.ledger.own_usage(),
        cost_usd: agent.ledger.own_cost_usd(),
        task_usage: agent.task_usage(),
        duration: clock::monotonic() - began,
        background: false,
        stopped,
        kept_worktree: None,
        unread_messages: unread,
        outcome: ending,
    };
    let position = Arc::make_mut(&mut agent.tool_env).context.agents.take().map(|agents| agents.position);
    let parent = agents.position.agent_id.clone();
    let description = errand.description.clone();
    let rested = FinishedAgent { agent, position, definition, description, parent, worktree: None };
    RunResult { report, finished: Some(rested) }
}

/// One turn; who does not leave in time when told to stop is cut off. Once nothing is left to spend, nobody goes on, also
/// not with something that costs nothing.
pub(super) async fn run_one_turn(agent: &mut Agent, entry: &AgentTask) -> TurnOutcome {
    let ledger = agent.ledger.clone();
    let too_late = async {
        tokio::select! {
            () = entry.stop.cancelled() => {}
            () = ledger.wait_until_exhausted() => entry.stop.cancel(),
        }
        tokio::time::sleep(STOP_GRACE).await;
    };
    let ending = tokio::select! {
        biased;
        ending = turn::run(agent, &entry.stop) => ending,
        () = too_late => TurnOutcome::new(TurnEnd::AbortedStreaming),
    };
    // What a skill has lent counts for its turn, also for one that was cut off.
    agent.tool_env.checker.permissions.clear_turn_rules();
    agent.runtime_settings.clear_overrides();
    match ending.end {
        TurnEnd::AbortedStreaming | TurnEnd::AbortedTools if ledger.is_budget_exhausted() => {
            TurnOutcome { end: TurnEnd::BudgetExceeded, ..ending }
        }
        _ => ending,
    }
}

/// The report of an agent that was stopped while it waited for its place.
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

/// Puts a report where `TaskOutput` and the main agent find it.
pub(super) fn write_output(entry: &AgentTask, text: &str) {
    // What cannot be written is in the news all the same.
    if let Ok(mut capture) = OutputCapture::in_file(entry.facts.output_file.clone()) {
        capture.push(text.as_bytes());
        capture.finish();
    }
}
