//! Hook events of a turn: after tool calls, at its end, after an API error, and for loaded instructions.

use tokio_util::sync::CancellationToken;
use whimbrel_models::ModelError;
use whimbrel_wire::hook::{BackgroundTaskSummary, BatchedCall, HookEvent, SessionCronSummary};

use super::TurnOutcome;
use crate::agent::Agent;
use crate::context::auto_compact;
use crate::hooks::{inputs, join_reasons};
use crate::permission_checker::EndTurn;
use crate::tasks::{TaskSnapshot, TaskState};
use crate::timers::TimerJob;

/// Limit on how often Stop hooks may keep an agent working within one turn.
pub(super) const MAX_STOP_HOOK_BLOCKS: u32 = 8;

/// Adds context from hooks to the conversation. Providers require it after all tool results of a reply.
pub(crate) fn inject_hook_context(agent: &mut Agent, notes: &[String]) {
    for note in notes {
        agent
            .conversation
            .push_hidden(&format!("<system-reminder>\nFrom a hook:\n{note}\n</system-reminder>"));
    }
}

/// Adds the results of asynchronous hooks before the next model call.
pub(super) async fn inject_async_results(agent: &mut Agent) {
    let late = agent.tool_env.checker.hooks.take_async_contexts().await;
    inject_hook_context(agent, &late);
}

/// Compacts the conversation if needed; returns whether a hook has ended the turn meanwhile, at any event.
pub(super) async fn compact_and_check_stopped(agent: &mut Agent, cancel: &CancellationToken) -> bool {
    auto_compact::compact_if_needed(agent, cancel).await;
    agent.tool_env.checker.hooks.is_stopped()
}

/// Runs the `PostToolBatch` hooks after all calls of a reply. They may add context or end the turn.
pub(super) async fn run_post_batch_hooks(
    agent: &mut Agent,
    calls: Vec<BatchedCall>,
    cancel: &CancellationToken,
) -> Option<EndTurn> {
    let lookout = &agent.tool_env.checker.hooks;
    let said = lookout.dispatch(HookEvent::PostToolBatch, |scene| scene.post_tool_batch(calls), cancel).await;
    let stop = said.stop.is_some() || !said.blocked.is_empty();
    let complaints = said.blocked.into_iter().map(|reason| reason.text);
    inject_hook_context(agent, &complaints.chain(said.contexts).collect::<Vec<_>>());
    stop.then_some(EndTurn::Hook)
}

/// Runs the Stop hooks; returns the text that keeps the model working, if they block the end.
pub(super) async fn run_stop_hooks(
    agent: &mut Agent,
    ending: &TurnOutcome,
    earlier: u32,
    cancel: &CancellationToken,
) -> Option<String> {
    let lookout = &agent.tool_env.checker.hooks;
    let event = if lookout.agent_id().is_some() { HookEvent::SubagentStop } else { HookEvent::Stop };
    if !lookout.has_hooks(event) {
        return None;
    }
    let end = inputs::StopDetails {
        stop_hook_active: earlier > 0,
        last_message: Some(ending.text.clone()).filter(|text| !text.is_empty()),
        background_tasks: running_tasks(agent),
        session_crons: scheduled_jobs(agent),
    };
    let transcript =
        agent.conversation.transcript_path().map(|path| path.display().to_string()).unwrap_or_default();
    let told = |scene: &crate::hooks::HookInputBuilder| match event {
        HookEvent::SubagentStop => scene.subagent_stop(&transcript, end),
        _ => scene.stop(end),
    };
    let said = lookout.dispatch(event, told, cancel).await;
    if said.stop.is_some() || said.interrupted || earlier >= MAX_STOP_HOOK_BLOCKS {
        return None;
    }
    let reasons = join_reasons(&said.blocked);
    let parts: Vec<String> =
        Some(reasons).filter(|text| !text.is_empty()).into_iter().chain(said.contexts).collect();
    (!parts.is_empty()).then(|| format!("A hook wants you to go on:\n{}", parts.join("\n")))
}

/// Runs the `InstructionsLoaded` hooks for files loaded since the last call.
pub(super) async fn notify_instructions_loaded(agent: &mut Agent, cancel: &CancellationToken) {
    let lookout = agent.tool_env.checker.hooks.clone();
    for file in agent.take_loaded_instructions().await {
        lookout
            .dispatch(HookEvent::InstructionsLoaded, |scene| scene.build(file.to_hook_input()), cancel)
            .await;
    }
}

/// Runs the `StopFailure` hooks after an API error.
pub(super) async fn run_stop_failure_hooks(agent: &Agent, fault: &ModelError) {
    let told = |scene: &crate::hooks::HookInputBuilder| {
        scene.stop_failure(fault.failure_kind(), Some(fault.message.clone()))
    };
    let lookout = &agent.tool_env.checker.hooks;
    lookout.dispatch(HookEvent::StopFailure, told, &agent.tool_env.context.cancel).await;
}

fn running_tasks(agent: &Agent) -> Vec<BackgroundTaskSummary> {
    let tasks = agent.tool_env.context.tasks.list();
    tasks
        .into_iter()
        .filter(|task| task.background && task.state == TaskState::Running)
        .map(task_summary)
        .collect()
}

fn scheduled_jobs(agent: &Agent) -> Vec<SessionCronSummary> {
    let jobs = agent.tool_env.context.tasks.timers().jobs().into_iter();
    let summary = |job: TimerJob| SessionCronSummary {
        schedule: job.schedule.expression(),
        recurring: job.schedule.is_recurring(),
        id: job.id,
        prompt: job.prompt,
    };
    jobs.map(summary).collect()
}

fn task_summary(task: TaskSnapshot) -> BackgroundTaskSummary {
    BackgroundTaskSummary {
        id: task.facts.task_id,
        kind: task.facts.kind.as_str().into(),
        status: task.state.as_str().into(),
        description: task.facts.description,
        command: Some(task.facts.command).filter(|command| !command.is_empty()),
        agent_type: task.facts.agent_type,
        ..BackgroundTaskSummary::default()
    }
}
