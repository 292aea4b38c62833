//! `/compact`: replaces the conversation by a summary of it.

use tokio_util::sync::CancellationToken;
use whimbrel_wire::system::CompactTrigger;

use crate::agent::Agent;
use crate::commands::{Action, Command};
use crate::context::compact::{self, Failed};
use crate::turn::Ending;
use crate::verdict::End;

/// The command.
pub const COMMAND: Command = Command {
    name: "compact",
    description: "Replace the conversation so far by a summary, to make room",
    argument_hint: "[what the summary should keep]",
    action: Action::Compact,
};

/// Runs it in place of a turn.
pub async fn run(agent: &mut Agent, keep: &str, cancel: &CancellationToken) -> Ending {
    match compact::compact(agent, CompactTrigger::Manual, keep, cancel).await {
        Ok(()) => Ending::new(End::Done),
        Err(Failed::Nothing) => {
            Ending { text: "There is nothing to summarise yet.".into(), ..Ending::new(End::Done) }
        }
        Err(Failed::Interrupted) => Ending::new(End::AbortedStreaming),
        Err(Failed::Model(fault)) => {
            let text = format!("The conversation could not be summarised: {}", fault.message);
            agent.conversation.failure(&text, fault.failure(), Some(&fault)).await;
            Ending { text, fault: Some(fault), ..Ending::new(End::ApiFailure) }
        }
    }
}
