//! Monitor: runs a command in the background and wakes the agent with each line that it prints.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Call, Done, Example, Output, Tool, Touches, Trouble, bash, lenient};
use crate::on_demand::Offer;
use crate::tasks::Start;

/// The tool.
pub(super) struct Monitor;

#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct Input {
    /// What is watched, in a few words.
    description: String,
    /// Milliseconds after which it is ended; at most 3600000.
    #[serde(default, deserialize_with = "lenient::count")]
    timeout_ms: Option<usize>,
    /// Prints a line for each event, and nothing else: `tail -f log | grep --line-buffered ERROR`
    #[serde(default)]
    command: Option<String>,
    /// Sockets cannot be watched here.
    #[serde(default)]
    ws: Option<Value>,
}

/// How long a monitor runs if nobody says so, and at most, in milliseconds.
const USUAL: u64 = 300_000;
const LONGEST: u64 = 3_600_000;

impl Tool for Monitor {
    type Input = Input;

    const NAME: &'static str = "Monitor";

    const OFFER: Offer = Offer::OnDemand;

    const DESCRIPTION: &'static str = "Runs a command in the background and tells you each line that it prints, while you do something else or wait. Let it print what needs your attention only. TaskStop ends it.";

    fn touches(_: &Input) -> Touches {
        Touches::Runs
    }

    async fn run(&self, input: Input, call: Call) -> Output {
        if input.ws.is_some() {
            return Err(Trouble::Refused(
                "Sockets cannot be watched by this version. Watch the output of a command.".into(),
            ));
        }
        let command = input.command.unwrap_or_default();
        bash::check(&command)?;
        let asked = input.timeout_ms.filter(|asked| *asked > 0).map_or(USUAL, |asked| asked as u64);
        let limit = asked.min(LONGEST);
        let order = bash::order(&command, &call.workspace);
        let (tool_use_id, owner) = (call.id.clone(), call.agent_id.clone());
        let start = Start { tool_use_id, description: input.description, owner };
        let started =
            call.tasks.start_monitor(&order, call.workspace.spill(), start, Duration::from_millis(limit));
        let task = started.map_err(|fault| bash::not_started(&fault, &call.workspace))?;
        let text = format!(
            "Watching as {}, for {} seconds at most. You are told what it prints; all of it goes to {}.",
            task.task_id,
            limit / 1000,
            task.output_file.display()
        );
        Ok(Done::text(text, json!({"taskId": task.task_id, "timeoutMs": limit, "persistent": false})))
    }

    fn examples() -> Vec<Example> {
        vec![
            Example::new(
                "a command is watched",
                json!({"description": "errors", "command": "sleep 60", "timeout_ms": 5000}),
            )
            .says(&["Watching as b", "for 5 seconds"]),
            Example::new("there must be one", json!({"description": "errors"})).fails(&["no command"]),
            Example::new("sockets are not watched", json!({"description": "x", "ws": {"url": "ws://x"}}))
                .fails(&["Sockets cannot be watched"]),
        ]
    }
}
