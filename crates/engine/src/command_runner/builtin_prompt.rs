//! Built-in prompts as commands: runs a turn with the prompt.

use tokio_util::sync::CancellationToken;
use whimbrel_wire::Block;
use whimbrel_wire::message::User;

use super::expanded_prompt::{self, ExpandedPrompt};
use crate::agent::Agent;
use crate::commands::BuiltinPrompt;
use crate::prompt_submission::mentioned_files;
use crate::turn::TurnOutcome;

/// Call of a built-in prompt.
pub struct BuiltinPromptCall {
    pub builtin: &'static BuiltinPrompt,
    /// Text after the name.
    pub arguments: String,
    /// Original prompt of the user.
    pub prompt: Box<User>,
}

/// Runs a turn with the prompt and the files that the user mentions.
pub(super) async fn run(
    agent: &mut Agent,
    call: BuiltinPromptCall,
    cancel: &CancellationToken,
) -> TurnOutcome {
    let BuiltinPromptCall { builtin, arguments, prompt } = call;
    let blocks = vec![Block::text(builtin.render(&arguments))];
    let expanded = ExpandedPrompt { kind: "slash_command", name: builtin.name, arguments, blocks, prompt };
    match expanded_prompt::run_hooks(agent, &expanded, cancel).await {
        Ok(contexts) => {
            mentioned_files::attach_mentioned_files(agent, &expanded.arguments).await;
            expanded_prompt::run_turn(agent, expanded, &contexts, cancel).await
        }
        Err(outcome) => *outcome,
    }
}
