//! EnterWorktree: moves the session into a work tree of its repository.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{Call, DealsWith, Done, Example, Output, Tool, Touches, Trouble};

use crate::on_demand::Offer;
use crate::worktree::Worktrees;

/// The tool.
pub(super) struct EnterWorktree;

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

impl Tool for EnterWorktree {
    type Input = Input;

    const NAME: &'static str = "EnterWorktree";

    const OFFER: Offer = Offer::OnDemand;

    const DEALS_WITH: DealsWith = DealsWith::Session;

    const DESCRIPTION: &'static str = "Makes a git work tree in .claude/worktrees on a branch of its own and moves the session there, so that the first checkout stays as it is. Only when the user asks for a work tree. ExitWorktree leads back.";

    fn touches(_: &Input) -> Touches {
        Touches::Session
    }

    async fn run(&self, input: Input, call: Call) -> Output {
        main_agent_only(&call)?;
        if let Some(tree) = call.workspace.entered() {
            let text =
                format!("The session is in a work tree already: {}. Leave it first.", tree.path.display());
            return Err(Trouble::Refused(text));
        }
        let name = input.name.as_deref().map(str::trim).filter(|name| !name.is_empty());
        let trees = Worktrees::of(&call);
        let tree = match input.path.as_deref().map(str::trim).filter(|path| !path.is_empty()) {
            Some(_) if name.is_some() => {
                return Err(Trouble::Refused(
                    "Give a name for a new work tree or the path of an old one, not both.".into(),
                ));
            }
            Some(path) => trees.find(path).await,
            None => trees.create(name).await,
        };
        let tree = tree.map_err(|fault| Trouble::Failed(format!("No work tree was entered: {fault}.")))?;
        call.workspace.enter(Some(tree.clone()));
        let path = tree.path.display().to_string();
        let branch =
            tree.branch.as_ref().map(|branch| format!(" on the branch {branch}")).unwrap_or_default();
        let message =
            format!("The session now works in {path}{branch}. Relative paths and commands start there.");
        let mut meta = json!({"worktreePath": path, "message": message});
        if let Some(branch) = tree.branch {
            meta["worktreeBranch"] = branch.into();
        }
        Ok(Done::text(message, meta))
    }

    fn examples() -> Vec<Example> {
        vec![
            Example::new("a work tree needs a repository", json!({"name": "try"}))
                .fails(&["not in a git repository"]),
            Example::new("it is made and entered", json!({"name": "try"}))
                .after("Bash", json!({"command": REPOSITORY}))
                .says(&["now works in", ".claude/worktrees/try", "worktree-try"])
                .leaves(&[(".claude/worktrees/try/a.txt", "one\n")]),
            Example::new("a name must be one", json!({"name": "../away"}))
                .fails(&["no name for a work tree"]),
            Example::new("one at a time", json!({}))
                .after("Bash", json!({"command": REPOSITORY}))
                .after("EnterWorktree", json!({}))
                .fails(&["in a work tree already"]),
            Example::new("only those of the repository can be entered", json!({"path": "d"}))
                .files(&[("d/a.txt", "")])
                .after("Bash", json!({"command": REPOSITORY}))
                .fails(&["no work tree of this repository"]),
        ]
    }
}

/// Makes a repository with one commit, for examples.
pub(super) const REPOSITORY: &str = "git init -q -b main . && echo one > a.txt && git add a.txt && git -c user.name=a -c user.email=a@b.c commit -q -m one";

/// The folder of a session is that of all its agents, so only the main one may move it.
pub(super) fn main_agent_only(call: &Call) -> Result<(), Trouble> {
    match call.lookout.agent_id() {
        None => Ok(()),
        Some(_) => Err(Trouble::Refused(
            "Only the main agent can move the session. A subagent gets a work tree of its own with `isolation: worktree`.".into(),
        )),
    }
}
