//! `/compact`: replaces the conversation by a summary of it.

use tokio_util::sync::CancellationToken;
use whimbrel_wire::message::User;
use whimbrel_wire::system::CompactTrigger;

use crate::agent::Agent;
use crate::commands::{Action, Command};
use crate::context::compact::{self, Failed, Source};
use crate::opening::Notices;
use crate::turn::Ending;
use crate::verdict::End;

/// The command.
pub const COMMAND: Command = Command {
    name: "compact",
    description: "Replace the conversation so far by a summary, to make room",
    argument_hint: "[what the summary should keep]",
    action: Action::Compact,
};

/// What was asked for.
pub struct Wish {
    /// What the summary should keep.
    pub keep: String,
    /// The prompt that asked for it.
    pub prompt: Box<User>,
}

/// Runs it in place of a turn.
pub(crate) async fn run(
    agent: &mut Agent,
    wish: Wish,
    notices: Notices,
    cancel: &CancellationToken,
) -> Ending {
    if agent.limits.compaction.forbidden {
        notices.tell(&agent.outbox).await;
        let text = "Summaries are switched off by DISABLE_COMPACT.";
        agent.conversation.command(&wish.prompt, text).await;
        agent.conversation.settle().await;
        return Ending { text: text.into(), ..Ending::new(End::Done) };
    }
    agent.understudies.begin_turn();
    let (trigger, source) = (CompactTrigger::Manual, Source::Whole);
    let summary = compact::summarise(agent, trigger, &wish.keep, source, cancel).await;
    notices.tell(&agent.outbox).await;
    let done = Ending::new(End::Done);
    let ending = match summary {
        Ok(summary) => {
            compact::replace(agent, CompactTrigger::Manual, summary).await;
            agent.conversation.command(&wish.prompt, "Compacted.").await;
            done
        }
        Err(Failed::Nothing) => {
            let text = "There is nothing to summarise yet.";
            agent.conversation.command(&wish.prompt, text).await;
            Ending { text: text.into(), ..done }
        }
        Err(Failed::Blocked(reason)) => {
            let text = format!("A hook does not want the conversation summarised: {reason}");
            agent.conversation.command(&wish.prompt, &text).await;
            Ending { text, ..done }
        }
        Err(Failed::Interrupted) => {
            agent.conversation.command(&wish.prompt, "Interrupted.").await;
            Ending::new(End::AbortedStreaming)
        }
        Err(Failed::Model(fault)) if agent.ledger.is_used_up() => {
            agent.conversation.command(&wish.prompt, &fault.message).await;
            Ending::new(End::Broke)
        }
        Err(Failed::Model(fault)) => {
            let text = format!("The conversation could not be summarised: {}", fault.message);
            agent.conversation.command(&wish.prompt, &text).await;
            agent.conversation.failure(&text, fault.failure(), Some(&fault)).await;
            Ending { text, fault: Some(fault), ..Ending::new(End::ApiFailure) }
        }
    };
    agent.conversation.settle().await;
    ending
}
