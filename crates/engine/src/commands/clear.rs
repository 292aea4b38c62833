//! `/clear`: forgets the conversation. The transcript keeps it and says so; what is said next begins a new branch there.

use tokio_util::sync::CancellationToken;
use whimbrel_wire::hook::HookEvent;
use whimbrel_wire::message::User;

use crate::agent::Agent;
use crate::commands::{Action, Command, answer};
use crate::opening;
use crate::turn::Ending;
use crate::verdict::End;

/// The command.
pub const COMMAND: Command = Command {
    name: "clear",
    description: "Forget the conversation so far",
    argument_hint: "",
    action: Action::Clear,
};

/// Runs it in place of a turn. Hooks hear of an end and of a beginning: what they tell the model at the beginning it has
/// forgotten too. `unheard` says what came of words behind the command.
pub(super) async fn run(
    agent: &mut Agent,
    prompt: &User,
    unheard: &str,
    cancel: &CancellationToken,
) -> Ending {
    let lookout = agent.bench.gate.lookout.clone();
    lookout.raise(HookEvent::SessionEnd, |scene| scene.session_end("clear"), cancel).await;
    clear(agent);
    let stopped = opening::begin(agent, Some("clear"), cancel).await;
    let ending = answer(agent, prompt, format!("The conversation is cleared.{unheard}")).await;
    if stopped { Ending::new(End::HookStopped) } else { ending }
}

/// Forgets it, and tells the model where it is as at the beginning. What it knew of files it knows no more.
fn clear(agent: &mut Agent) {
    let workspace = &agent.bench.call.workspace;
    for (path, _) in workspace.all_seen() {
        workspace.forget(&path);
    }
    agent.conversation.clear();
    agent.memory = agent.memory.fresh();
    agent.orient();
}
