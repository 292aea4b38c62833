//! MCP prompts as commands: fetches the prompt and runs a turn with it.

use tokio_util::sync::CancellationToken;
use whimbrel_tools::mcp_tools::ToolCache;
use whimbrel_wire::message::User;

use super::answer_without_model;
use super::expanded_prompt::{self, ExpandedPrompt};
use crate::agent::Agent;
use crate::next_step::TurnEnd;
use crate::prompt_submission;
use crate::turn::{self, TurnOutcome};

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
        return match prompt_submission::accept_prompt(agent, &prompt, cancel).await {
            Ok(()) => turn::run(agent, cancel).await,
            Err(error) => error.into(),
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
    let expanded = ExpandedPrompt { kind: "mcp_prompt", name: &name, arguments, blocks, prompt };
    match expanded_prompt::run_hooks(agent, &expanded, cancel).await {
        Ok(contexts) => expanded_prompt::run_turn(agent, expanded, &contexts, cancel).await,
        Err(outcome) => *outcome,
    }
}
