//! Work that is kept apart: an agent with `isolation: worktree` gets a work tree of its own. It goes when the agent ends,
//! unless there is something in it.

use tokio_util::sync::CancellationToken;

use super::SubagentTask;
use super::run::AgentOrigin;
use crate::tools::{ToolContext, ToolError};
use crate::worktree::{RemovalOutcome, Worktree, Worktrees};

/// The only way to work apart.
const WORKTREE: &str = "worktree";

/// The work tree for whoever goes, if it is to work apart. Who had one before gets it again, in the same place. If there
/// can be none the errand is refused: such work must not be done in the person's own tree.
pub(super) async fn create_worktree(
    who: &AgentOrigin,
    errand: &SubagentTask,
    agent_id: &str,
    call: &ToolContext,
) -> Result<Option<Worktree>, ToolError> {
    let wanted = match who {
        AgentOrigin::New(kind) => errand.isolation.as_deref().or(kind.isolation.as_deref()),
        AgentOrigin::Continued(rested) => rested.worktree.as_ref().map(|_| WORKTREE),
        AgentOrigin::Restored(back) => errand.isolation.as_deref().or(back.definition.isolation.as_deref()),
    };
    match wanted.map(str::trim) {
        None | Some("") => Ok(None),
        Some(WORKTREE) => match Worktrees::for_context(call).create(Some(&format!("agent-{agent_id}"))).await {
            Ok(tree) => Ok(Some(tree)),
            Err(fault) => Err(ToolError::Failed(format!(
                "The agent was not started: it was to work in a work tree of its own, and {fault}."
            ))),
        },
        Some(other) => Err(ToolError::Rejected(format!(
            "There is no isolation {other:?}, only \"{WORKTREE}\". Use that, or leave it out."
        ))),
    }
}

/// The agent has ended: removes its work tree, or gives it back if that would lose something or did not work.
pub(super) async fn remove_if_clean(tree: Worktree, call: &ToolContext) -> Option<Worktree> {
    // Who was interrupted cleans up all the same.
    let call = ToolContext { cancel: CancellationToken::new(), ..call.clone() };
    match Worktrees::for_context(&call).remove_if_clean(&tree).await {
        Ok(RemovalOutcome::Removed) => None,
        Ok(RemovalOutcome::Kept(_)) | Err(_) => Some(tree),
    }
}
