//! A command that has become blocks for the model: runs the prompt hooks, then a turn.

use tokio_util::sync::CancellationToken;
use whimbrel_tools::hooks::{HookInputBuilder, join_reasons};
use whimbrel_wire::Block;
use whimbrel_wire::content::Content;
use whimbrel_wire::hook::{HookEvent, UserPromptExpansion};
use whimbrel_wire::message::User;

use super::{answer_without_model, command_file};
use crate::agent::Agent;
use crate::next_step::TurnEnd;
use crate::prompt_submission;
use crate::turn::{self, TurnOutcome};

pub(super) struct ExpandedPrompt<'a> {
    /// `expansion_type` of the hook input.
    pub(super) kind: &'static str,
    pub(super) name: &'a str,
    /// Text after the name.
    pub(super) arguments: String,
    /// What the command became.
    pub(super) blocks: Vec<Block>,
    /// Original prompt of the user.
    pub(super) prompt: Box<User>,
}

/// Runs the UserPromptExpansion and UserPromptSubmit hooks and returns their contexts; the error is the outcome if they
/// end the turn.
pub(super) async fn run_hooks(
    agent: &mut Agent,
    expanded: &ExpandedPrompt<'_>,
    cancel: &CancellationToken,
) -> Result<Vec<String>, Box<TurnOutcome>> {
    let ExpandedPrompt { kind, name, arguments, blocks, prompt } = expanded;
    let text = Content::Blocks(blocks.clone()).joined_text();
    let build_input = |input: &HookInputBuilder| {
        input.build(UserPromptExpansion {
            expansion_type: (*kind).into(),
            command_name: (*name).into(),
            command_args: arguments.clone(),
            command_source: None,
            prompt: text.clone(),
        })
    };
    let output =
        agent.tool_env.checker.hooks.dispatch(HookEvent::UserPromptExpansion, build_input, cancel).await;
    if !output.blocked.is_empty() {
        let reason = join_reasons(&output.blocked);
        let notice = format!("/{name} was not run. A hook blocked it: {reason}");
        return Err(Box::new(answer_without_model(agent, prompt, notice).await));
    }
    let submitted = prompt_submission::run_host_prompt_hooks(agent, prompt.uuid.as_deref(), &text, cancel)
        .await
        .map_err(TurnOutcome::from)?;
    if output.interrupted {
        return Err(Box::new(TurnOutcome::new(TurnEnd::AbortedStreaming)));
    }
    if output.stop.is_some() || submitted.stop.is_some() {
        return Err(Box::new(TurnOutcome::new(TurnEnd::HookStopped)));
    }
    Ok([output.contexts, submitted.contexts].concat())
}

/// Records the prompt, with the attachments of the original one, and runs a turn.
pub(super) async fn run_turn(
    agent: &mut Agent,
    expanded: ExpandedPrompt<'_>,
    contexts: &[String],
    cancel: &CancellationToken,
) -> TurnOutcome {
    let ExpandedPrompt { name, arguments, blocks, prompt, .. } = expanded;
    let mode = agent.tool_env.checker.permissions.mode().to_string();
    let head = command_file::command_header(name, &arguments);
    let original = prompt.message.content.into_blocks().into_iter();
    let attachments = original.filter(|block| !matches!(block, Block::Text { .. }));
    let content = std::iter::once(Block::text(head)).chain(blocks).chain(attachments).collect();
    agent.conversation.push_prompt(&prompt.uuid.unwrap_or_default(), &Content::Blocks(content), &mode);
    agent.inject_hook_context(contexts);
    turn::run(agent, cancel).await
}
