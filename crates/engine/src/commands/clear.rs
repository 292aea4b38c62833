//! `/clear`: forgets the conversation. The transcript keeps it; the next message begins a new branch there.

use tokio_util::sync::CancellationToken;
use whimbrel_wire::hook::HookEvent;
use whimbrel_wire::message::User;

use crate::agent::Agent;
use crate::commands::{BuiltinAction, BuiltinCommand, answer_without_model};
use crate::next_step::TurnEnd;
use crate::turn::TurnOutcome;
use crate::turn_start;

pub const COMMAND: BuiltinCommand = BuiltinCommand {
    name: "clear",
    description: "Forget the conversation so far",
    argument_hint: "",
    action: BuiltinAction::Clear,
};

/// Runs in place of a turn. SessionEnd and SessionStart hooks run, because the model has forgotten their context too.
/// `unheard` is a notice about ignored arguments.
pub(super) async fn run(
    agent: &mut Agent,
    prompt: &User,
    unheard: &str,
    cancel: &CancellationToken,
) -> TurnOutcome {
    let lookout = agent.tool_env.checker.hooks.clone();
    lookout.dispatch(HookEvent::SessionEnd, |scene| scene.session_end("clear"), cancel).await;
    clear(agent);
    let stopped = turn_start::run_session_start_hooks(agent, Some("clear"), cancel).await;
    let ending = answer_without_model(agent, prompt, format!("The conversation is cleared.{unheard}")).await;
    if stopped { TurnOutcome::new(TurnEnd::HookStopped) } else { ending }
}

/// Clears the conversation and the record of files read, and injects the initial context again.
fn clear(agent: &mut Agent) {
    let workspace = &agent.tool_env.context.workspace;
    for (path, _) in workspace.seen_files() {
        workspace.forget_seen(&path);
    }
    agent.conversation.clear();
    agent.instructions = agent.instructions.for_new_agent();
    agent.inject_context();
}
