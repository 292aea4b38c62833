//! Stop and SubagentStop hooks: they decide whether a turn may end or the model has to continue.

use tokio_util::sync::CancellationToken;
use whimbrel_tools::hooks::{HookInputBuilder, inputs, join_reasons};
use whimbrel_tools::tasks::{TaskSnapshot, TaskState};
use whimbrel_tools::timers::TimerJob;
use whimbrel_wire::hook::{BackgroundTaskSummary, HookEvent, SessionCronSummary};

use super::TurnOutcome;
use crate::agent::Agent;

/// Limit on how often Stop hooks may keep an agent working within one turn.
const MAX_STOP_HOOK_BLOCKS: u32 = 8;

/// Runs the Stop hooks; returns the text that keeps the model working, if they block the end.
pub(super) async fn run_stop_hooks(
    agent: &mut Agent,
    outcome: &TurnOutcome,
    stop_blocks: u32,
    cancel: &CancellationToken,
) -> Option<String> {
    let hooks = &agent.tool_env.checker.hooks;
    let event = if hooks.agent_id().is_some() { HookEvent::SubagentStop } else { HookEvent::Stop };
    if !hooks.has_hooks(event) {
        return None;
    }
    let end = inputs::StopDetails {
        stop_hook_active: stop_blocks > 0,
        last_message: Some(outcome.text.clone()).filter(|text| !text.is_empty()),
        background_tasks: running_tasks(agent),
        session_crons: scheduled_jobs(agent),
    };
    let transcript =
        agent.conversation.transcript_path().map(|path| path.display().to_string()).unwrap_or_default();
    let build_input = |input: &HookInputBuilder| match event {
        HookEvent::SubagentStop => input.subagent_stop(&transcript, end),
        _ => input.stop(end),
    };
    let output = hooks.dispatch(event, build_input, cancel).await;
    if output.stop.is_some() || output.interrupted || stop_blocks >= MAX_STOP_HOOK_BLOCKS {
        return None;
    }
    let reasons = join_reasons(&output.blocked);
    let parts: Vec<String> =
        Some(reasons).filter(|text| !text.is_empty()).into_iter().chain(output.contexts).collect();
    (!parts.is_empty()).then(|| format!("A hook requires you to continue:\n{}", parts.join("\n")))
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
        id: task.info.task_id,
        kind: task.info.kind.as_str().into(),
        status: task.state.as_str().into(),
        description: task.info.description,
        command: Some(task.info.command).filter(|command| !command.is_empty()),
        agent_type: task.info.agent_type,
        ..BackgroundTaskSummary::default()
    }
}
