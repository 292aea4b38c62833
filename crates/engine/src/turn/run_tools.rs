//! Runs the tool calls of a reply and records each result.

use tokio_util::sync::CancellationToken;
use whimbrel_wire::system::PermissionDenied;

use super::TurnOutcome;
use super::{hooks, invoked_skills};
use crate::agent::Agent;
use crate::permission_checker::{DeniedBy, EndTurn};
use crate::tool_scheduler::{ToolCallResult, ToolScheduler};

/// Runs the remaining calls of a reply; returns the reason if one of them ends the turn.
pub(super) async fn run_tools(
    agent: &mut Agent,
    scheduler: &mut ToolScheduler,
    outcome: &mut TurnOutcome,
    cancel: &CancellationToken,
) -> Option<EndTurn> {
    let mut round = ToolRound::default();
    scheduler.mark_reply_complete();
    while round.end_turn != Some(EndTurn::Denied) {
        let result = tokio::select! {
            biased;
            () = cancel.cancelled() => break,
            result = scheduler.next_result() => result,
        };
        let Some(result) = result else { break };
        record_result(agent, result, outcome, &mut round).await;
        if round.end_turn.is_some() {
            // Running calls finish; no further ones start.
            scheduler.close();
        }
    }
    agent.inject_hook_context(&round.notes);
    invoked_skills::inject_invoked(agent, cancel).await;
    if round.end_turn.is_none() && !cancel.is_cancelled() {
        round.end_turn = hooks::run_post_batch_hooks(agent, scheduler.take_batch(), cancel).await;
    }
    round.end_turn
}

/// Side effects of a round of tool calls: context from hooks, and whether the turn ends.
#[derive(Default)]
pub(super) struct ToolRound {
    pub(super) notes: Vec<String>,
    end_turn: Option<EndTurn>,
}

pub(super) async fn record_result(
    agent: &mut Agent,
    mut result: ToolCallResult,
    outcome: &mut TurnOutcome,
    round: &mut ToolRound,
) {
    outcome.num_turns += 1;
    outcome.hook_deferred_call = result.hook_deferred_call.take().or(outcome.hook_deferred_call.take());
    round.notes.append(&mut result.notes);
    round.end_turn = round.end_turn.or(result.end_turn);
    agent.structured_output.record_result(&result);
    if let Some(denied) = &result.denial {
        agent.denials.record(denied.denial.clone());
        if denied.denied_by != DeniedBy::Host {
            let notice = PermissionDenied {
                tool_name: denied.denial.tool_name.clone(),
                tool_use_id: denied.denial.tool_use_id.clone(),
                agent_id: agent.tool_env.checker.hooks.agent_id().map(Into::into),
                message: denied.message.clone(),
                ..PermissionDenied::default()
            };
            agent.frame_sender.notify(notice).await;
        }
    }
    agent.conversation.push_tool_result(result).await;
}
