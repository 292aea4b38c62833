//! ExitWorktree: moves the session back to its start directory.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::enter_worktree::{INIT_REPOSITORY_COMMAND, require_main_agent};
use super::{Availability, Effects, Example, Tool, ToolContext, ToolError, ToolOutput, ToolResult, lenient};
use crate::deferred_tools::ToolLoading;
use crate::worktree::{Worktree, WorktreeChanges, Worktrees};

pub(super) struct ExitWorktreeTool;

#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct Input {
    action: Action,
    /// Remove it although changes would be lost.
    #[serde(default, deserialize_with = "lenient::flag")]
    discard_changes: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Action {
    Keep,
    Remove,
}

impl Tool for ExitWorktreeTool {
    type Input = Input;

    const NAME: &'static str = "ExitWorktree";

    const LOADING: ToolLoading = ToolLoading::Deferred;

    const AVAILABILITY: Availability = Availability::MainAgent;

    const DESCRIPTION: &'static str =
        "Leaves the work tree that EnterWorktree entered, and keeps or removes it.";

    fn effects(_: &Input) -> Effects {
        Effects::Session
    }

    async fn run(&self, input: Input, call: ToolContext) -> ToolResult {
        require_main_agent(&call)?;
        let Some(tree) = call.workspace.worktree() else {
            return Err(ToolError::Rejected("The session is in no work tree.".into()));
        };
        let lost = match input.action {
            Action::Keep => None,
            Action::Remove => Some(remove_worktree(&call, &tree, input.discard_changes).await?),
        };
        call.workspace.set_worktree(None);
        Ok(exit_result(&call, tree, lost))
    }

    fn examples() -> Vec<Example> {
        let entered = |shows, input| {
            Example::new(shows, input)
                .after_call("Bash", json!({"command": INIT_REPOSITORY_COMMAND}))
                .after_call("EnterWorktree", json!({"name": "try"}))
        };
        vec![
            Example::new("there must be one to leave", json!({"action": "keep"}))
                .expect_error(&["in no work tree"]),
            entered("it can stay", json!({"action": "keep"}))
                .expect_output(&["stays", "try"])
                .expect_files(&[(".claude/worktrees/try/a.txt", "one\n")]),
            entered("it can go", json!({"action": "remove"})).expect_output(&["was removed"]),
            entered("what was changed is not lost by the way", json!({"action": "remove"}))
                .after_call("Bash", json!({"command": "echo two > b.txt"}))
                .expect_error(&["1 file", "discard_changes"])
                .expect_files(&[(".claude/worktrees/try/b.txt", "two\n")]),
            entered("unless that is wanted", json!({"action": "remove", "discard_changes": true}))
                .after_call("Bash", json!({"command": "echo two > b.txt"}))
                .expect_output(&["was removed", "1 file"]),
        ]
    }
}

/// Removes the worktree if nothing would be lost or `discard` is set.
async fn remove_worktree(
    call: &ToolContext,
    tree: &Worktree,
    discard: bool,
) -> Result<WorktreeChanges, ToolError> {
    let failed = |fault| ToolError::Failed(format!("The work tree stays, and the session in it: {fault}."));
    let trees = Worktrees::for_context(call);
    let changes = trees.changes(tree).await.map_err(failed)?;
    if !changes.is_empty() && !discard {
        return Err(ToolError::Rejected(format!(
            "The work tree stays, and the session in it: {} would be lost. Commit them elsewhere, leave with `keep`, or ask the user and set discard_changes.",
            describe_changes(changes)
        )));
    }
    trees.remove(tree).await.map_err(failed)?;
    Ok(changes)
}

fn describe_changes(changes: WorktreeChanges) -> String {
    let count = |number: usize, word: &str| match number {
        0 => None,
        1 => Some(format!("1 {word}")),
        more => Some(format!("{more} {word}s")),
    };
    let parts = [count(changes.files, "file"), count(changes.commits, "commit")];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" and ")
}

fn exit_result(call: &ToolContext, tree: Worktree, lost: Option<WorktreeChanges>) -> ToolOutput {
    let (path, root) = (tree.path.display().to_string(), call.workspace.root().display().to_string());
    let what = match lost {
        None => "stays".to_owned(),
        Some(changes) if changes.is_empty() => "was removed".to_owned(),
        Some(changes) => format!("was removed with {}", describe_changes(changes)),
    };
    let message = format!("The work tree {path} {what}. The session works in {root} again.");
    let mut meta = json!({
        "action": if lost.is_some() { "remove" } else { "keep" },
        "originalCwd": root,
        "worktreePath": path,
        "message": message,
    });
    if let Some(branch) = tree.branch {
        meta["worktreeBranch"] = branch.into();
    }
    if let Some(changes) = lost.filter(|changes| !changes.is_empty()) {
        meta["discardedFiles"] = changes.files.into();
        meta["discardedCommits"] = changes.commits.into();
    }
    ToolOutput::text(message, meta)
}
