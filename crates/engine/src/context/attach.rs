//! Files that a prompt names with `@`: the model is shown them along with the prompt.
//!
//! Only what the model could read without asking is shown; nobody is asked about a word in a prompt.

use serde_json::json;
use whimbrel_policy::Decision;
use whimbrel_wire::content::ResultContent;

use crate::agent::Agent;
use crate::context::mentions;
use crate::files::{self, Kind};
use crate::tools::{Call, Done};

/// How many files a prompt can bring along.
const MOST: usize = 20;

/// Shows the model the files that a text names.
pub async fn mentioned(agent: &mut Agent, text: &str) {
    let workspace = &agent.bench.call.workspace;
    let is_file = |path: &&str| matches!(files::kind(&workspace.resolve(path)), Ok(Kind::File(_)));
    let (found, _) = mentions::find(text);
    let paths = found.iter().filter_map(|mention| mention.readings().find(is_file).map(str::to_owned));
    let mut paths: Vec<String> = paths.take(MOST + 1).collect();
    if paths.len() > MOST {
        paths.truncate(MOST);
        let text = format!(
            "The prompt names more than {MOST} files: the model is shown the first {MOST}, and has to read the others itself."
        );
        agent.outbox.warn(text).await;
    }
    for path in paths {
        show(agent, &path).await;
    }
    agent.recall();
}

/// Shows the model one file, as the tool for reading does.
async fn show(agent: &mut Agent, path: &str) {
    let Some(read) = agent.bench.toolbox.find("Read") else { return };
    let input = json!({"file_path": path});
    let judged = agent.bench.gate.rights.judge(read.tool().name(), read.facts(), &input, None);
    if !matches!(judged.decision, Decision::Allow(_)) {
        return;
    }
    agent.memory.watch("Read", &input);
    let call = Call { id: "attached".into(), place: judged.place, ..agent.bench.call.clone() };
    let head = format!("The prompt names the file {path}.");
    match read.tool().run(input, call).await {
        Ok(Done { content: ResultContent::Text(text), .. }) => {
            agent.conversation.brief(&reminder(&format!("{head} Read shows:\n{text}")));
        }
        Ok(Done { content: ResultContent::Blocks(blocks), .. }) => {
            agent.conversation.brief(&reminder(&format!("{head} Read shows:")));
            agent.conversation.brief_with(blocks);
        }
        Err(trouble) => {
            agent.conversation.brief(&reminder(&format!("{head} Read says: {}", trouble.reason())));
        }
    }
}

fn reminder(text: &str) -> String {
    format!("<system-reminder>\n{text}\n</system-reminder>")
}
