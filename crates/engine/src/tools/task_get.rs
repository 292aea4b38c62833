//! TaskGet: shows one task of the list.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::task_create::task_list_error;
use super::{Effects, Example, TASK_CREATE, TASK_GET, Tool, ToolContext, ToolOutput, ToolResult};
use crate::deferred_tools::ToolLoading;
use crate::task_list::item::TaskItem;

pub(super) struct TaskGetTool;

#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
#[serde(rename_all = "camelCase")]
pub(super) struct Input {
    task_id: String,
}

impl Tool for TaskGetTool {
    type Input = Input;

    const NAME: &'static str = TASK_GET;

    const LOADING: ToolLoading = ToolLoading::Deferred;

    const DESCRIPTION: &'static str = "Shows a task of the list with its description.";

    fn effects(_: &Input) -> Effects {
        Effects::None
    }

    async fn run(&self, input: Input, call: ToolContext) -> ToolResult {
        let item = call.task_list.get(&input.task_id).await.map_err(|fault| task_list_error(&fault))?;
        let Some(item) = item else {
            return Ok(ToolOutput::text(
                format!("There is no task #{}.", input.task_id),
                json!({"task": null}),
            ));
        };
        Ok(ToolOutput::text(render_task(&item), json!({"task": task_json(&item)})))
    }

    fn examples() -> Vec<Example> {
        vec![
            Example::new("a task is shown whole", json!({"taskId": "1"}))
                .after_call(TASK_CREATE, json!({"subject": "Test", "description": "Run all tests."}))
                .expect_output(&["#1 Test", "pending", "Run all tests."]),
            Example::new("one that is not there is said", json!({"taskId": "7"}))
                .expect_output(&["no task #7"]),
        ]
    }
}

fn task_json(item: &TaskItem) -> Value {
    json!({
        "id": item.id,
        "subject": item.subject,
        "description": item.description,
        "status": item.status,
        "blocks": item.blocks,
        "blockedBy": item.blocked_by,
    })
}

fn render_task(item: &TaskItem) -> String {
    let mut lines =
        vec![format!("#{} {}", item.id, item.subject), format!("Status: {}", item.status.as_str())];
    lines.extend(item.owner.as_ref().map(|owner| format!("Owner: {owner}")));
    let list = |ids: &[String]| ids.iter().map(|id| format!("#{id}")).collect::<Vec<_>>().join(", ");
    if !item.blocked_by.is_empty() {
        lines.push(format!("Waits for: {}", list(&item.blocked_by)));
    }
    if !item.blocks.is_empty() {
        lines.push(format!("Is waited for by: {}", list(&item.blocks)));
    }
    if !item.metadata.is_empty() {
        lines.push(format!("Metadata: {}", Value::Object(item.metadata.clone())));
    }
    lines.push(item.description.clone());
    lines.join("\n")
}
