//! Decides on every tool call that changes something: `cargo run --example permission`
//! Read-only commands are allowed, all others are denied with a reason that the model reads.
#![expect(clippy::print_stdout, reason = "an example prints for the user who runs it")]

#[path = "shared/model.rs"]
mod model;

use serde_json::json;
use whimbrel::{Agent, CanUseTool, PermissionResult, query};

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let run = |command: &str| json!([{"type": "tool_use", "name": "Bash", "input": {"command": command}}]);
    let agent = Agent::new().can_use_tool(|request| async move { decide(&request) });
    let agent = model::real_or_scripted(
        agent,
        json!([run("ls"), run("rm -rf build"), "I looked, and left the rest alone."]),
    )?;
    let answer = query("Tidy up this folder.", &agent).await?;
    println!("{answer}");
    for denial in answer.denials() {
        println!("refused: {} {}", denial.tool_name, denial.tool_input);
    }
    Ok(())
}

fn decide(request: &CanUseTool) -> PermissionResult {
    let command = request.input.get("command").and_then(|command| command.as_str()).unwrap_or_default();
    match command.split_whitespace().next() {
        Some("ls" | "cat" | "pwd") => PermissionResult::allow(),
        _ => PermissionResult::deny("Only looking is allowed here; say what you would do instead."),
    }
}
