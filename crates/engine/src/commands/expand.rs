//! A command file becomes a prompt: arguments are filled in, commands in it are run, files that it names are shown, and
//! the model answers.

use std::sync::Arc;

use serde_json::json;
use tokio_util::sync::CancellationToken;
use whimbrel_wire::Block;
use whimbrel_wire::content::{Content, ResultContent};
use whimbrel_wire::message::{Denial, User};

use super::loan::Loan;
use super::template::{self, Piece};
use super::{CommandFile, answer};
use crate::agent::Agent;
use crate::context::attach;
use crate::gate::Permit;
use crate::ids;
use crate::tools::Call;
use crate::turn::{self, Ending};
use crate::verdict::End;

/// A command file that was called.
pub struct Expansion {
    /// The file.
    pub file: Arc<CommandFile>,
    /// Its body.
    pub body: String,
    /// What followed its name.
    pub arguments: String,
    /// The prompt that called it.
    pub prompt: User,
    /// The permission mode, for the transcript.
    pub mode: String,
    /// What the turn has by the file's leave.
    pub loan: Loan,
}

/// Makes the prompt and has the model answer it.
pub async fn run(agent: &mut Agent, expansion: Expansion, cancel: &CancellationToken) -> Ending {
    let Expansion { file, body, arguments, prompt, mode, loan } = expansion;
    let pieces = template::fill(&body, &arguments);
    let made = match cancel.run_until_cancelled(make(agent, pieces)).await {
        Some(made) => made,
        None => {
            agent.conversation.note("[Request interrupted by user]").await;
            return Ending::new(End::AbortedStreaming);
        }
    };
    let Made { text, said } = match made {
        Ok(made) => made,
        Err(why) => return answer(agent, &prompt, format!("/{} was not run. {why}", file.name)).await,
    };
    attach::mentioned(agent, &said).await;
    let content = content(&file.name, &arguments, text, prompt.message.content);
    agent.conversation.prompt(prompt.uuid.as_deref().unwrap_or_default(), &content, &mode);
    let ending = turn::run(agent, cancel).await;
    drop(loan);
    ending
}

/// A prompt that was made of a file.
struct Made {
    /// All of it.
    text: String,
    /// What the file and the person say in it, without what commands answered.
    said: String,
}

async fn make(agent: &mut Agent, pieces: Vec<Piece>) -> Result<Made, String> {
    let mut made = Made { text: String::new(), said: String::new() };
    for piece in pieces {
        match piece {
            Piece::Text(text) => {
                made.text.push_str(&text);
                made.said.push_str(&text);
            }
            Piece::Run(command) => made.text.push_str(&output(agent, &command).await?),
        }
    }
    Ok(made)
}

/// What a command prints, permission granted. One that fails says so in its place; the error is that it may not run.
async fn output(agent: &mut Agent, command: &str) -> Result<String, String> {
    let Some(bash) = agent.bench.toolbox.find("Bash") else {
        return Err(format!("It needs `{command}`, and Bash is not among the tools of this session."));
    };
    let id = ids::task('c');
    let input = json!({"command": command});
    let input = match agent.bench.gate.pass(&bash, &id, input.clone()).await {
        Ok(Permit::Go(input)) => input,
        Ok(Permit::No { message, .. }) => {
            agent.denials.add(Denial { tool_name: "Bash".into(), tool_use_id: id, tool_input: input });
            return Err(format!("It needs `{command}`. {message}"));
        }
        Err(trouble) => return Err(format!("It needs `{command}`. {}", trouble.reason())),
    };
    let call = Call { id, ..agent.bench.call.clone() };
    Ok(match bash.tool().run(input, call).await {
        Ok(done) => match done.content {
            ResultContent::Text(text) => text,
            ResultContent::Blocks(blocks) => Content::Blocks(blocks).joined_text(),
        },
        Err(trouble) => trouble.reason().to_owned(),
    })
}

/// The prompt as the model gets it: which command it was, what it says, and whatever else the host sent along.
fn content(name: &str, arguments: &str, text: String, sent: Content) -> Content {
    let head = format!("<command-name>/{name}</command-name>\n<command-args>{arguments}</command-args>");
    let others = sent.into_blocks().into_iter().filter(|block| !matches!(block, Block::Text { .. }));
    Content::Blocks([Block::text(head), Block::text(text)].into_iter().chain(others).collect())
}
