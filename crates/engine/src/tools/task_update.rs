//! TaskUpdate: changes a task of the list.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use whimbrel_wire::hook::{HookEvent, TaskCompleted};

use super::task_create::task_list_error;
use super::{
    Effects, Example, TASK_CREATE, TASK_UPDATE, Tool, ToolContext, ToolError, ToolOutput, ToolResult,
};
use crate::deferred_tools::ToolLoading;
use crate::hooks::{HookInputBuilder, join_reasons};
use crate::task_list::TaskListError;
use crate::task_list::item::{TaskItem, TaskItemStatus};
use crate::task_list::state::TaskItemUpdate;

pub(super) struct TaskUpdateTool;

#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
#[serde(rename_all = "camelCase")]
pub(super) struct Input {
    task_id: String,
    #[serde(default)]
    subject: Option<String>,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    active_form: Option<String>,
    #[serde(default)]
    status: Option<RequestedStatus>,
    /// Tasks that wait for it.
    #[serde(default)]
    add_blocks: Vec<String>,
    /// Tasks that it waits for.
    #[serde(default)]
    add_blocked_by: Vec<String>,
    /// The agent that does it.
    #[serde(default)]
    owner: Option<String>,
    /// Null takes a field away.
    #[serde(default)]
    metadata: Map<String, Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum RequestedStatus {
    Pending,
    InProgress,
    Completed,
    Deleted,
}

impl Tool for TaskUpdateTool {
    type Input = Input;

    const NAME: &'static str = TASK_UPDATE;

    const LOADING: ToolLoading = ToolLoading::Deferred;

    const DESCRIPTION: &'static str = "Changes a task of the list. Mark it in_progress before you begin and completed when it is really done; deleted takes it off the list.";

    fn effects(_: &Input) -> Effects {
        Effects::OtherAgents
    }

    async fn run(&self, input: Input, call: ToolContext) -> ToolResult {
        let id = input.task_id.clone();
        let Some(item) = call.task_list.get(&id).await.map_err(|fault| task_list_error(&fault))? else {
            return Ok(unknown_task_result(&id));
        };
        if input.status == Some(RequestedStatus::Deleted) {
            call.task_list.remove(&item.id).await.map_err(|fault| task_list_error(&fault))?;
            let change = json!({"from": item.status, "to": "deleted"});
            let meta = json!({"success": true, "taskId": item.id, "updatedFields": ["deleted"], "statusChange": change});
            return Ok(ToolOutput::text(format!("Task #{} is off the list.", item.id), meta));
        }
        if input.status == Some(RequestedStatus::Completed) && item.status != TaskItemStatus::Completed {
            run_completed_hooks(&call, &item).await?;
        }
        match call.task_list.update(&item.id, to_update(input)).await {
            Ok(changed) => {
                let fields = changed.fields;
                let mut meta = json!({"success": true, "taskId": item.id, "updatedFields": fields});
                if changed.previous_status != changed.item.status {
                    meta["statusChange"] =
                        json!({"from": changed.previous_status, "to": changed.item.status});
                }
                let what = if fields.is_empty() { "nothing".to_owned() } else { fields.join(", ") };
                Ok(ToolOutput::text(format!("Task #{}: changed {what}.", item.id), meta))
            }
            Err(TaskListError::Rejected(refusal)) => Ok(unchanged_result(&item.id, &refusal.to_string())),
            Err(fault) => Err(task_list_error(&fault)),
        }
    }

    fn examples() -> Vec<Example> {
        let one = |shows, input| {
            Example::new(shows, input).after_call(TASK_CREATE, json!({"subject": "Test", "description": ""}))
        };
        vec![
            one("a task makes progress", json!({"taskId": "1", "status": "in_progress"}))
                .expect_output(&["#1: changed status"]),
            one("it can be taken off the list", json!({"taskId": "#1", "status": "deleted"}))
                .expect_output(&["off the list"]),
            one("it cannot wait for itself", json!({"taskId": "1", "addBlockedBy": ["1"]}))
                .expect_output(&["Nothing was changed", "wait for itself"]),
            one("what somebody does is theirs", json!({"taskId": "1", "owner": "bob"}))
                .after_call(TASK_UPDATE, json!({"taskId": "1", "owner": "ann", "status": "in_progress"}))
                .expect_output(&["Nothing was changed", "ann's"]),
            Example::new("a task that is not there is said", json!({"taskId": "3"}))
                .expect_output(&["no task #3"]),
        ]
    }
}

fn to_update(input: Input) -> TaskItemUpdate {
    let status = input.status.and_then(|status| match status {
        RequestedStatus::Pending => Some(TaskItemStatus::Pending),
        RequestedStatus::InProgress => Some(TaskItemStatus::InProgress),
        RequestedStatus::Completed => Some(TaskItemStatus::Completed),
        RequestedStatus::Deleted => None,
    });
    TaskItemUpdate {
        subject: input.subject,
        description: input.description,
        active_form: input.active_form,
        status,
        owner: input.owner,
        add_blocks: input.add_blocks,
        add_blocked_by: input.add_blocked_by,
        metadata: input.metadata,
    }
}

/// Runs the TaskCompleted hooks, which may reject the completion.
async fn run_completed_hooks(call: &ToolContext, item: &TaskItem) -> Result<(), ToolError> {
    let told = |scene: &HookInputBuilder| {
        scene.build(TaskCompleted {
            task_id: item.id.clone(),
            task_subject: item.subject.clone(),
            task_description: Some(item.description.clone()),
            teammate_name: call.teammate_name(),
            team_name: call.team_name(),
        })
    };
    let said = call.hooks.dispatch(HookEvent::TaskCompleted, told, &call.cancel).await;
    match said.blocked.is_empty() {
        true => Ok(()),
        false => Err(ToolError::Failed(format!(
            "A hook finds that it is not done: {}",
            join_reasons(&said.blocked)
        ))),
    }
}

fn unknown_task_result(id: &str) -> ToolOutput {
    unchanged_result(id, &format!("there is no task #{}", id.trim_start_matches('#')))
}

fn unchanged_result(id: &str, why: &str) -> ToolOutput {
    let meta = json!({"success": false, "taskId": id, "updatedFields": [], "error": why});
    ToolOutput::text(format!("Nothing was changed: {why}."), meta)
}
