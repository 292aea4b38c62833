//! MCP prompts as commands: fetches the prompt and runs a turn with it.

use tokio_util::sync::CancellationToken;
use whimbrel_tools::hooks::{HookInputBuilder, join_reasons};
use whimbrel_tools::mcp_tools::ToolCache;
use whimbrel_wire::Block;
use whimbrel_wire::content::Content;
use whimbrel_wire::hook::{HookEvent, UserPromptExpansion};
use whimbrel_wire::message::User;

use super::{answer_without_model, command_file};
use crate::agent::Agent;
use crate::next_step::TurnEnd;
use crate::turn::{self, TurnOutcome};
use crate::turn_start;

/// Call of an MCP prompt.
pub struct McpPromptCall {
    pub name: String,
    /// Text after the name.
    pub arguments: String,
    /// Original prompt of the user.
    pub prompt: Box<User>,
    pub tool_cache: ToolCache,
}

/// Fetches the prompt and runs a turn with it. If no server has the prompt, the text is an ordinary prompt.
pub async fn run(agent: &mut Agent, call: McpPromptCall, cancel: &CancellationToken) -> TurnOutcome {
    let McpPromptCall { name, arguments, prompt, tool_cache } = call;
    let Some(command) = tool_cache.prompts().into_iter().find(|prompt| prompt.name == name) else {
        return match turn_start::accept_prompt(agent, &prompt, cancel).await {
            Ok(()) => turn::run(agent, cancel).await,
            Err(outcome) => outcome,
        };
    };
    let spill = agent.tool_env.context.workspace.output_dir().to_path_buf();
    let blocks = match cancel.run_until_cancelled(tool_cache.get_prompt(&command, &arguments, &spill)).await {
        Some(Ok(blocks)) => blocks,
        Some(Err(reason)) => {
            return answer_without_model(agent, &prompt, format!("/{name} was not run. {reason}")).await;
        }
        None => {
            agent.conversation.push_local_command(&prompt, "Interrupted.").await;
            return TurnOutcome::new(TurnEnd::AbortedStreaming);
        }
    };
    match run_prompt_hooks(agent, &name, &arguments, &prompt, &blocks, cancel).await {
        Ok(contexts) => {
            let mode = agent.tool_env.checker.permissions.mode().to_string();
            let head = command_file::command_header(&name, &arguments);
            let prompt_blocks = prompt.message.content.into_blocks().into_iter();
            let attachments = prompt_blocks.filter(|block| !matches!(block, Block::Text { .. }));
            let content = std::iter::once(Block::text(head)).chain(blocks).chain(attachments).collect();
            let uuid = prompt.uuid.unwrap_or_default();
            agent.conversation.push_prompt(&uuid, &Content::Blocks(content), &mode);
            agent.inject_hook_context(&contexts);
            turn::run(agent, cancel).await
        }
        Err(PromptRejection::Blocked(reason)) => {
            answer_without_model(agent, &prompt, format!("/{name} was not run. A hook blocked it: {reason}"))
                .await
        }
        Err(PromptRejection::Ended(outcome)) => *outcome,
    }
}

/// Why the prompt is not sent to the model.
enum PromptRejection {
    Blocked(String),
    Ended(Box<TurnOutcome>),
}

/// Runs the UserPromptExpansion and UserPromptSubmit hooks; returns their contexts.
async fn run_prompt_hooks(
    agent: &mut Agent,
    name: &str,
    arguments: &str,
    prompt: &User,
    blocks: &[Block],
    cancel: &CancellationToken,
) -> Result<Vec<String>, PromptRejection> {
    let text = Content::Blocks(blocks.to_vec()).joined_text();
    let build_input = |input: &HookInputBuilder| {
        input.build(UserPromptExpansion {
            expansion_type: "mcp_prompt".into(),
            command_name: name.into(),
            command_args: arguments.into(),
            command_source: None,
            prompt: text.clone(),
        })
    };
    let expanded =
        agent.tool_env.checker.hooks.dispatch(HookEvent::UserPromptExpansion, build_input, cancel).await;
    if !expanded.blocked.is_empty() {
        return Err(PromptRejection::Blocked(join_reasons(&expanded.blocked)));
    }
    let submitted = turn_start::run_host_prompt_hooks(agent, prompt.uuid.as_deref(), &text, cancel).await;
    let submitted = submitted.map_err(|outcome| PromptRejection::Ended(Box::new(outcome)))?;
    if expanded.interrupted {
        return Err(PromptRejection::Ended(Box::new(TurnOutcome::new(TurnEnd::AbortedStreaming))));
    }
    if expanded.stop.is_some() || submitted.stop.is_some() {
        return Err(PromptRejection::Ended(Box::new(TurnOutcome::new(TurnEnd::HookStopped))));
    }
    Ok([expanded.contexts, submitted.contexts].concat())
}
