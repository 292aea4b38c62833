//! TaskStop: stops a background task.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::api::{Effects, Example, Tool, ToolContext, ToolError, ToolOutput, ToolResult};

pub(super) struct TaskStopTool;

#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct TaskStopInput {
    #[serde(alias = "shell_id", alias = "bash_id")]
    task_id: String,
}

impl Tool for TaskStopTool {
    type Input = TaskStopInput;

    const NAME: &'static str = "TaskStop";

    const ALIASES: &'static [&'static str] = &["KillShell", "KillBash"];

    const DESCRIPTION: &'static str = "Stops a background task and all its processes.";

    fn effects(_: &TaskStopInput) -> Effects {
        Effects::None
    }

    async fn run(&self, input: TaskStopInput, call: ToolContext) -> ToolResult {
        let stopped = call.tasks.stop(&input.task_id, call.task_scope()).await;
        let info = stopped.map_err(|error| ToolError::Rejected(format!("Nothing to stop: {error}.")))?.info;
        let message = format!("Stopped {} ({}).", info.task_id, info.description);
        let meta = json!({
            "message": message,
            "task_id": info.task_id,
            "task_type": info.kind.as_str(),
            "command": info.command,
        });
        Ok(ToolOutput::text(message, meta))
    }

    fn examples() -> Vec<Example> {
        vec![
            Example::new("an unknown id is rejected", json!({"task_id": "b0"}))
                .expect_error(&["b0", "known: none"]),
            Example::new("the error lists the known ids", json!({"task_id": "b0"}))
                .after_call("Bash", json!({"command": "sleep 60", "run_in_background": true}))
                .expect_error(&["known: b"]),
            Example::new("the older field name is accepted", json!({"shell_id": "b0"})).expect_error(&["b0"]),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::TestWorkspace;

    #[tokio::test]
    async fn a_task_is_stopped_once() {
        let fixture = TestWorkspace::new(&[]);
        let input = json!({"command": "sleep 60", "run_in_background": true, "description": "nap"});
        let started = fixture.run_tool("Bash", input).await.unwrap();
        let id = started.meta["backgroundTaskId"].as_str().unwrap();
        let output = fixture.run_tool("TaskStop", json!({"shell_id": id})).await.unwrap();
        let message = format!("Stopped {id} (nap).");
        let meta =
            json!({"message": message, "task_id": id, "task_type": "local_bash", "command": "sleep 60"});
        assert_eq!(output, ToolOutput::text(message, meta));
        let again = fixture.run_to_text("TaskStop", json!({"task_id": id})).await;
        assert_eq!(
            again,
            format!(
                "<tool_use_error>Nothing to stop: the background task {id} is not running: stopped.</tool_use_error>"
            )
        );
    }

    #[test]
    fn the_specification_is_small() {
        assert!(serde_json::to_string(&crate::api::AnyTool::spec(&TaskStopTool)).unwrap().len() <= 300);
    }
}
