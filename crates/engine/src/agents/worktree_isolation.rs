//! Isolation: a subagent with `isolation: worktree` works in its own git worktree, which is removed when the agent
//! ends unless it has changes.

use tokio_util::sync::CancellationToken;
use whimbrel_tools::api::{ToolContext, ToolError};
use whimbrel_tools::workspace::worktree::Worktree;
use whimbrel_tools::worktrees::RemovalOutcome;

use super::SpawnRequest;
use super::run::AgentOrigin;

/// The only supported isolation.
const WORKTREE: &str = "worktree";

/// Creates the worktree of an isolated agent; an agent that had one before gets it again at the same path. If none
/// can be created the spawn fails: isolated work must not happen in the user's own checkout.
pub(super) async fn create_worktree(
    origin: &AgentOrigin,
    request: &SpawnRequest,
    agent_id: &str,
    call: &ToolContext,
) -> Result<Option<Worktree>, ToolError> {
    let requested = match origin {
        AgentOrigin::New(definition) => request.isolation.as_deref().or(definition.isolation.as_deref()),
        AgentOrigin::Continued(finished) => finished.worktree.as_ref().map(|_| WORKTREE),
        AgentOrigin::Restored(restored) => {
            request.isolation.as_deref().or(restored.definition.isolation.as_deref())
        }
    };
    match requested.map(str::trim) {
        None | Some("") => Ok(None),
        Some(WORKTREE) => match call.worktrees().create(Some(&format!("agent-{agent_id}"))).await {
            Ok(worktree) => Ok(Some(worktree)),
            Err(error) => Err(ToolError::Failed(format!(
                "The agent was not started, because its worktree could not be created: {error}."
            ))),
        },
        Some(other) => Err(ToolError::Rejected(format!(
            "Unknown isolation {other:?}. Use \"{WORKTREE}\", or leave it out."
        ))),
    }
}

/// Removes the worktree of an agent that has ended; returns it if it has changes or cannot be removed.
pub(super) async fn remove_if_clean(worktree: Worktree, call: &ToolContext) -> Option<Worktree> {
    // Cleanup also runs after an interruption.
    let call = ToolContext { cancel: CancellationToken::new(), ..call.clone() };
    match call.worktrees().remove_if_clean(&worktree).await {
        Ok(RemovalOutcome::Removed) => None,
        Ok(RemovalOutcome::Kept(_)) | Err(_) => Some(worktree),
    }
}
