//! TaskList: shows the task list.

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::task_create::task_list_error;
use super::{
    Effects, Example, TASK_CREATE, TASK_LIST, TASK_UPDATE, Tool, ToolContext, ToolOutput, ToolResult,
};
use crate::deferred_tools::ToolLoading;
use crate::task_list::item::{TaskItem, TaskItemStatus};

pub(super) struct TaskListTool;

#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct Input {}

impl Tool for TaskListTool {
    type Input = Input;

    const NAME: &'static str = TASK_LIST;

    const LOADING: ToolLoading = ToolLoading::Deferred;

    const DESCRIPTION: &'static str = "Shows all tasks of the list in short: what they are about, how far they are, who does them, what they wait for.";

    fn effects(_: &Input) -> Effects {
        Effects::None
    }

    async fn run(&self, _: Input, call: ToolContext) -> ToolResult {
        let items = call.task_list.items().await.map_err(|fault| task_list_error(&fault))?;
        let done: HashSet<&str> = items
            .iter()
            .filter(|item| item.status == TaskItemStatus::Completed)
            .map(|item| item.id.as_str())
            .collect();
        let waits = |item: &TaskItem| -> Vec<String> {
            item.blocked_by.iter().filter(|id| !done.contains(id.as_str())).cloned().collect()
        };
        let tasks: Vec<Value> = items.iter().map(|item| task_json(item, &waits(item))).collect();
        let lines: Vec<String> = items.iter().map(|item| render_line(item, &waits(item))).collect();
        let text = if lines.is_empty() { "There are no tasks.".to_owned() } else { lines.join("\n") };
        Ok(ToolOutput::text(text, json!({"tasks": tasks})))
    }

    fn examples() -> Vec<Example> {
        vec![
            Example::new("a list can be empty", json!({})).expect_output(&["There are no tasks."]),
            Example::new("each task has a line", json!({}))
                .after_call(TASK_CREATE, json!({"subject": "Build", "description": ""}))
                .after_call(TASK_CREATE, json!({"subject": "Test", "description": ""}))
                .after_call(TASK_UPDATE, json!({"taskId": "2", "addBlockedBy": ["1"]}))
                .after_call(TASK_UPDATE, json!({"taskId": "1", "status": "in_progress", "owner": "ann"}))
                .expect_output(&["#1 [in_progress] Build (ann)\n#2 [pending] Test, waits for #1"]),
        ]
    }
}

fn task_json(item: &TaskItem, waits: &[String]) -> Value {
    let mut task = json!({"id": item.id, "subject": item.subject, "status": item.status, "blockedBy": waits});
    if let Some(owner) = &item.owner {
        task["owner"] = owner.as_str().into();
    }
    task
}

fn render_line(item: &TaskItem, waits: &[String]) -> String {
    let owner = item.owner.as_ref().map(|owner| format!(" ({owner})")).unwrap_or_default();
    let waits = if waits.is_empty() { String::new() } else { format!(", waits for #{}", waits.join(", #")) };
    format!("#{} [{}] {}{owner}{waits}", item.id, item.status.as_str(), item.subject)
}
