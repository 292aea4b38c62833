//! A prompt of an MCP server as a command: the server is asked for it, and the model answers it.

use tokio_util::sync::CancellationToken;
use whimbrel_wire::Block;
use whimbrel_wire::content::Content;
use whimbrel_wire::control::SlashCommand;
use whimbrel_wire::hook::{HookEvent, UserPromptExpansion};
use whimbrel_wire::message::User;

use super::{answer, expand};
use crate::agent::Agent;
use crate::hooks::{Scene, joined};
use crate::mcp::{PromptCommand, Supply};
use crate::opening;
use crate::turn::{self, Ending};
use crate::verdict::End;

/// A prompt that was called.
pub struct Errand {
    /// The command.
    pub name: String,
    /// What followed its name.
    pub arguments: String,
    /// What the person wrote.
    pub prompt: Box<User>,
    /// What MCP servers bring.
    pub supply: Supply,
}

/// A prompt as hosts are told of it.
pub(super) fn described(prompt: PromptCommand) -> SlashCommand {
    SlashCommand {
        argument_hint: prompt.argument_hint(),
        description: format!("{} (MCP)", prompt.description).trim_start().to_owned(),
        name: prompt.name,
        builtin: Some(false),
        ..SlashCommand::default()
    }
}

/// Asks for the prompt and has the model answer it. A name that turns out to be nobody's is an ordinary prompt.
pub async fn run(agent: &mut Agent, errand: Errand, cancel: &CancellationToken) -> Ending {
    let Errand { name, arguments, prompt, supply } = errand;
    let Some(command) = supply.prompts().into_iter().find(|prompt| prompt.name == name) else {
        return match opening::take(agent, &prompt, cancel).await {
            Ok(()) => turn::run(agent, cancel).await,
            Err(ending) => ending,
        };
    };
    let spill = agent.bench.call.workspace.spill().to_path_buf();
    let blocks = match cancel.run_until_cancelled(supply.prompt(&command, &arguments, &spill)).await {
        Some(Ok(blocks)) => blocks,
        Some(Err(why)) => return answer(agent, &prompt, format!("/{name} was not run. {why}")).await,
        None => {
            agent.conversation.command(&prompt, "Interrupted.").await;
            return Ending::new(End::AbortedStreaming);
        }
    };
    match allowed(agent, &name, &arguments, &prompt, &blocks, cancel).await {
        Ok(contexts) => {
            let mode = agent.bench.gate.rights.mode().to_string();
            let head = expand::head(&name, &arguments);
            let sent = prompt.message.content.into_blocks().into_iter();
            let besides = sent.filter(|block| !matches!(block, Block::Text { .. }));
            let content = std::iter::once(Block::text(head)).chain(blocks).chain(besides).collect();
            let uuid = prompt.uuid.unwrap_or_default();
            agent.conversation.prompt(&uuid, &Content::Blocks(content), &mode);
            turn::brief(agent, &contexts);
            turn::run(agent, cancel).await
        }
        Err(Refusal::Said(why)) => {
            answer(agent, &prompt, format!("/{name} was not run. A hook stops it: {why}")).await
        }
        Err(Refusal::Ended(ending)) => *ending,
    }
}

/// Why the model does not get the prompt.
enum Refusal {
    /// A hook says so.
    Said(String),
    /// The turn is over.
    Ended(Box<Ending>),
}

/// Lets the hooks have their say; what they add is told.
async fn allowed(
    agent: &mut Agent,
    name: &str,
    arguments: &str,
    prompt: &User,
    blocks: &[Block],
    cancel: &CancellationToken,
) -> Result<Vec<String>, Refusal> {
    let text = Content::Blocks(blocks.to_vec()).joined_text();
    let told = |scene: &Scene| {
        scene.of(UserPromptExpansion {
            expansion_type: "mcp_prompt".into(),
            command_name: name.into(),
            command_args: arguments.into(),
            command_source: None,
            prompt: text.clone(),
        })
    };
    let expanded = agent.bench.gate.lookout.raise(HookEvent::UserPromptExpansion, told, cancel).await;
    if !expanded.blocked.is_empty() {
        return Err(Refusal::Said(joined(&expanded.blocked)));
    }
    let submitted = opening::submit(agent, prompt.uuid.as_deref(), &text, cancel).await;
    let submitted = submitted.map_err(|ending| Refusal::Ended(Box::new(ending)))?;
    if expanded.interrupted {
        return Err(Refusal::Ended(Box::new(Ending::new(End::AbortedStreaming))));
    }
    if expanded.stop.is_some() || submitted.stop.is_some() {
        return Err(Refusal::Ended(Box::new(Ending::new(End::HookStopped))));
    }
    Ok([expanded.contexts, submitted.contexts].concat())
}
