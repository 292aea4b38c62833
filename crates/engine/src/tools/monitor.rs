//! Monitor: runs a command in the background and notifies the agent of each line it prints.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Effects, Example, Tool, ToolContext, ToolError, ToolOutput, ToolResult, bash, lenient};
use crate::deferred_tools::ToolLoading;

pub(super) struct MonitorTool;

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

/// Default and maximum run time in milliseconds.
const DEFAULT_TIMEOUT_MS: u64 = 300_000;
const MAX_TIMEOUT_MS: u64 = 3_600_000;

impl Tool for MonitorTool {
    type Input = Input;

    const NAME: &'static str = "Monitor";

    const LOADING: ToolLoading = ToolLoading::Deferred;

    const DESCRIPTION: &'static str = "Runs a command in the background and tells you each line that it prints, while you do something else or wait. Let it print what needs your attention only. TaskStop ends it.";

    fn effects(_: &Input) -> Effects {
        Effects::RunsProgram
    }

    async fn run(&self, input: Input, call: ToolContext) -> ToolResult {
        if input.ws.is_some() {
            return Err(ToolError::Rejected(
                "Sockets cannot be watched by this version. Watch the output of a command.".into(),
            ));
        }
        let command = input.command.unwrap_or_default();
        bash::check_command(&command)?;
        let asked =
            input.timeout_ms.filter(|asked| *asked > 0).map_or(DEFAULT_TIMEOUT_MS, |asked| asked as u64);
        let limit = asked.min(MAX_TIMEOUT_MS);
        let order = bash::command_spec(&command, &call.workspace);
        let start = call.new_task(input.description);
        let started = call.tasks.start_monitor(
            &order,
            call.workspace.output_dir(),
            start,
            Duration::from_millis(limit),
        );
        let task = started.map_err(|fault| bash::spawn_failure(&fault, &call.workspace))?;
        let text = format!(
            "Watching as {}, for {} seconds at most. You are told what it prints; all of it goes to {}.",
            task.task_id,
            limit / 1000,
            task.output_file.display()
        );
        Ok(ToolOutput::text(text, json!({"taskId": task.task_id, "timeoutMs": limit, "persistent": false})))
    }

    fn examples() -> Vec<Example> {
        vec![
            Example::new(
                "a command is watched",
                json!({"description": "errors", "command": "sleep 60", "timeout_ms": 5000}),
            )
            .expect_output(&["Watching as b", "for 5 seconds"]),
            Example::new("there must be one", json!({"description": "errors"})).expect_error(&["no command"]),
            Example::new("sockets are not watched", json!({"description": "x", "ws": {"url": "ws://x"}}))
                .expect_error(&["Sockets cannot be watched"]),
        ]
    }
}
