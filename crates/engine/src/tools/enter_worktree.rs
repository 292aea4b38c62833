//! EnterWorktree: moves the session into a worktree of its repository.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{Availability, Effects, Example, Tool, ToolContext, ToolError, ToolOutput, ToolResult};

use crate::deferred_tools::ToolLoading;
use crate::worktree::Worktrees;

pub(super) struct EnterWorktreeTool;

#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct Input {
    /// A name for a new one.
    #[serde(default)]
    name: Option<String>,
    /// The path of one that is there already.
    #[serde(default)]
    path: Option<String>,
}

impl Tool for EnterWorktreeTool {
    type Input = Input;

    const NAME: &'static str = "EnterWorktree";

    const LOADING: ToolLoading = ToolLoading::Deferred;

    const AVAILABILITY: Availability = Availability::MainAgent;

    const DESCRIPTION: &'static str = "Makes a git work tree in .claude/worktrees on a branch of its own and moves the session there, so that the first checkout stays as it is. Only when the user asks for a work tree. ExitWorktree leads back.";

    fn effects(_: &Input) -> Effects {
        Effects::Session
    }

    async fn run(&self, input: Input, call: ToolContext) -> ToolResult {
        require_main_agent(&call)?;
        if let Some(tree) = call.workspace.worktree() {
            let text =
                format!("The session is in a work tree already: {}. Leave it first.", tree.path.display());
            return Err(ToolError::Rejected(text));
        }
        let name = input.name.as_deref().map(str::trim).filter(|name| !name.is_empty());
        let trees = Worktrees::for_context(&call);
        let tree = match input.path.as_deref().map(str::trim).filter(|path| !path.is_empty()) {
            Some(_) if name.is_some() => {
                return Err(ToolError::Rejected(
                    "Give a name for a new work tree or the path of an old one, not both.".into(),
                ));
            }
            Some(path) => trees.find(path).await,
            None => trees.create(name).await,
        };
        let tree = tree.map_err(|fault| ToolError::Failed(format!("No work tree was entered: {fault}.")))?;
        call.workspace.set_worktree(Some(tree.clone()));
        let path = tree.path.display().to_string();
        let branch =
            tree.branch.as_ref().map(|branch| format!(" on the branch {branch}")).unwrap_or_default();
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
            Example::new("a work tree needs a repository", json!({"name": "try"}))
                .expect_error(&["not in a git repository"]),
            Example::new("it is made and entered", json!({"name": "try"}))
                .after_call("Bash", json!({"command": INIT_REPOSITORY_COMMAND}))
                .expect_output(&["now works in", ".claude/worktrees/try", "worktree-try"])
                .expect_files(&[(".claude/worktrees/try/a.txt", "one\n")]),
            Example::new("a name must be one", json!({"name": "../away"}))
                .expect_error(&["no name for a work tree"]),
            Example::new("one at a time", json!({}))
                .after_call("Bash", json!({"command": INIT_REPOSITORY_COMMAND}))
                .after_call("EnterWorktree", json!({}))
                .expect_error(&["in a work tree already"]),
            Example::new("only those of the repository can be entered", json!({"path": "d"}))
                .with_files(&[("d/a.txt", "")])
                .after_call("Bash", json!({"command": INIT_REPOSITORY_COMMAND}))
                .expect_error(&["no work tree of this repository"]),
        ]
    }
}

/// Creates a repository with one commit, for examples.
pub(super) const INIT_REPOSITORY_COMMAND: &str = "git init -q -b main . && echo one > a.txt && git add a.txt && git -c user.name=a -c user.email=a@b.c commit -q -m one";

/// The working directory is shared by all agents of a session, so only the main agent may change it.
pub(super) fn require_main_agent(call: &ToolContext) -> Result<(), ToolError> {
    match call.hooks.agent_id() {
        None => Ok(()),
        Some(_) => Err(ToolError::Rejected(
            "Only the main agent can move the session. A subagent gets a work tree of its own with `isolation: worktree`.".into(),
        )),
    }
}
