//! An agent that works on files: it decides on each change, runs commands with a time limit, records what was done, and
//! shares its tools with a subagent: `cargo run --example coding_agent`
#![expect(clippy::print_stdout, reason = "an example prints for the user who runs it")]

#[path = "shared/model.rs"]
mod model;

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use whimbrel::wire::hook::PostToolUse;
use whimbrel::{Agent, Event, Hook, HookAnswer, PermissionRequest, PermissionResult, Subagent, query, tools};

/// The issues that the agent finds.
#[derive(Default)]
struct Tracker {
    issues: Mutex<Vec<String>>,
}

#[tools(name = "tracker")]
impl Tracker {
    /// Files an issue and returns its number.
    #[tool]
    async fn file_issue(
        &self,
        /// One line.
        title: String,
        severity: Severity,
    ) -> Result<String, &'static str> {
        let mut issues = self.issues.lock().map_err(|_| "the tracker has failed")?;
        issues.push(format!("{title} ({severity:?})"));
        Ok(format!("#{}", issues.len()))
    }
}

/// The model reads the list of values, also after it has used another one.
#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Severity {
    Low,
    High,
}

/// Allows changes, and gives every command a time limit of ten seconds.
fn decide(request: &PermissionRequest) -> PermissionResult {
    match request.tool_name.as_str() {
        "Bash" => {
            let mut input = request.input.clone();
            input.insert("timeout".into(), 10_000.into());
            PermissionResult::allow().with_input(input)
        }
        "Write" | "Edit" => PermissionResult::allow(),
        other => PermissionResult::deny(format!("{other} is not allowed here.")),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let tracker = Arc::new(Tracker::default());
    let agent = Agent::new()
        .append_system_prompt("File an issue for everything that you leave open.")
        .tool_server(tracker.server())
        .allow_tool("mcp__tracker")
        .subagent("reviewer", Subagent::new("Reviews code", "You look for defects, and file them."))
        .can_use_tool(|request| async move { decide(&request) })
        .hook(Hook::user_prompt_submit(|_, context| async move {
            HookAnswer::context(format!("The project is in {}.", context.cwd().display()))
        }))
        .hook(Hook::post_tool_use(|call: PostToolUse, _| async move {
            println!("done: {}", call.tool_name);
            HookAnswer::none()
        }));
    let agent = model::real_or_scripted(agent, script())?;
    let mut events =
        query("Write a shell script that greets, run it, and have it reviewed.", &agent).events();
    while let Some(event) = events.next().await {
        match event? {
            Event::Text(text) => print!("{text}"),
            Event::ToolStarted(call) => println!("[{} {}]", call.name, call.input),
            Event::Done(answer) => println!("\n${:.4}", answer.session_cost_usd()),
            _ => {}
        }
    }
    println!("issues: {:?}", tracker.issues.lock().map(|issues| issues.clone()).unwrap_or_default());
    Ok(())
}

/// What the scripted model does, in the order of its calls.
fn script() -> Value {
    let call = |tool: &str, input: Value| json!([{"type": "tool_use", "name": tool, "input": input}]);
    let issue = |severity: &str| {
        call("mcp__tracker__file_issue", json!({"title": "No greeting for nobody", "severity": severity}))
    };
    json!([
        call("Write", json!({"file_path": "greet.sh", "content": "echo \"Hello, $1.\"\n"})),
        call("Bash", json!({"command": "sh greet.sh Ann", "description": "Greets Ann"})),
        call(
            "Agent",
            json!({"subagent_type": "reviewer", "description": "Review", "prompt": "Review greet.sh."})
        ),
        issue("urgent"),
        issue("low"),
        "I filed what I found.",
        "The script greets; one issue is open.",
    ])
}
