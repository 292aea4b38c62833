//! EnterWorktree and ExitWorktree: move the session into a worktree of its repository and back.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::api::ToolLoading;
use crate::api::{
    Availability, Effects, Example, Tool, ToolContext, ToolError, ToolOutput, ToolResult, lenient,
};
use crate::workspace::worktree::Worktree;
use crate::worktrees::WorktreeChanges;

pub(super) struct EnterWorktreeTool;

#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct EnterWorktreeInput {
    /// Name of a new worktree.
    #[serde(default)]
    name: Option<String>,
    /// Path of an existing worktree.
    #[serde(default)]
    path: Option<String>,
}

impl Tool for EnterWorktreeTool {
    type Input = EnterWorktreeInput;

    const NAME: &'static str = "EnterWorktree";

    const LOADING: ToolLoading = ToolLoading::Deferred;

    const AVAILABILITY: Availability = Availability::MainAgent;

    const DESCRIPTION: &'static str = "Creates a git worktree in .claude/worktrees on its own branch and moves the \
        session there; the original checkout stays untouched. Use it only if the user asks for a worktree. \
        ExitWorktree returns.";

    fn effects(_: &EnterWorktreeInput) -> Effects {
        Effects::Session
    }

    async fn run(&self, input: EnterWorktreeInput, call: ToolContext) -> ToolResult {
        require_main_agent(&call)?;
        if let Some(tree) = call.workspace.worktree() {
            let text =
                format!("The session is already in the worktree {}. Leave it first.", tree.path.display());
            return Err(ToolError::Rejected(text));
        }
        let name = input.name.as_deref().map(str::trim).filter(|name| !name.is_empty());
        let worktrees = call.worktrees();
        let tree = match input.path.as_deref().map(str::trim).filter(|path| !path.is_empty()) {
            Some(_) if name.is_some() => {
                return Err(ToolError::Rejected(
                    "Set `name` for a new worktree or `path` for an existing one, not both.".into(),
                ));
            }
            Some(path) => worktrees.find(path).await,
            None => worktrees.create(name).await,
        };
        let tree = tree.map_err(|error| ToolError::Failed(format!("No worktree was entered: {error}.")))?;
        call.workspace.set_worktree(Some(tree.clone()));
        let path = tree.path.display().to_string();
        let branch = tree.branch.as_ref().map(|branch| format!(" on branch {branch}")).unwrap_or_default();
        let message =
            format!("The session now works in {path}{branch}. Relative paths and commands start there.");
        let mut meta = json!({"worktreePath": path, "message": message});
        if let Some(branch) = tree.branch {
            meta["worktreeBranch"] = branch.into();
        }
        Ok(ToolOutput::text(message, meta))
    }

    fn examples() -> Vec<Example> {
        vec![
            Example::new("a worktree needs a repository", json!({"name": "try"}))
                .expect_error(&["not in a git repository"]),
            Example::new("a worktree is created and entered", json!({"name": "try"}))
                .after_call("Bash", json!({"command": INIT_REPOSITORY_COMMAND}))
                .expect_output(&["now works in", ".claude/worktrees/try", "worktree-try"])
                .expect_files(&[(".claude/worktrees/try/a.txt", "one\n")]),
            Example::new("invalid names are rejected", json!({"name": "../away"}))
                .expect_error(&["is not a valid worktree name"]),
            Example::new("worktrees do not nest", json!({}))
                .after_call("Bash", json!({"command": INIT_REPOSITORY_COMMAND}))
                .after_call("EnterWorktree", json!({}))
                .expect_error(&["already in the worktree"]),
            Example::new("other directories are rejected", json!({"path": "d"}))
                .with_files(&[("d/a.txt", "")])
                .after_call("Bash", json!({"command": INIT_REPOSITORY_COMMAND}))
                .expect_error(&["not a worktree of this repository"]),
        ]
    }
}

/// Creates a repository with one commit, for examples.
pub(super) const INIT_REPOSITORY_COMMAND: &str = "git init -q -b main . && echo one > a.txt && git add a.txt && git -c \
    user.name=a -c user.email=a@b.c commit -q -m one";

/// The working directory is shared by all agents of a session, so only the main agent may change it.
pub(super) fn require_main_agent(call: &ToolContext) -> Result<(), ToolError> {
    match call.hooks.agent_id() {
        None => Ok(()),
        Some(_) => Err(ToolError::Rejected(
            "Only the main agent can move the session. Start a subagent in its own worktree with `isolation: \
             worktree`.".into(),
        )),
    }
}

pub(super) struct ExitWorktreeTool;

#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct ExitWorktreeInput {
    action: ExitAction,
    /// Remove it even if changes are lost.
    #[serde(default, deserialize_with = "lenient::flag")]
    discard_changes: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum ExitAction {
    Keep,
    Remove,
}

impl Tool for ExitWorktreeTool {
    type Input = ExitWorktreeInput;

    const NAME: &'static str = "ExitWorktree";

    const LOADING: ToolLoading = ToolLoading::Deferred;

    const AVAILABILITY: Availability = Availability::MainAgent;

    const DESCRIPTION: &'static str =
        "Leaves the worktree entered with EnterWorktree and keeps or removes it.";

    fn effects(_: &ExitWorktreeInput) -> Effects {
        Effects::Session
    }

    async fn run(&self, input: ExitWorktreeInput, call: ToolContext) -> ToolResult {
        require_main_agent(&call)?;
        let Some(tree) = call.workspace.worktree() else {
            return Err(ToolError::Rejected("The session is not in a worktree.".into()));
        };
        let discarded = match input.action {
            ExitAction::Keep => None,
            ExitAction::Remove => Some(remove_worktree(&call, &tree, input.discard_changes).await?),
        };
        call.workspace.set_worktree(None);
        Ok(exit_result(&call, tree, discarded))
    }

    fn examples() -> Vec<Example> {
        let entered = |shows, input| {
            Example::new(shows, input)
                .after_call("Bash", json!({"command": INIT_REPOSITORY_COMMAND}))
                .after_call("EnterWorktree", json!({"name": "try"}))
        };
        vec![
            Example::new("there must be a worktree to leave", json!({"action": "keep"}))
                .expect_error(&["not in a worktree"]),
            entered("keeps the worktree", json!({"action": "keep"}))
                .expect_output(&["was kept", "try"])
                .expect_files(&[(".claude/worktrees/try/a.txt", "one\n")]),
            entered("removes the worktree", json!({"action": "remove"})).expect_output(&["was removed"]),
            entered("does not discard changes by default", json!({"action": "remove"}))
                .after_call("Bash", json!({"command": "echo two > b.txt"}))
                .expect_error(&["1 file", "discard_changes"])
                .expect_files(&[(".claude/worktrees/try/b.txt", "two\n")]),
            entered("discards changes on request", json!({"action": "remove", "discard_changes": true}))
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
    let failed = |error| ToolError::Failed(format!("The session stays in the worktree: {error}."));
    let worktrees = call.worktrees();
    let changes = worktrees.changes(tree).await.map_err(failed)?;
    if !changes.is_empty() && !discard {
        return Err(ToolError::Rejected(format!(
            "The session stays in the worktree: removing it would lose {}. Commit elsewhere, use action `keep`, or ask \
             the user and set discard_changes.",
            describe_changes(changes)
        )));
    }
    worktrees.remove(tree).await.map_err(failed)?;
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

fn exit_result(call: &ToolContext, tree: Worktree, discarded: Option<WorktreeChanges>) -> ToolOutput {
    let (path, root) = (tree.path.display().to_string(), call.workspace.root().display().to_string());
    let outcome = match discarded {
        None => "was kept".to_owned(),
        Some(changes) if changes.is_empty() => "was removed".to_owned(),
        Some(changes) => format!("was removed with {}", describe_changes(changes)),
    };
    let message = format!("The worktree {path} {outcome}. The session is back in {root}.");
    let mut meta = json!({
        "action": if discarded.is_some() { "remove" } else { "keep" },
        "originalCwd": root,
        "worktreePath": path,
        "message": message,
    });
    if let Some(branch) = tree.branch {
        meta["worktreeBranch"] = branch.into();
    }
    if let Some(changes) = discarded.filter(|changes| !changes.is_empty()) {
        meta["discardedFiles"] = changes.files.into();
        meta["discardedCommits"] = changes.commits.into();
    }
    ToolOutput::text(message, meta)
}
