//! What hooks have to say in a turn: about the calls of a reply, and about its end.

use tokio_util::sync::CancellationToken;
use whimbrel_models::Fault;
use whimbrel_wire::hook::{BackgroundTaskSummary, BatchedCall, HookEvent, SessionCronSummary};

use super::Ending;
use crate::agent::Agent;
use crate::context::room;
use crate::gate::Halt;
use crate::hooks::{events, joined};
use crate::tasks::{TaskInfo, TaskState};
use crate::timers::Job;

/// How often hooks may send an agent back to work within one turn.
pub(super) const MOST_OBJECTIONS: u32 = 8;

/// Tells the model what hooks have added. It comes behind all results of a reply: providers want it so.
pub(crate) fn brief(agent: &mut Agent, notes: &[String]) {
    for note in notes {
        agent.conversation.brief(&format!("<system-reminder>\nFrom a hook:\n{note}\n</system-reminder>"));
    }
}

/// Tells the model what hooks say late, before it is asked.
pub(super) async fn brief_late(agent: &mut Agent) {
    let late = agent.bench.gate.lookout.late().await;
    brief(agent, &late);
}

/// Makes room for a model call where it is scarce, and says whether a hook has ended the turn by now, at whichever event.
pub(super) async fn ended_before_call(agent: &mut Agent, cancel: &CancellationToken) -> bool {
    room::make_if_scarce(agent, cancel).await;
    agent.bench.gate.lookout.is_stopped()
}

/// Tells the hooks that all calls of a reply have been made. They may add to that, or end the turn.
pub(super) async fn after_batch(
    agent: &mut Agent,
    calls: Vec<BatchedCall>,
    cancel: &CancellationToken,
) -> Option<Halt> {
    let lookout = &agent.bench.gate.lookout;
    let said = lookout.raise(HookEvent::PostToolBatch, |scene| scene.post_tool_batch(calls), cancel).await;
    let stop = said.stop.is_some() || !said.blocked.is_empty();
    let complaints = said.blocked.into_iter().map(|reason| reason.text);
    brief(agent, &complaints.chain(said.contexts).collect::<Vec<_>>());
    stop.then_some(Halt::Hook)
}

/// What hooks say against the end of the turn, for the model; none if they agree.
pub(super) async fn objection(
    agent: &mut Agent,
    ending: &Ending,
    earlier: u32,
    cancel: &CancellationToken,
) -> Option<String> {
    let lookout = &agent.bench.gate.lookout;
    let event = if lookout.agent_id().is_some() { HookEvent::SubagentStop } else { HookEvent::Stop };
    if !lookout.listens(event) {
        return None;
    }
    let end = events::Ending {
        stop_hook_active: earlier > 0,
        last_message: Some(ending.text.clone()).filter(|text| !text.is_empty()),
        background: running(agent),
        planned: planned(agent),
    };
    let transcript =
        agent.conversation.transcript().map(|path| path.display().to_string()).unwrap_or_default();
    let told = |scene: &crate::hooks::Scene| match event {
        HookEvent::SubagentStop => scene.subagent_stop(&transcript, end),
        _ => scene.stop(end),
    };
    let said = lookout.raise(event, told, cancel).await;
    if said.stop.is_some() || said.interrupted || earlier >= MOST_OBJECTIONS {
        return None;
    }
    let reasons = joined(&said.blocked);
    let parts: Vec<String> =
        Some(reasons).filter(|text| !text.is_empty()).into_iter().chain(said.contexts).collect();
    (!parts.is_empty()).then(|| format!("A hook wants you to go on:\n{}", parts.join("\n")))
}

/// Tells the hooks which instruction files were read.
pub(super) async fn after_reading(agent: &mut Agent, cancel: &CancellationToken) {
    let lookout = agent.bench.gate.lookout.clone();
    for file in agent.report_memory().await {
        lookout.raise(HookEvent::InstructionsLoaded, |scene| scene.of(file.for_hooks()), cancel).await;
    }
}

/// Tells the hooks that the turn ends by a fault of the API.
pub(super) async fn after_failure(agent: &Agent, fault: &Fault) {
    let told = |scene: &crate::hooks::Scene| scene.stop_failure(fault.failure(), Some(fault.message.clone()));
    let lookout = &agent.bench.gate.lookout;
    lookout.raise(HookEvent::StopFailure, told, &agent.bench.call.cancel).await;
}

fn running(agent: &Agent) -> Vec<BackgroundTaskSummary> {
    let tasks = agent.bench.call.tasks.list();
    tasks
        .into_iter()
        .filter(|task| task.background && task.state == TaskState::Running)
        .map(summary)
        .collect()
}

fn planned(agent: &Agent) -> Vec<SessionCronSummary> {
    let jobs = agent.bench.call.tasks.timers().jobs().into_iter();
    let summary = |job: Job| SessionCronSummary {
        schedule: job.schedule.text(),
        recurring: job.schedule.recurs(),
        id: job.id,
        prompt: job.prompt,
    };
    jobs.map(summary).collect()
}

fn summary(task: TaskInfo) -> BackgroundTaskSummary {
    BackgroundTaskSummary {
        id: task.facts.task_id,
        kind: task.facts.kind.word().into(),
        status: task.state.word().into(),
        description: task.facts.description,
        command: Some(task.facts.command).filter(|command| !command.is_empty()),
        agent_type: task.facts.agent_type,
        ..BackgroundTaskSummary::default()
    }
}
