//! Monitor: runs a command in the background and notifies the agent of each line it prints.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::bash;
use crate::api::ToolLoading;
use crate::api::{Effects, Example, Tool, ToolContext, ToolError, ToolOutput, ToolResult, lenient};

/// Name of the tool.
pub const MONITOR: &str = "Monitor";

pub(super) struct MonitorTool;

#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct MonitorInput {
    /// What is monitored, in a few words.
    description: String,
    /// Milliseconds until it is stopped; maximum 3600000.
    #[serde(default, deserialize_with = "lenient::count")]
    timeout_ms: Option<usize>,
    /// Prints one line per event and nothing else, e.g. `tail -f log | grep --line-buffered ERROR`
    #[serde(default)]
    command: Option<String>,
    /// Not supported.
    #[serde(default)]
    ws: Option<Value>,
}

/// Default and maximum run time in milliseconds.
const DEFAULT_TIMEOUT_MS: u64 = 300_000;
const MAX_TIMEOUT_MS: u64 = 3_600_000;

impl Tool for MonitorTool {
    type Input = MonitorInput;

    const NAME: &'static str = MONITOR;

    const LOADING: ToolLoading = ToolLoading::Deferred;

    const DESCRIPTION: &'static str = "Runs a command in the background and notifies you of each line it prints. Make \
        it print only what needs your attention. TaskStop ends it.";

    fn effects(_: &MonitorInput) -> Effects {
        Effects::RunsProgram
    }

    async fn run(&self, input: MonitorInput, call: ToolContext) -> ToolResult {
        if input.ws.is_some() {
            return Err(ToolError::Rejected(
                "Sockets cannot be monitored. Monitor the output of a command instead.".into(),
            ));
        }
        let command = input.command.unwrap_or_default();
        bash::check_command(&command)?;
        let requested = input
            .timeout_ms
            .filter(|requested| *requested > 0)
            .map_or(DEFAULT_TIMEOUT_MS, |requested| requested as u64);
        let limit = requested.min(MAX_TIMEOUT_MS);
        let mut spec = bash::command_spec(&command, &call.workspace);
        let confinement = bash::Confinement::for_command(&command, false, &call);
        let command = confinement.launch(&mut spec, &call).await?;
        let start = call.new_task(input.description);
        let started = call.tasks.start_monitor(
            command,
            call.workspace.output_dir(),
            start,
            Duration::from_millis(limit),
        );
        let task = started.map_err(|error| bash::spawn_failure(&error, &call.workspace))?;
        let text = format!(
            "Monitoring as task {} for at most {} seconds. You are notified of each line; the complete output goes to \
             {}.",
            task.task_id,
            limit / 1000,
            task.output_file.display()
        );
        Ok(ToolOutput::text(text, json!({"taskId": task.task_id, "timeoutMs": limit, "persistent": false})))
    }

    fn examples() -> Vec<Example> {
        vec![
            Example::new(
                "a command is monitored",
                json!({"description": "errors", "command": "sleep 60", "timeout_ms": 5000}),
            )
            .expect_output(&["Monitoring as task b", "for at most 5 seconds"]),
            Example::new("an empty command is rejected", json!({"description": "errors"}))
                .expect_error(&["command is empty"]),
            Example::new("sockets are rejected", json!({"description": "x", "ws": {"url": "ws://x"}}))
                .expect_error(&["Sockets cannot be monitored"]),
        ]
    }
}
