//! Expands a command file to a prompt: fills in arguments, runs its shell commands, attaches mentioned files, and runs
//! a turn.

use std::sync::Arc;

use serde_json::json;
use tokio_util::sync::CancellationToken;
use whimbrel_os::ids;
use whimbrel_wire::Block;
use whimbrel_wire::content::{Content, ResultContent};
use whimbrel_wire::hook::HookEvent;
use whimbrel_wire::message::User;

use super::parse::ParsedCommand;
use super::template::{self, TemplatePiece};
use super::{CommandFile, answer_without_model, fork};
use crate::agent::Agent;
use crate::context::mentioned_files;
use crate::hooks::{HookInputBuilder, join_reasons};
use crate::next_step::TurnEnd;
use crate::skills::skill_hooks;
use crate::tool_scheduler::{ToolCall, ToolEnv, ToolScheduler};
use crate::tool_set::AgentToolSet;
use crate::turn::{self, TurnOutcome};
use crate::turn_start;

const BASH: &str = "Bash";

/// Call of a command file.
pub struct CommandExpansion {
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
pub async fn run(agent: &mut Agent, expansion: CommandExpansion, cancel: &CancellationToken) -> TurnOutcome {
    let agents = agent.tool_env.context.agents.clone().filter(|_| expansion.parsed.front_matter.is_fork());
    if let Some(agents) = agents {
        return Box::pin(fork::run(agent, &agents, expansion, cancel)).await;
    }
    let CommandExpansion { file, parsed, arguments, prompt, mode } = expansion;
    for warning in skill_hooks::add_skill_hooks(agent, &file, &parsed.front_matter) {
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
        Err(why) => {
            return answer_without_model(agent, &prompt, format!("/{} was not run. {why}", file.name)).await;
        }
    };
    let uuid = prompt.uuid.clone();
    let build_input =
        |input: &HookInputBuilder| input.user_prompt_expansion(&file.name, &arguments, text.as_str());
    let expanded =
        agent.tool_env.checker.hooks.dispatch(HookEvent::UserPromptExpansion, build_input, cancel).await;
    if !expanded.blocked.is_empty() {
        let why = join_reasons(&expanded.blocked);
        return answer_without_model(
            agent,
            &prompt,
            format!("/{} was not run. A hook blocked it: {why}", file.name),
        )
        .await;
    }
    let submitted = match turn_start::run_host_prompt_hooks(agent, uuid.as_deref(), &text, cancel).await {
        Ok(submitted) => submitted,
        Err(ending) => return ending,
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
    turn::inject_hook_context(agent, &[expanded.contexts, submitted.contexts].concat());
    turn::run(agent, cancel).await
}

pub(crate) struct ExpandedPrompt {
    pub(crate) text: String,
    /// Text of the file and the user, without command output; only this is searched for file mentions.
    pub(crate) authored: String,
}

/// Fills in the arguments and runs the file's shell commands with these tools. The error names a command that may not
/// run.
pub(crate) async fn expand_file(
    agent: &mut Agent,
    tools: &Arc<AgentToolSet>,
    file: &CommandFile,
    body: &str,
    arguments: &str,
) -> Result<ExpandedPrompt, String> {
    let mut expanded = ExpandedPrompt { text: String::new(), authored: String::new() };
    if let Some(dir) = &file.skill_dir {
        expanded.text = format!("Base directory for this skill: {}\n\n", dir.display());
    }
    // Paths are filled in after parsing, so that a path cannot contain a command.
    for piece in template::fill(body, arguments) {
        match piece {
            TemplatePiece::Text(text) => {
                let text = expand_variables(agent, file, &text);
                expanded.text.push_str(&text);
                expanded.authored.push_str(&text);
            }
            TemplatePiece::Command(command) => {
                let command = expand_variables(agent, file, &command);
                expanded.text.push_str(&run_shell(agent, tools, &command).await?);
            }
        }
    }
    Ok(expanded)
}

/// Replaces the directory variables and the session id.
fn expand_variables(agent: &Agent, file: &CommandFile, text: &str) -> String {
    file.expand_paths(text).replace("${CLAUDE_SESSION_ID}", agent.frame_sender.session_id())
}

/// Output of a shell command, after the permission check. A failing command is reported in its output; a denied one is
/// the error.
async fn run_shell(agent: &mut Agent, tools: &Arc<AgentToolSet>, command: &str) -> Result<String, String> {
    if tools.find(BASH).is_none() {
        return Err(format!("It needs `{command}`, but this session has no {BASH} tool."));
    }
    let tool_env = ToolEnv { tool_set: Arc::clone(tools), ..ToolEnv::clone(&agent.tool_env) };
    let mut scheduler = ToolScheduler::new(Arc::new(tool_env));
    let input = json!({"command": command});
    scheduler.submit(ToolCall { id: ids::new_task_id('c'), tool: BASH.into(), input, bad_input: None });
    scheduler.mark_reply_complete();
    let Some(result) = scheduler.next_result().await else { return Ok(String::new()) };
    if let Some(refused) = result.denial {
        agent.denials.record(refused.denial);
        return Err(format!("It needs `{command}`. {}", refused.message));
    }
    Ok(match result.content {
        ResultContent::Text(text) => text,
        ResultContent::Blocks(blocks) => Content::Blocks(blocks).joined_text(),
    })
}

/// Tags that name the command for the model.
pub(super) fn command_header(name: &str, arguments: &str) -> String {
    format!("<command-name>/{name}</command-name>\n<command-args>{arguments}</command-args>")
}

/// Prompt content for the model: command tags, expanded text, and other blocks of the original prompt.
fn build_content(name: &str, arguments: &str, text: String, sent: Content) -> Content {
    let head = command_header(name, arguments);
    let others = sent.into_blocks().into_iter().filter(|block| !matches!(block, Block::Text { .. }));
    Content::Blocks([Block::text(head), Block::text(text)].into_iter().chain(others).collect())
}
