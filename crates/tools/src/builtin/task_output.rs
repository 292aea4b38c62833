//! TaskOutput: returns the output of a background task.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::api::{Effects, Example, Tool, ToolContext, ToolError, ToolOutput, ToolResult, lenient};
use crate::tasks::{TaskOutputReport, TaskState};

pub(super) struct TaskOutputTool;

#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct TaskOutputInput {
    #[schemars(with = "String")]
    task_id: Option<String>,
    // Field of the older BashOutput, which does not wait by default.
    #[schemars(skip)]
    #[serde(alias = "shell_id")]
    bash_id: Option<String>,
    /// Wait until it ends; default true.
    #[schemars(with = "Option<bool>")]
    #[serde(default, deserialize_with = "lenient::maybe_flag")]
    block: Option<bool>,
    /// Maximum wait in ms; default 30000.
    #[serde(default, deserialize_with = "lenient::count")]
    timeout: Option<usize>,
}

const DEFAULT_WAIT_MS: usize = 30_000;
const MAX_WAIT_MS: usize = 600_000;

impl Tool for TaskOutputTool {
    type Input = TaskOutputInput;

    const NAME: &'static str = "TaskOutput";

    const ALIASES: &'static [&'static str] = &["BashOutput"];

    const DESCRIPTION: &'static str = "Waits for a background task and returns the end of its output.";

    fn effects(_: &TaskOutputInput) -> Effects {
        Effects::None
    }

    async fn run(&self, input: TaskOutputInput, call: ToolContext) -> ToolResult {
        let block = input.block.unwrap_or(input.bash_id.is_none());
        let Some(task) = input.task_id.or(input.bash_id) else {
            return Err(ToolError::Rejected("InputValidationError: `task_id` is missing.".into()));
        };
        let max_wait = input.timeout.unwrap_or(DEFAULT_WAIT_MS).min(MAX_WAIT_MS);
        let wait = Duration::from_millis(if block { max_wait as u64 } else { 0 });
        let output = call.tasks.read_output(&task, call.task_scope(), wait);
        let result = call.cancel.run_until_cancelled(output).await;
        let report = result
            .ok_or_else(|| ToolError::Failed("The wait was interrupted; the task keeps running.".into()))?;
        let report = report.map_err(|error| ToolError::Rejected(format!("Invalid task_id: {error}.")))?;
        Ok(ToolOutput::text(render_report(&report), report_meta(&report, block)))
    }

    fn examples() -> Vec<Example> {
        vec![
            Example::new("an unknown id is rejected", json!({"task_id": "b0"}))
                .expect_error(&["b0", "known: none"]),
            Example::new("the error lists the known ids", json!({"task_id": "b0"}))
                .after_call("Bash", json!({"command": "true", "run_in_background": true}))
                .expect_error(&["known: b"]),
            Example::new("the older field name is accepted", json!({"bash_id": "b0", "block": "false"}))
                .expect_error(&["b0"]),
            Example::new("the id is required", json!({})).expect_error(&["`task_id` is missing"]),
        ]
    }
}

fn render_report(report: &TaskOutputReport) -> String {
    let TaskOutputReport { task, output, omitted_bytes } = report;
    let code = task.state.exit_code().map(|code| format!(", exit code {code}")).unwrap_or_default();
    let earlier_note = match omitted_bytes {
        0 => String::new(),
        bytes => format!(" {bytes} earlier bytes are in {}.", task.info.output_file.display()),
    };
    let output = output.trim_end();
    let output = if output.is_empty() { "(no output)" } else { output };
    format!("{}: {}{code}.{earlier_note}\n{output}", task.info.task_id, task.state.as_str())
}

fn report_meta(report: &TaskOutputReport, block: bool) -> serde_json::Value {
    let TaskOutputReport { task, output, .. } = report;
    let retrieval = match task.state {
        TaskState::Ended { .. } => "success",
        TaskState::Running if block => "timeout",
        TaskState::Running => "not_ready",
    };
    json!({
        "retrieval_status": retrieval,
        "task": {
            "task_id": task.info.task_id,
            "task_type": task.info.kind.as_str(),
            "status": task.state.as_str(),
            "description": task.info.description,
            "output": output,
            "exitCode": task.state.exit_code(),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::TestWorkspace;

    async fn start_background(fixture: &TestWorkspace, command: &str) -> String {
        let input = json!({"command": command, "run_in_background": true, "description": "work"});
        let meta = fixture.run_tool("Bash", input).await.unwrap().meta;
        assert_eq!(meta["stdout"], "");
        meta["backgroundTaskId"].as_str().unwrap().to_owned()
    }

    #[tokio::test]
    async fn output_is_returned_after_the_end() {
        let fixture = TestWorkspace::new(&[]);
        let id = start_background(&fixture, "echo one; sleep 0.1; echo two; exit 4").await;
        let output = fixture
            .run_tool("TaskOutput", json!({"task_id": id, "block": true, "timeout": 20_000}))
            .await
            .unwrap();
        let meta = json!({"retrieval_status": "success", "task": {
            "task_id": id, "task_type": "local_bash", "status": "failed", "description": "work",
            "output": "one\ntwo\n", "exitCode": 4,
        }});
        assert_eq!(output, ToolOutput::text(format!("{id}: failed, exit code 4.\none\ntwo"), meta));
    }

    #[tokio::test]
    async fn waiting_can_be_limited() {
        let fixture = TestWorkspace::new(&[]);
        let id = start_background(&fixture, "sleep 60").await;
        for (input, status) in [
            (json!({"task_id": id, "block": false}), "not_ready"),
            (json!({"task_id": id, "timeout": 10}), "timeout"),
            (json!({"bash_id": id}), "not_ready"),
            (json!({"bash_id": id, "block": true, "timeout": 10}), "timeout"),
        ] {
            let output = fixture.run_tool("TaskOutput", input).await.unwrap();
            assert_eq!(output.meta["retrieval_status"], status);
            assert_eq!(output.meta["task"]["exitCode"], serde_json::Value::Null);
            assert_eq!(output, ToolOutput::text(format!("{id}: running.\n(no output)"), output.meta.clone()));
        }
    }

    #[tokio::test]
    async fn only_the_tail_of_long_output_is_returned() {
        let fixture = TestWorkspace::new(&[]);
        let id = start_background(&fixture, "seq 1 20000").await;
        let text = fixture.run_to_text("TaskOutput", json!({"task_id": id})).await;
        assert!(text.len() < 31_000 && text.ends_with("\n20000"), "{}", text.len());
        assert!(text.contains("earlier bytes are in"));
    }

    #[test]
    fn the_specification_is_small() {
        assert!(serde_json::to_string(&crate::api::AnyTool::spec(&TaskOutputTool)).unwrap().len() <= 400);
    }
}
