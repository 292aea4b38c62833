//! Auto-compaction: compacts when the conversation has reached the threshold or the provider rejects its length.

use tokio_util::sync::CancellationToken;
use whimbrel_models::catalog::Catalog;
use whimbrel_wire::system::CompactTrigger;

use super::summary::{self, CompactionError, SummaryInput};
use crate::agent::{Agent, AgentLimits};

/// Returns whether the conversation can be compacted automatically. Before the first reply there is nothing to
/// summarize: then the prompt itself is too long.
pub fn can_compact(agent: &Agent) -> bool {
    !agent.limits.compaction.auto_disabled
        && agent.compaction_state.should_try()
        && agent.conversation.history.has_reply()
}

/// Compacts if the conversation has reached the threshold. For an unknown window, only the provider's error triggers
/// it.
pub async fn compact_if_needed(agent: &mut Agent, cancel: &CancellationToken) {
    let is_needed = threshold(agent).is_some_and(|threshold| agent.conversation.token_count() >= threshold);
    if is_needed && can_compact(agent) {
        // On failure the request is sent unchanged; the provider reports if it does not fit.
        let _ = Box::pin(compact(agent, SummaryInput::FullHistory, cancel)).await;
    }
}

/// Compacts after the provider rejected the conversation as too long; returns whether it succeeded.
pub async fn compact_after_rejection(agent: &mut Agent, cancel: &CancellationToken) -> bool {
    Box::pin(compact(agent, SummaryInput::Excerpt, cancel)).await
}

async fn compact(agent: &mut Agent, source: SummaryInput, cancel: &CancellationToken) -> bool {
    match summary::summarize(agent, CompactTrigger::Auto, "", source, cancel).await {
        Ok(summary) => {
            agent.compaction_state.record_attempt();
            summary::replace_history(agent, CompactTrigger::Auto, summary).await;
            true
        }
        Err(CompactionError::EmptyConversation | CompactionError::Blocked(_) | CompactionError::Model(_)) => {
            agent.compaction_state.record_attempt();
            false
        }
        Err(CompactionError::Interrupted) => false,
    }
}

/// The threshold of this agent in tokens; `None` if its model's window is unknown.
pub fn threshold(agent: &Agent) -> Option<u64> {
    let window = context_window(agent.models.catalog(), &agent.limits, &agent.model())?;
    Some(threshold_of_model(agent.models.catalog(), &agent.limits, &agent.model(), window))
}

/// The context window of a model in tokens: that of the catalog, or else the one that the environment gives.
pub fn context_window(catalog: &Catalog, limits: &AgentLimits, model: &str) -> Option<u64> {
    catalog.lookup(model).map(|info| info.context_window).or(limits.compaction.window)
}

/// The threshold for a model with this window.
pub fn threshold_of_model(catalog: &Catalog, limits: &AgentLimits, model: &str, window: u64) -> u64 {
    let output = limits.max_output_tokens.unwrap_or_else(|| catalog.max_output_tokens(model));
    limits.compaction.threshold(window, output)
}
