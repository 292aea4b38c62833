//! A program with an agent, and the tests of that agent: a scripted model calls its tools, and the tests assert what
//! happened. `cargo test --example tested_agent --features sdk`
#![expect(clippy::print_stdout, reason = "an example prints for the user who runs it")]

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::json;
use whimbrel::{Agent, Scripted, ToolServer, query, tool_with_state};

#[derive(Default)]
struct Notes {
    texts: Mutex<Vec<String>>,
}

impl Notes {
    fn texts(&self) -> Vec<String> {
        self.texts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The agent of the program: it keeps notes. No rule allows it to run commands.
fn notes_agent(notes: &Arc<Notes>) -> Agent {
    let remember = tool_with_state(
        Arc::clone(notes),
        "remember",
        "Keeps a text for later",
        |notes: Arc<Notes>, text: String| async move {
            let mut texts = notes.texts.lock().unwrap_or_else(PoisonError::into_inner);
            texts.push(text);
            format!("That makes {}.", texts.len())
        },
    );
    Agent::new()
        .cwd(std::env::temp_dir())
        .persist_session(false)
        .tool_server(ToolServer::new("notes").tool(remember))
        .allow_tool("mcp__notes")
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let notes = Arc::default();
    let call = json!([{"type": "tool_use", "name": "mcp__notes__remember", "input": {"value": "milk"}}]);
    let agent = notes_agent(&notes).script(Scripted::replies(json!([call, "Noted."]))?);
    println!("{}\nnotes: {:?}", query("Remember the milk.", &agent).await?, notes.texts());
    Ok(())
}

#[cfg(test)]
mod tests {
    use whimbrel_testkit::agent_test::AgentTest;

    use super::*;

    #[tokio::test]
    async fn agent_remembers() {
        let notes = Arc::default();
        let call = json!([{"type": "tool_use", "name": "mcp__notes__remember", "input": {"value": "milk"}}]);
        let mut test = AgentTest::open(&notes_agent(&notes), json!([call, "Noted."])).await.unwrap();
        let turn = test.ask("Remember the milk.").await;
        turn.says("Noted.").called("mcp__notes__remember", 1).denied_nothing().warned_of_nothing();
        assert_eq!(notes.texts(), ["milk"]);
    }

    #[tokio::test]
    async fn agent_runs_no_commands() {
        let call = json!([{"type": "tool_use", "name": "Bash", "input": {"command": "touch made"}}]);
        let mut test =
            AgentTest::open(&notes_agent(&Arc::default()), json!([call, "I may not."])).await.unwrap();
        test.ask("Make a file.").await.says("I may not.").denied("Bash");
    }

    #[tokio::test]
    async fn misspelt_rule_is_a_warning() {
        let agent = notes_agent(&Arc::default()).deny_tool("Bahs");
        let mut test = AgentTest::open(&agent, json!(["Hello."])).await.unwrap();
        test.ask("Hello.").await.warned_of("Bahs");
    }
}
