//! Work that is kept apart: an agent with `isolation: worktree` gets a work tree of its own. It goes when the agent ends,
//! unless there is something in it.

use tokio_util::sync::CancellationToken;

use super::Errand;
use super::run::Who;
use crate::tools::{Call, Trouble};
use crate::worktree::{Removal, Worktree, Worktrees};

/// The only way to work apart.
const WORKTREE: &str = "worktree";

/// The work tree for whoever goes, if it is to work apart. Who had one before gets it again, in the same place. If there
/// can be none the errand is refused: such work must not be done in the person's own tree.
pub(super) async fn tree(
    who: &Who,
    errand: &Errand,
    agent_id: &str,
    call: &Call,
) -> Result<Option<Worktree>, Trouble> {
    let wanted = match who {
        Who::New(kind) => errand.isolation.as_deref().or(kind.isolation.as_deref()),
        Who::Again(rested) => rested.tree.as_ref().map(|_| WORKTREE),
        Who::Back(back) => errand.isolation.as_deref().or(back.definition.isolation.as_deref()),
    };
    match wanted.map(str::trim) {
        None | Some("") => Ok(None),
        Some(WORKTREE) => match Worktrees::of(call).create(Some(&format!("agent-{agent_id}"))).await {
            Ok(tree) => Ok(Some(tree)),
            Err(fault) => Err(Trouble::Failed(format!(
                "The agent was not started: it was to work in a work tree of its own, and {fault}."
            ))),
        },
        Some(other) => Err(Trouble::Refused(format!(
            "There is no isolation {other:?}, only \"{WORKTREE}\". Use that, or leave it out."
        ))),
    }
}

/// The agent has ended: removes its work tree, or gives it back if that would lose something or did not work.
pub(super) async fn leave(tree: Worktree, call: &Call) -> Option<Worktree> {
    // Who was interrupted cleans up all the same.
    let call = Call { cancel: CancellationToken::new(), ..call.clone() };
    match Worktrees::of(&call).remove_if_clean(&tree).await {
        Ok(Removal::Removed) => None,
        Ok(Removal::Kept(_)) | Err(_) => Some(tree),
    }
}
