//! TaskOutput: what a background task has printed.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{Call, Done, Example, Output, Tool, Touches, Trouble, lenient};
use crate::tasks::{TaskReport, TaskState};

/// The tool.
pub(super) struct TaskOutput;

#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct Input {
    #[schemars(with = "String")]
    task_id: Option<String>,
    // What the older BashOutput has in its place. That one never waits by itself.
    #[schemars(skip)]
    #[serde(alias = "shell_id")]
    bash_id: Option<String>,
    /// Wait for the end; default true.
    #[schemars(with = "Option<bool>")]
    #[serde(default, deserialize_with = "lenient::maybe_flag")]
    block: Option<bool>,
    /// Longest wait in ms; default 30000.
    #[serde(default, deserialize_with = "lenient::count")]
    timeout: Option<usize>,
}

const DEFAULT_WAIT: usize = 30_000;
const LONGEST_WAIT: usize = 600_000;

impl Tool for TaskOutput {
    type Input = Input;

    const NAME: &'static str = "TaskOutput";

    const ALIASES: &'static [&'static str] = &["BashOutput"];

    const DESCRIPTION: &'static str = "Waits for a background task and returns the last part of its output.";

    fn touches(_: &Input) -> Touches {
        Touches::Nothing
    }

    async fn run(&self, input: Input, call: Call) -> Output {
        let block = input.block.unwrap_or(input.bash_id.is_none());
        let Some(task) = input.task_id.or(input.bash_id) else {
            return Err(Trouble::Refused("InputValidationError: `task_id` is missing.".into()));
        };
        let longest = input.timeout.unwrap_or(DEFAULT_WAIT).min(LONGEST_WAIT);
        let wait = Duration::from_millis(if block { longest as u64 } else { 0 });
        let output = call.tasks.output(&task, call.reach(), wait);
        let look = call.cancel.run_until_cancelled(output).await;
        let report =
            look.ok_or_else(|| Trouble::Failed("Waiting was interrupted; the task goes on.".into()))?;
        let report = report.map_err(|none| Trouble::Refused(format!("Wrong task_id: {none}.")))?;
        Ok(Done::text(text(&report), meta(&report, block)))
    }

    fn examples() -> Vec<Example> {
        vec![
            Example::new("an unknown id is refused", json!({"task_id": "b0"})).fails(&["b0", "known: none"]),
            Example::new("the ids that there are, are told", json!({"task_id": "b0"}))
                .after("Bash", json!({"command": "true", "run_in_background": true}))
                .fails(&["known: b"]),
            Example::new(
                "the older name of the field is understood",
                json!({"bash_id": "b0", "block": "false"}),
            )
            .fails(&["b0"]),
            Example::new("a task must be named", json!({})).fails(&["`task_id` is missing"]),
        ]
    }
}

fn text(report: &TaskReport) -> String {
    let TaskReport { task, output, left_out } = report;
    let code = task.state.exit_code().map(|code| format!(", exit code {code}")).unwrap_or_default();
    let before = match left_out {
        0 => String::new(),
        bytes => format!(" {bytes} bytes before this are in {}.", task.facts.output_file.display()),
    };
    let output = output.trim_end();
    let output = if output.is_empty() { "(no output)" } else { output };
    format!("{}: {}{code}.{before}\n{output}", task.facts.task_id, task.state.word())
}

fn meta(report: &TaskReport, block: bool) -> serde_json::Value {
    let TaskReport { task, output, .. } = report;
    let retrieval = match task.state {
        TaskState::Ended { .. } => "success",
        TaskState::Running if block => "timeout",
        TaskState::Running => "not_ready",
    };
    json!({
        "retrieval_status": retrieval,
        "task": {
            "task_id": task.facts.task_id,
            "task_type": task.facts.kind.word(),
            "status": task.state.word(),
            "description": task.facts.description,
            "output": output,
            "exitCode": task.state.exit_code(),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::super::example::Bench;
    use super::*;

    async fn background(bench: &Bench, command: &str) -> String {
        let input = json!({"command": command, "run_in_background": true, "description": "work"});
        let meta = bench.call("Bash", input).await.unwrap().meta;
        assert_eq!(meta["stdout"], "");
        meta["backgroundTaskId"].as_str().unwrap().to_owned()
    }

    #[tokio::test]
    async fn the_end_is_waited_for() {
        let bench = Bench::new(&[]);
        let id = background(&bench, "echo one; sleep 0.1; echo two; exit 4").await;
        let done =
            bench.call("TaskOutput", json!({"task_id": id, "block": true, "timeout": 20_000})).await.unwrap();
        let meta = json!({"retrieval_status": "success", "task": {
            "task_id": id, "task_type": "local_bash", "status": "failed", "description": "work",
            "output": "one\ntwo\n", "exitCode": 4,
        }});
        assert_eq!(done, Done::text(format!("{id}: failed, exit code 4.\none\ntwo"), meta));
    }

    #[tokio::test]
    async fn a_wait_can_be_short() {
        let bench = Bench::new(&[]);
        let id = background(&bench, "sleep 60").await;
        for (input, status) in [
            (json!({"task_id": id, "block": false}), "not_ready"),
            (json!({"task_id": id, "timeout": 10}), "timeout"),
            (json!({"bash_id": id}), "not_ready"),
            (json!({"bash_id": id, "block": true, "timeout": 10}), "timeout"),
        ] {
            let done = bench.call("TaskOutput", input).await.unwrap();
            assert_eq!(done.meta["retrieval_status"], status);
            assert_eq!(done.meta["task"]["exitCode"], serde_json::Value::Null);
            assert_eq!(done, Done::text(format!("{id}: running.\n(no output)"), done.meta.clone()));
        }
    }

    #[tokio::test]
    async fn long_output_is_cut_at_its_beginning() {
        let bench = Bench::new(&[]);
        let id = background(&bench, "seq 1 20000").await;
        let said = bench.says("TaskOutput", json!({"task_id": id})).await;
        assert!(said.len() < 31_000 && said.ends_with("\n20000"), "{}", said.len());
        assert!(said.contains("bytes before this are in"));
    }

    #[test]
    fn the_model_reads_little() {
        assert!(serde_json::to_string(&super::super::AnyTool::spec(&TaskOutput)).unwrap().len() <= 400);
    }
}
