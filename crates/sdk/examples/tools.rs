//! Gives the agent tools that are functions of this program: `cargo run --example tools`
#![expect(clippy::print_stdout, reason = "an example prints for the user who runs it")]

#[path = "shared/model.rs"]
mod model;

use std::sync::{Arc, Mutex};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use whimbrel::{Agent, Json, ToolServer, query, tool};

#[derive(Deserialize, JsonSchema)]
struct Note {
    /// What to remember, in a sentence.
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct NoInput {}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    // The functions share a list; any state of the program will do.
    let notes = Arc::new(Mutex::new(Vec::new()));
    let (kept, listed) = (Arc::clone(&notes), Arc::clone(&notes));
    let remember = tool("remember", "Writes a note down", move |note: Note| {
        let kept = Arc::clone(&kept);
        async move {
            if note.text.trim().is_empty() {
                return Err("There is nothing to remember.");
            }
            kept.lock().map_err(|_| "The notes are lost.")?.push(note.text);
            Ok("Remembered.")
        }
    });
    let recall = tool("recall", "Lists all notes", move |_: NoInput| {
        let notes = listed.lock().map(|notes| notes.clone()).unwrap_or_default();
        async move { Json(notes) }
    });
    let server = ToolServer::new("notes").tool(remember).tool(recall.read_only());
    let agent = Agent::new().tool_server(server).allowed_tools(["mcp__notes"]);
    let call = json!([{"type": "tool_use", "name": "mcp__notes__remember", "input": {"text": "The key is under the mat."}}]);
    let agent = model::real_or_scripted(agent, json!([call, "I wrote it down."]))?;
    println!("{}", query("Remember that the key is under the mat.", &agent).await?);
    println!("notes: {:?}", notes.lock().map(|notes| notes.clone()).unwrap_or_default());
    Ok(())
}
