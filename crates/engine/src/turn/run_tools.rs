//! Runs the tool calls of a reply and records each result.

use tokio_util::sync::CancellationToken;
use whimbrel_wire::system::PermissionDenied;

use super::TurnOutcome;
use super::hooks::{self, inject_hook_context};
use crate::agent::Agent;
use crate::permission_checker::{DeniedBy, EndTurn};
use crate::skills::agent_skills;
use crate::tool_scheduler::{ToolCallResult, ToolScheduler};

/// Runs the remaining calls of a reply; returns the reason if one of them ends the turn.
pub(super) async fn run_tools(
    agent: &mut Agent,
    workshop: &mut ToolScheduler,
    ending: &mut TurnOutcome,
    cancel: &CancellationToken,
) -> Option<EndTurn> {
    let mut settled = ToolRound::default();
    workshop.mark_reply_complete();
    while settled.halt != Some(EndTurn::Denied) {
        let made = tokio::select! {
            biased;
            () = cancel.cancelled() => break,
            made = workshop.next_result() => made,
        };
        let Some(made) = made else { break };
        record_result(agent, made, ending, &mut settled).await;
        if settled.halt.is_some() {
            // Running calls finish; no further ones start.
            workshop.close();
        }
    }
    inject_hook_context(agent, &settled.notes);
    agent_skills::inject_invoked(agent, cancel).await;
    if settled.halt.is_none() && !cancel.is_cancelled() {
        settled.halt = hooks::run_post_batch_hooks(agent, workshop.take_batch(), cancel).await;
    }
    settled.halt
}

/// Side effects of a round of tool calls: context from hooks, and whether the turn ends.
#[derive(Default)]
pub(super) struct ToolRound {
    pub(super) notes: Vec<String>,
    halt: Option<EndTurn>,
}

pub(super) async fn record_result(
    agent: &mut Agent,
    mut made: ToolCallResult,
    ending: &mut TurnOutcome,
    settled: &mut ToolRound,
) {
    ending.num_turns += 1;
    ending.deferred_call = made.deferred_call.take().or(ending.deferred_call.take());
    settled.notes.append(&mut made.notes);
    settled.halt = settled.halt.or(made.halt);
    agent.structured_output.record_result(&made);
    if let Some(refused) = &made.denial {
        agent.denials.record(refused.denial.clone());
        if refused.denied_by != DeniedBy::Host {
            let notice = PermissionDenied {
                tool_name: refused.denial.tool_name.clone(),
                tool_use_id: refused.denial.tool_use_id.clone(),
                agent_id: agent.tool_env.checker.hooks.agent_id().map(Into::into),
                message: refused.message.clone(),
                ..PermissionDenied::default()
            };
            agent.frame_sender.notify(notice).await;
        }
    }
    agent.conversation.push_tool_result(made).await;
}
