//! A command file that a subagent does, apart from the conversation (`context: fork`). Its report is the answer, and the
//! model is not asked.

use tokio_util::sync::CancellationToken;
use whimbrel_wire::hook::HookEvent;

use super::answer;
use super::expand::Expansion;
use crate::agent::Agent;
use crate::agents::{Agents, Sent};
use crate::hooks::{Scene, joined};
use crate::skills::desk::Loaded;
use crate::skills::fork;
use crate::tools::Call;
use crate::turn::Ending;
use crate::verdict::End;
use crate::{ids, opening};

/// Sends a subagent, and answers with its report.
pub(super) async fn run(
    agent: &mut Agent,
    agents: &Agents,
    expansion: Expansion,
    cancel: &CancellationToken,
) -> Ending {
    let Expansion { file, recipe, arguments, prompt, loan, .. } = expansion;
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
    let name = file.name.clone();
    let errand = fork::errand(Loaded { file, recipe, arguments });
    let call = Call { id: ids::task('c'), cancel: cancel.clone(), ..agent.bench.call.clone() };
    let sent = cancel.run_until_cancelled(agents.send(errand, &call)).await;
    drop(loan);
    match sent {
        None => {
            agent.conversation.command(&prompt, "Interrupted.").await;
            Ending::new(End::AbortedStreaming)
        }
        Some(Ok(Sent::Back(report))) => answer(agent, &prompt, report.text()).await,
        Some(Ok(Sent::Away(launched))) => {
            let text = format!("/{name} goes on beside the conversation, as {}.", launched.agent_id);
            answer(agent, &prompt, text).await
        }
        Some(Err(trouble)) => {
            answer(agent, &prompt, format!("/{name} was not run. {}", trouble.reason())).await
        }
    }
}
