//! Runs a command file: expands its text (`command_expansion`), runs the hooks, attaches mentioned files, and runs a
//! turn with the result.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use whimbrel_tools::hooks::{HookInputBuilder, join_reasons};
use whimbrel_wire::Block;
use whimbrel_wire::content::Content;
use whimbrel_wire::hook::HookEvent;
use whimbrel_wire::message::User;

use super::{answer_without_model, fork};
use crate::agent::Agent;
use crate::agents::AgentSpawner;
use crate::command_expansion::{ExpandedPrompt, expand_file};
use crate::commands::CommandFile;
use crate::commands::parse_file::ParsedCommand;
use crate::next_step::TurnEnd;
use crate::prompt_submission::{self, mentioned_files};
use crate::turn::{self, TurnOutcome};

/// Call of a command file.
pub struct CommandFileCall {
    pub file: Arc<CommandFile>,
    pub parsed: ParsedCommand,
    /// Text after the name.
    pub arguments: String,
    /// Original prompt of the user.
    pub prompt: Box<User>,
    /// Permission mode, for the transcript.
    pub mode: String,
}

/// Expands the file and runs a turn with it.
pub async fn run(agent: &mut Agent, call: CommandFileCall, cancel: &CancellationToken) -> TurnOutcome {
    let agents = AgentSpawner::from_context(&agent.tool_env.context).cloned();
    if let Some(agents) = agents.filter(|_| call.parsed.front_matter.is_fork()) {
        return Box::pin(fork::run(agent, &agents, call, cancel)).await;
    }
    let CommandFileCall { file, parsed, arguments, prompt, mode } = call;
    for warning in agent.add_skill_hooks(&file, &parsed.front_matter) {
        agent.frame_sender.warn(warning).await;
    }
    let tools = Arc::clone(&agent.tool_env.tool_set);
    let outcome = expand_file(agent, &tools, &file, &parsed.body, &arguments);
    let outcome = match cancel.run_until_cancelled(outcome).await {
        Some(outcome) => outcome,
        None => {
            agent.conversation.push_local_command(&prompt, "Interrupted.").await;
            return TurnOutcome::new(TurnEnd::AbortedStreaming);
        }
    };
    let ExpandedPrompt { text, authored } = match outcome {
        Ok(outcome) => outcome,
        Err(reason) => {
            return answer_without_model(agent, &prompt, format!("/{} was not run. {reason}", file.name))
                .await;
        }
    };
    let uuid = prompt.uuid.clone();
    let build_input =
        |input: &HookInputBuilder| input.user_prompt_expansion(&file.name, &arguments, text.as_str());
    let expanded =
        agent.tool_env.checker.hooks.dispatch(HookEvent::UserPromptExpansion, build_input, cancel).await;
    if !expanded.blocked.is_empty() {
        let reason = join_reasons(&expanded.blocked);
        return answer_without_model(
            agent,
            &prompt,
            format!("/{} was not run. A hook blocked it: {reason}", file.name),
        )
        .await;
    }
    let submitted =
        match prompt_submission::run_host_prompt_hooks(agent, uuid.as_deref(), &text, cancel).await {
            Ok(submitted) => submitted,
            Err(error) => return error.into(),
        };
    if expanded.interrupted {
        return TurnOutcome::new(TurnEnd::AbortedStreaming);
    }
    if expanded.stop.is_some() || submitted.stop.is_some() {
        return TurnOutcome::new(TurnEnd::HookStopped);
    }
    mentioned_files::attach_mentioned_files(agent, &authored).await;
    let content = build_content(&file.name, &arguments, text, prompt.message.content);
    agent.conversation.push_prompt(uuid.as_deref().unwrap_or_default(), &content, &mode);
    agent.inject_hook_context(&[expanded.contexts, submitted.contexts].concat());
    turn::run(agent, cancel).await
}

/// Tags that name the command for the model.
pub(super) fn command_header(name: &str, arguments: &str) -> String {
    format!("<command-name>/{name}</command-name>\n<command-args>{arguments}</command-args>")
}

/// Prompt content for the model: command tags, expanded text, and other blocks of the original prompt.
fn build_content(name: &str, arguments: &str, text: String, original: Content) -> Content {
    let head = command_header(name, arguments);
    let others = original.into_blocks().into_iter().filter(|block| !matches!(block, Block::Text { .. }));
    Content::Blocks([Block::text(head), Block::text(text)].into_iter().chain(others).collect())
}
