//! ExitWorktree: moves the session back to where it was started.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::enter_worktree::{REPOSITORY, main_agent_only};
use super::{Call, DealsWith, Done, Example, Output, Tool, Touches, Trouble, lenient};
use crate::on_demand::Offer;
use crate::worktree::{Changes, Worktree, Worktrees};

/// The tool.
pub(super) struct ExitWorktree;

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

impl Tool for ExitWorktree {
    type Input = Input;

    const NAME: &'static str = "ExitWorktree";

    const OFFER: Offer = Offer::OnDemand;

    const DEALS_WITH: DealsWith = DealsWith::Session;

    const DESCRIPTION: &'static str =
        "Leaves the work tree that EnterWorktree entered, and keeps or removes it.";

    fn touches(_: &Input) -> Touches {
        Touches::Session
    }

    async fn run(&self, input: Input, call: Call) -> Output {
        main_agent_only(&call)?;
        let Some(tree) = call.workspace.entered() else {
            return Err(Trouble::Refused("The session is in no work tree.".into()));
        };
        let lost = match input.action {
            Action::Keep => None,
            Action::Remove => Some(remove(&call, &tree, input.discard_changes).await?),
        };
        call.workspace.enter(None);
        Ok(report(&call, tree, lost))
    }

    fn examples() -> Vec<Example> {
        let entered = |shows, input| {
            Example::new(shows, input)
                .after("Bash", json!({"command": REPOSITORY}))
                .after("EnterWorktree", json!({"name": "try"}))
        };
        vec![
            Example::new("there must be one to leave", json!({"action": "keep"})).fails(&["in no work tree"]),
            entered("it can stay", json!({"action": "keep"}))
                .says(&["stays", "try"])
                .leaves(&[(".claude/worktrees/try/a.txt", "one\n")]),
            entered("it can go", json!({"action": "remove"})).says(&["was removed"]),
            entered("what was changed is not lost by the way", json!({"action": "remove"}))
                .after("Bash", json!({"command": "echo two > b.txt"}))
                .fails(&["1 file", "discard_changes"])
                .leaves(&[(".claude/worktrees/try/b.txt", "two\n")]),
            entered("unless that is wanted", json!({"action": "remove", "discard_changes": true}))
                .after("Bash", json!({"command": "echo two > b.txt"}))
                .says(&["was removed", "1 file"]),
        ]
    }
}

/// Removes the work tree, if nothing is lost by that or it may be.
async fn remove(call: &Call, tree: &Worktree, discard: bool) -> Result<Changes, Trouble> {
    let failed = |fault| Trouble::Failed(format!("The work tree stays, and the session in it: {fault}."));
    let trees = Worktrees::of(call);
    let changes = trees.changes(tree).await.map_err(failed)?;
    if !changes.is_empty() && !discard {
        return Err(Trouble::Refused(format!(
            "The work tree stays, and the session in it: {} would be lost. Commit them elsewhere, leave with `keep`, or ask the user and set discard_changes.",
            in_words(changes)
        )));
    }
    trees.remove(tree).await.map_err(failed)?;
    Ok(changes)
}

fn in_words(changes: Changes) -> String {
    let count = |number: usize, word: &str| match number {
        0 => None,
        1 => Some(format!("1 {word}")),
        more => Some(format!("{more} {word}s")),
    };
    let parts = [count(changes.files, "file"), count(changes.commits, "commit")];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" and ")
}

fn report(call: &Call, tree: Worktree, lost: Option<Changes>) -> Done {
    let (path, root) = (tree.path.display().to_string(), call.workspace.root().display().to_string());
    let what = match lost {
        None => "stays".to_owned(),
        Some(changes) if changes.is_empty() => "was removed".to_owned(),
        Some(changes) => format!("was removed with {}", in_words(changes)),
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
    Done::text(message, meta)
}
