//! `/clear`: forgets the conversation. The transcript keeps it; what is said next begins a new branch there.

use crate::agent::Agent;
use crate::commands::{Action, Command};

/// The command.
pub const COMMAND: Command = Command {
    name: "clear",
    description: "Forget the conversation so far",
    argument_hint: "",
    action: Action::Clear,
};

/// Forgets it, and tells the model where it is as at the beginning. What it knew of files it knows no more.
pub fn clear(agent: &mut Agent) -> String {
    let workspace = &agent.bench.call.workspace;
    for (path, _) in workspace.all_seen() {
        workspace.forget(&path);
    }
    agent.conversation.clear();
    agent.memory = agent.memory.fresh();
    agent.orient();
    "The conversation is cleared.".into()
}
