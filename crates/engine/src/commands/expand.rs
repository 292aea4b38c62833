//! A command file becomes a prompt: arguments are filled in, commands in it are run, files that it names are shown, and
//! the model answers.

use std::sync::Arc;

use serde_json::json;
use tokio_util::sync::CancellationToken;
use whimbrel_wire::Block;
use whimbrel_wire::content::{Content, ResultContent};
use whimbrel_wire::hook::HookEvent;
use whimbrel_wire::message::User;

use super::head::Recipe;
use super::template::{self, Piece};
use super::{CommandFile, answer, errand};
use crate::agent::Agent;
use crate::context::attach;
use crate::hooks::{Scene, joined};
use crate::ids;
use crate::opening;
use crate::skills::brought;
use crate::toolbox::Toolbox;
use crate::turn::{self, Ending};
use crate::verdict::End;
use crate::workshop::{Bench, Wanted, Workshop};

/// The tool that runs commands.
const BASH: &str = "Bash";

/// A command file that was called.
pub struct Expansion {
    /// The file.
    pub file: Arc<CommandFile>,
    /// What it says.
    pub recipe: Recipe,
    /// What followed its name.
    pub arguments: String,
    /// The prompt that called it.
    pub prompt: Box<User>,
    /// The permission mode, for the transcript.
    pub mode: String,
}

/// Makes the prompt and has the model answer it.
pub async fn run(agent: &mut Agent, expansion: Expansion, cancel: &CancellationToken) -> Ending {
    let agents = agent.bench.call.agents.clone().filter(|_| expansion.recipe.head.is_fork());
    if let Some(agents) = agents {
        return Box::pin(errand::run(agent, &agents, expansion, cancel)).await;
    }
    let Expansion { file, recipe, arguments, prompt, mode } = expansion;
    for warning in brought::hooks(agent, &file, &recipe.head) {
        agent.outbox.warn(warning).await;
    }
    let tools = Arc::clone(&agent.bench.toolbox);
    let made = make(agent, &tools, &file, &recipe.body, &arguments);
    let made = match cancel.run_until_cancelled(made).await {
        Some(made) => made,
        None => {
            agent.conversation.command(&prompt, "Interrupted.").await;
            return Ending::new(End::AbortedStreaming);
        }
    };
    let Made { text, said } = match made {
        Ok(made) => made,
        Err(why) => return answer(agent, &prompt, format!("/{} was not run. {why}", file.name)).await,
    };
    let uuid = prompt.uuid.clone();
    let told = |scene: &Scene| scene.user_prompt_expansion(&file.name, &arguments, text.as_str());
    let expanded = agent.bench.gate.lookout.raise(HookEvent::UserPromptExpansion, told, cancel).await;
    if !expanded.blocked.is_empty() {
        let why = joined(&expanded.blocked);
        return answer(agent, &prompt, format!("/{} was not run. A hook stops it: {why}", file.name)).await;
    }
    let submitted = match opening::submit(agent, uuid.as_deref(), &text, cancel).await {
        Ok(submitted) => submitted,
        Err(ending) => return ending,
    };
    if expanded.interrupted {
        return Ending::new(End::AbortedStreaming);
    }
    if expanded.stop.is_some() || submitted.stop.is_some() {
        return Ending::new(End::HookStopped);
    }
    attach::mentioned(agent, &said).await;
    let content = content(&file.name, &arguments, text, prompt.message.content);
    agent.conversation.prompt(uuid.as_deref().unwrap_or_default(), &content, &mode);
    turn::brief(agent, &[expanded.contexts, submitted.contexts].concat());
    turn::run(agent, cancel).await
}

/// A prompt that was made of a file.
pub(crate) struct Made {
    /// All of it.
    pub(crate) text: String,
    /// What the file and the person say in it, without what commands answered.
    pub(crate) said: String,
}

/// Fills in the arguments, and runs what the file wants run, by these tools. The error says what may not be.
pub(crate) async fn make(
    agent: &mut Agent,
    tools: &Arc<Toolbox>,
    file: &CommandFile,
    body: &str,
    arguments: &str,
) -> Result<Made, String> {
    let mut made = Made { text: String::new(), said: String::new() };
    if let Some(folder) = &file.folder {
        made.text = format!("Base directory for this skill: {}\n\n", folder.display());
    }
    // What the file names is filled in last, so that nothing in a path is taken for a command.
    for piece in template::fill(body, arguments) {
        match piece {
            Piece::Text(text) => {
                let text = named(agent, file, &text);
                made.text.push_str(&text);
                made.said.push_str(&text);
            }
            Piece::Run(command) => {
                let command = named(agent, file, &command);
                made.text.push_str(&output(agent, tools, &command).await?);
            }
        }
    }
    Ok(made)
}

/// A text with the folders filled in that the file can name, and the session.
fn named(agent: &Agent, file: &CommandFile, text: &str) -> String {
    file.fill_in(text).replace("${CLAUDE_SESSION_ID}", agent.outbox.session())
}

/// What a command prints, permission granted. One that fails says so in its place; the error is that it may not run.
async fn output(agent: &mut Agent, tools: &Arc<Toolbox>, command: &str) -> Result<String, String> {
    if tools.find(BASH).is_none() {
        return Err(format!("It needs `{command}`, and {BASH} is not among the tools of this session."));
    }
    let bench = Bench { toolbox: Arc::clone(tools), ..Bench::clone(&agent.bench) };
    let mut workshop = Workshop::new(Arc::new(bench));
    let input = json!({"command": command});
    workshop.take(Wanted { id: ids::task('c'), tool: BASH.into(), input, bad_input: None });
    workshop.reply_complete();
    let Some(made) = workshop.next().await else { return Ok(String::new()) };
    if let Some(refused) = made.denial {
        agent.denials.add(refused.denial);
        return Err(format!("It needs `{command}`. {}", refused.message));
    }
    Ok(match made.content {
        ResultContent::Text(text) => text,
        ResultContent::Blocks(blocks) => Content::Blocks(blocks).joined_text(),
    })
}

/// Which command it was, as the model reads it.
pub(super) fn head(name: &str, arguments: &str) -> String {
    format!("<command-name>/{name}</command-name>\n<command-args>{arguments}</command-args>")
}

/// The prompt as the model gets it: which command it was, what it says, and whatever else the host sent along.
fn content(name: &str, arguments: &str, text: String, sent: Content) -> Content {
    let head = head(name, arguments);
    let others = sent.into_blocks().into_iter().filter(|block| !matches!(block, Block::Text { .. }));
    Content::Blocks([Block::text(head), Block::text(text)].into_iter().chain(others).collect())
}
