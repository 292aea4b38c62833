//! `/compact`: replaces the conversation by a summary.

use tokio_util::sync::CancellationToken;
use whimbrel_wire::message::User;
use whimbrel_wire::system::CompactTrigger;

use crate::agent::Agent;
use crate::compaction::summary::{self, CompactionError, SummaryInput};
use crate::next_step::TurnEnd;
use crate::turn::TurnOutcome;
use crate::turn_start::TurnNotices;

pub struct CompactRequest {
    /// What the summary should keep.
    pub instructions: String,
    pub prompt: Box<User>,
}

/// Runs the compaction in place of a turn.
pub(crate) async fn run(
    agent: &mut Agent,
    request: CompactRequest,
    notices: TurnNotices,
    cancel: &CancellationToken,
) -> TurnOutcome {
    if agent.limits.compaction.fully_disabled {
        notices.send(&agent.frame_sender).await;
        let text = "Compaction is disabled by DISABLE_COMPACT.";
        agent.conversation.push_local_command(&request.prompt, text).await;
        agent.conversation.end_turn().await;
        return TurnOutcome { text: text.into(), ..TurnOutcome::new(TurnEnd::Done) };
    }
    agent.fallback_models.begin_turn();
    let (trigger, source) = (CompactTrigger::Manual, SummaryInput::FullHistory);
    let summary = summary::summarize(agent, trigger, &request.instructions, source, cancel).await;
    notices.send(&agent.frame_sender).await;
    let done = TurnOutcome::new(TurnEnd::Done);
    let outcome = match summary {
        Ok(summary) => {
            summary::replace_history(agent, CompactTrigger::Manual, summary).await;
            agent.conversation.push_local_command(&request.prompt, "Compacted.").await;
            done
        }
        Err(CompactionError::EmptyConversation) => {
            let text = "There is nothing to summarize yet.";
            agent.conversation.push_local_command(&request.prompt, text).await;
            TurnOutcome { text: text.into(), ..done }
        }
        Err(CompactionError::Blocked(reason)) => {
            let text = format!("A hook blocked the compaction: {reason}");
            agent.conversation.push_local_command(&request.prompt, &text).await;
            TurnOutcome { text, ..done }
        }
        Err(CompactionError::Interrupted) => {
            agent.conversation.push_local_command(&request.prompt, "Interrupted.").await;
            TurnOutcome::new(TurnEnd::AbortedStreaming)
        }
        Err(CompactionError::Model(cause)) if agent.ledger.is_budget_exhausted() => {
            agent.conversation.push_local_command(&request.prompt, &cause.message).await;
            TurnOutcome::new(TurnEnd::BudgetExceeded)
        }
        Err(CompactionError::Model(cause)) => {
            let text = format!("The conversation could not be summarized: {}", cause.message);
            agent.conversation.push_local_command(&request.prompt, &text).await;
            agent.conversation.push_error(&text, cause.failure_kind(), Some(&cause)).await;
            TurnOutcome { text, error: Some(cause), ..TurnOutcome::new(TurnEnd::ApiError) }
        }
    };
    agent.conversation.end_turn().await;
    outcome
}
