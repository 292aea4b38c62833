//! Expands the text of a command file or skill: arguments, variables, and the output of its shell commands. Also sets
//! the model that the file asks for.

use std::sync::Arc;

use serde_json::json;
use whimbrel_os::ids;
use whimbrel_tools::api::AgentToolSet;
use whimbrel_wire::content::{Content, ResultContent};
use whimbrel_wire::tool_names::BASH;

use crate::agent::Agent;
use crate::commands::CommandFile;
use crate::commands::parse_file::CommandFrontMatter;
use crate::commands::template::{self, TemplatePiece};
use crate::runtime_settings::SettingsOverride;
use crate::tool_scheduler::{ToolCall, ToolEnv, ToolScheduler};

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
    file.expand_paths(text).replace("${CLAUDE_SESSION_ID}", &agent.frame_sender.session_id())
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
    if let Some(denied) = result.denial {
        agent.denials.record(denied.denial);
        return Err(format!("It needs `{command}`. {}", denied.message));
    }
    Ok(match result.content {
        ResultContent::Text(text) => text,
        ResultContent::Blocks(blocks) => Content::Blocks(blocks).joined_text(),
    })
}

/// Overrides model and effort for the turn. Returns a warning if the model is not available.
pub(crate) fn override_model(agent: &Agent, file: &CommandFile, head: &CommandFrontMatter) -> Option<String> {
    let model = head.model().map(|name| agent.models.catalog().resolve_alias(name));
    let error = model.as_deref().and_then(|model| agent.models.providers().resolve(model).err());
    let model = model.filter(|_| error.is_none());
    agent.runtime_settings.push_override(SettingsOverride { model, effort: head.effort() });
    error.map(|error| format!("{}: its model is ignored: {}", file.path.display(), error.message))
}
