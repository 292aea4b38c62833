//! Attaches files that a prompt mentions with `@`.
//!
//! Only files that the model may read without a permission request are attached; a mention never prompts the user.

use serde_json::json;
use whimbrel_os::files::{self, FileKind};
use whimbrel_policy::Decision;
use whimbrel_tools::api::{ToolContext, ToolOutput};
use whimbrel_wire::content::ResultContent;

use crate::agent::Agent;
use crate::context::mentions;

/// Limit on files attached to one prompt.
const MAX_FILES: usize = 20;

/// Attaches the files that a text mentions.
pub(crate) async fn attach_mentioned_files(agent: &mut Agent, text: &str) {
    let workspace = &agent.tool_env.context.workspace;
    let is_file = |path: &&str| matches!(files::file_kind(&workspace.resolve(path)), Ok(FileKind::File(_)));
    let (found, _) = mentions::find_mentions(text);
    let paths = found.iter().filter_map(|mention| mention.candidates().find(is_file).map(str::to_owned));
    let mut paths: Vec<String> = paths.take(MAX_FILES + 1).collect();
    if paths.len() > MAX_FILES {
        paths.truncate(MAX_FILES);
        let text = format!(
            "The prompt mentions more than {MAX_FILES} files: only the first {MAX_FILES} are attached; the model must read the others itself."
        );
        agent.frame_sender.warn(text).await;
    }
    for path in paths {
        attach_file(agent, &path).await;
    }
    agent.inject_nested_instructions();
}

/// Attaches one file, in the format of the Read tool.
async fn attach_file(agent: &mut Agent, path: &str) {
    let Some(read) = agent.tool_env.tool_set.find("Read") else { return };
    let input = json!({"file_path": path});
    let decision =
        agent.tool_env.checker.permissions.decide(read.tool().name(), read.properties(), &input, None);
    if !matches!(decision.decision, Decision::Allow(_)) {
        return;
    }
    agent.instructions.watch_call("Read", &input);
    let call =
        ToolContext { id: "attached".into(), checked: decision.checked, ..agent.tool_env.context.clone() };
    let head = format!("The prompt mentions the file {path}.");
    match read.tool().run(input, call).await {
        Ok(ToolOutput { content: ResultContent::Text(text), .. }) => {
            agent.conversation.push_hidden(&wrap_reminder(&format!("{head} Output of Read:\n{text}")));
        }
        Ok(ToolOutput { content: ResultContent::Blocks(blocks), .. }) => {
            agent.conversation.push_hidden(&wrap_reminder(&format!("{head} Output of Read:")));
            agent.conversation.push_hidden_blocks(blocks);
        }
        Err(error) => {
            agent
                .conversation
                .push_hidden(&wrap_reminder(&format!("{head} Read failed: {}", error.reason())));
        }
    }
}

fn wrap_reminder(text: &str) -> String {
    format!("<system-reminder>\n{text}\n</system-reminder>")
}
