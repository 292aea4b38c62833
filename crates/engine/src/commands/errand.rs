//! A command file that a subagent does, apart from the conversation (`context: fork`). Its report is the answer; the model
//! is not asked, and reads it with the next prompt.

use tokio_util::sync::CancellationToken;
use whimbrel_wire::hook::HookEvent;

use super::answer;
use super::expand::{self, Expansion};
use crate::agent::Agent;
use crate::agents::{Agents, Sent};
use crate::hooks::{Scene, joined};
use crate::skills::desk::Loaded;
use crate::skills::fork;
use crate::tools::Call;
use crate::turn::{self, Ending};
use crate::verdict::End;
use crate::{ids, opening};

/// Sends a subagent, and answers with its report.
pub(super) async fn run(
    agent: &mut Agent,
    agents: &Agents,
    expansion: Expansion,
    cancel: &CancellationToken,
) -> Ending {
    let Expansion { file, recipe, arguments, prompt, mode } = expansion;
    let told = |scene: &Scene| scene.user_prompt_expansion(&file.name, &arguments, recipe.body.as_str());
    let expanded = agent.bench.gate.lookout.raise(HookEvent::UserPromptExpansion, told, cancel).await;
    if !expanded.blocked.is_empty() {
        let why = joined(&expanded.blocked);
        return answer(agent, &prompt, format!("/{} was not run. A hook stops it: {why}", file.name)).await;
    }
    let text = prompt.message.content.joined_text();
    let submitted = match opening::submit(agent, prompt.uuid.as_deref(), &text, cancel).await {
        Ok(submitted) => submitted,
        Err(ending) => return ending,
    };
    if expanded.stop.is_some() || submitted.stop.is_some() {
        return Ending::new(End::HookStopped);
    }
    turn::brief(agent, &[expanded.contexts, submitted.contexts].concat());
    let (name, command) = (file.name.clone(), expand::head(&file.name, &arguments));
    let errand = fork::errand(Loaded { file, recipe, arguments });
    let call = Call { id: ids::task('c'), cancel: cancel.clone(), ..agent.bench.call.clone() };
    let sent = cancel.run_until_cancelled(agents.send(errand, &call)).await;
    let outcome = match sent {
        None => {
            agent.conversation.command(&prompt, "Interrupted.").await;
            return Ending::new(End::AbortedStreaming);
        }
        Some(Ok(Sent::Back(report))) => report.text(),
        Some(Ok(Sent::Away(launched))) => {
            format!("/{name} goes on beside the conversation, as {}.", launched.agent_id)
        }
        Some(Err(trouble)) => {
            return answer(agent, &prompt, format!("/{name} was not run. {}", trouble.reason())).await;
        }
    };
    let uuid = prompt.uuid.unwrap_or_default();
    agent.conversation.done_apart((&uuid, &command), &outcome, &mode).await;
    agent.conversation.settle().await;
    Ending { text: outcome, ..Ending::new(End::Done) }
}
