//! TaskCreate, TaskGet, TaskList and TaskUpdate: the tools of the task list.

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use whimbrel_wire::hook::{HookEvent, TaskCompleted, TaskCreated};

use super::{TASK_CREATE, TASK_GET, TASK_LIST, TASK_UPDATE};
use crate::api::ToolLoading;
use crate::api::{Effects, Example, Tool, ToolContext, ToolError, ToolOutput, ToolResult};
use crate::hooks::{HookInputBuilder, join_reasons};
use crate::task_list::TaskListError;
use crate::task_list::item::{TaskItem, TaskItemStatus};
use crate::task_list::state::{NewTaskItem, TaskItemUpdate};

pub(super) struct TaskCreateTool;

#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
#[serde(rename_all = "camelCase")]
pub(super) struct TaskCreateInput {
    /// Short title, e.g. "Fix the login".
    subject: String,
    /// What to do, and when it is done.
    description: String,
    /// Title while in progress, e.g. "Fixing the login".
    #[serde(default)]
    active_form: Option<String>,
    #[serde(default)]
    metadata: Map<String, Value>,
}

impl Tool for TaskCreateTool {
    type Input = TaskCreateInput;

    const NAME: &'static str = TASK_CREATE;

    const LOADING: ToolLoading = ToolLoading::Deferred;

    const DESCRIPTION: &'static str =
        "Adds a task to the list that the user and your team see. Use it for work of three or more steps.";

    fn effects(_: &TaskCreateInput) -> Effects {
        Effects::OtherAgents
    }

    async fn run(&self, input: TaskCreateInput, call: ToolContext) -> ToolResult {
        if input.subject.trim().is_empty() {
            return Err(ToolError::Rejected("The subject is empty. Give the task a title.".into()));
        }
        let TaskCreateInput { subject, description, active_form, metadata } = input;
        let new_item = NewTaskItem { subject, description, active_form, metadata };
        let item = call.task_list.add(new_item).await.map_err(|error| task_list_error(&error))?;
        let input = |builder: &HookInputBuilder| {
            builder.build(TaskCreated {
                task_id: item.id.clone(),
                task_subject: item.subject.clone(),
                task_description: Some(item.description.clone()),
                teammate_name: call.teammate_name(),
                team_name: call.team_name(),
            })
        };
        let output = call.hooks.dispatch(HookEvent::TaskCreated, input, &call.cancel).await;
        if !output.blocked.is_empty() {
            call.task_list.remove(&item.id).await.map_err(|error| task_list_error(&error))?;
            return Err(ToolError::Failed(format!(
                "A hook rejected the task: {}",
                join_reasons(&output.blocked)
            )));
        }
        let text = format!("Added task #{}: {}", item.id, item.subject);
        let task = json!({"id": item.id, "subject": item.subject, "description": item.description});
        Ok(ToolOutput::text(text, json!({"task": task})))
    }

    fn examples() -> Vec<Example> {
        vec![
            Example::new("tasks are numbered", json!({"subject": "Test", "description": "Run all tests."}))
                .after_call(TASK_CREATE, json!({"subject": "Build", "description": ""}))
                .expect_output(&["#2", "Test"]),
            Example::new("an empty subject is rejected", json!({"subject": "", "description": ""}))
                .expect_error(&["The subject is empty"]),
        ]
    }
}

/// Converts an error of the task list for the model.
pub(super) fn task_list_error(error: &TaskListError) -> ToolError {
    match error {
        TaskListError::Rejected(error) => ToolError::Rejected(format!("Task list: {error}.")),
        TaskListError::Io(_) | TaskListError::LockTimeout => {
            ToolError::Failed(format!("Task list: {error}."))
        }
    }
}

pub(super) struct TaskGetTool;

#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
#[serde(rename_all = "camelCase")]
pub(super) struct TaskGetInput {
    task_id: String,
}

impl Tool for TaskGetTool {
    type Input = TaskGetInput;

    const NAME: &'static str = TASK_GET;

    const LOADING: ToolLoading = ToolLoading::Deferred;

    const DESCRIPTION: &'static str = "Shows a task with its description.";

    fn effects(_: &TaskGetInput) -> Effects {
        Effects::None
    }

    async fn run(&self, input: TaskGetInput, call: ToolContext) -> ToolResult {
        let item = call.task_list.get(&input.task_id).await.map_err(|error| task_list_error(&error))?;
        let Some(item) = item else {
            return Ok(ToolOutput::text(
                format!("There is no task #{}.", input.task_id),
                json!({"task": null}),
            ));
        };
        Ok(ToolOutput::text(render_task(&item), json!({"task": task_details(&item)})))
    }

    fn examples() -> Vec<Example> {
        vec![
            Example::new("a task is shown in full", json!({"taskId": "1"}))
                .after_call(TASK_CREATE, json!({"subject": "Test", "description": "Run all tests."}))
                .expect_output(&["#1 Test", "pending", "Run all tests."]),
            Example::new("an unknown task is reported", json!({"taskId": "7"}))
                .expect_output(&["no task #7"]),
        ]
    }
}

fn task_details(item: &TaskItem) -> Value {
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
        lines.push(format!("Blocked by: {}", list(&item.blocked_by)));
    }
    if !item.blocks.is_empty() {
        lines.push(format!("Blocks: {}", list(&item.blocks)));
    }
    if !item.metadata.is_empty() {
        lines.push(format!("Metadata: {}", Value::Object(item.metadata.clone())));
    }
    lines.push(item.description.clone());
    lines.join("\n")
}

pub(super) struct TaskListTool;

#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct TaskListInput {}

impl Tool for TaskListTool {
    type Input = TaskListInput;

    const NAME: &'static str = TASK_LIST;

    const LOADING: ToolLoading = ToolLoading::Deferred;

    const DESCRIPTION: &'static str = "Lists all tasks with status, owner and blockers.";

    fn effects(_: &TaskListInput) -> Effects {
        Effects::None
    }

    async fn run(&self, _: TaskListInput, call: ToolContext) -> ToolResult {
        let items = call.task_list.items().await.map_err(|error| task_list_error(&error))?;
        let completed: HashSet<&str> = items
            .iter()
            .filter(|item| item.status == TaskItemStatus::Completed)
            .map(|item| item.id.as_str())
            .collect();
        let open_blockers = |item: &TaskItem| -> Vec<String> {
            item.blocked_by.iter().filter(|id| !completed.contains(id.as_str())).cloned().collect()
        };
        let tasks: Vec<Value> = items.iter().map(|item| task_summary(item, &open_blockers(item))).collect();
        let lines: Vec<String> = items.iter().map(|item| render_line(item, &open_blockers(item))).collect();
        let text = if lines.is_empty() { "There are no tasks.".to_owned() } else { lines.join("\n") };
        Ok(ToolOutput::text(text, json!({"tasks": tasks})))
    }

    fn examples() -> Vec<Example> {
        vec![
            Example::new("the list can be empty", json!({})).expect_output(&["There are no tasks."]),
            Example::new("each task has a line", json!({}))
                .after_call(TASK_CREATE, json!({"subject": "Build", "description": ""}))
                .after_call(TASK_CREATE, json!({"subject": "Test", "description": ""}))
                .after_call(TASK_UPDATE, json!({"taskId": "2", "addBlockedBy": ["1"]}))
                .after_call(TASK_UPDATE, json!({"taskId": "1", "status": "in_progress", "owner": "ann"}))
                .expect_output(&["#1 [in_progress] Build (ann)\n#2 [pending] Test, blocked by #1"]),
        ]
    }
}

fn task_summary(item: &TaskItem, blockers: &[String]) -> Value {
    let mut task =
        json!({"id": item.id, "subject": item.subject, "status": item.status, "blockedBy": blockers});
    if let Some(owner) = &item.owner {
        task["owner"] = owner.as_str().into();
    }
    task
}

fn render_line(item: &TaskItem, blockers: &[String]) -> String {
    let owner = item.owner.as_ref().map(|owner| format!(" ({owner})")).unwrap_or_default();
    let blockers =
        if blockers.is_empty() { String::new() } else { format!(", blocked by #{}", blockers.join(", #")) };
    format!("#{} [{}] {}{owner}{blockers}", item.id, item.status.as_str(), item.subject)
}

pub(super) struct TaskUpdateTool;

#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
#[serde(rename_all = "camelCase")]
pub(super) struct TaskUpdateInput {
    task_id: String,
    #[serde(default)]
    subject: Option<String>,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    active_form: Option<String>,
    #[serde(default)]
    status: Option<RequestedStatus>,
    /// Tasks that this one blocks.
    #[serde(default)]
    add_blocks: Vec<String>,
    /// Tasks that block this one.
    #[serde(default)]
    add_blocked_by: Vec<String>,
    /// The agent that works on it.
    #[serde(default)]
    owner: Option<String>,
    /// Merged; null removes a key.
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
    type Input = TaskUpdateInput;

    const NAME: &'static str = TASK_UPDATE;

    const LOADING: ToolLoading = ToolLoading::Deferred;

    const DESCRIPTION: &'static str = "Updates a task. Mark it in_progress before you start and completed only when it \
        is really done; deleted removes it.";

    fn effects(_: &TaskUpdateInput) -> Effects {
        Effects::OtherAgents
    }

    async fn run(&self, input: TaskUpdateInput, call: ToolContext) -> ToolResult {
        let id = input.task_id.clone();
        let Some(item) = call.task_list.get(&id).await.map_err(|error| task_list_error(&error))? else {
            return Ok(unknown_task_result(&id));
        };
        if input.status == Some(RequestedStatus::Deleted) {
            call.task_list.remove(&item.id).await.map_err(|error| task_list_error(&error))?;
            let change = json!({"from": item.status, "to": "deleted"});
            let meta = json!({"success": true, "taskId": item.id, "updatedFields": ["deleted"], "statusChange": change});
            return Ok(ToolOutput::text(format!("Deleted task #{}.", item.id), meta));
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
                let changed_fields = if fields.is_empty() { "nothing".to_owned() } else { fields.join(", ") };
                Ok(ToolOutput::text(format!("Updated task #{}: {changed_fields}.", item.id), meta))
            }
            Err(TaskListError::Rejected(error)) => Ok(unchanged_result(&item.id, &error.to_string())),
            Err(error) => Err(task_list_error(&error)),
        }
    }

    fn examples() -> Vec<Example> {
        let one = |shows, input| {
            Example::new(shows, input).after_call(TASK_CREATE, json!({"subject": "Test", "description": ""}))
        };
        vec![
            one("the status changes", json!({"taskId": "1", "status": "in_progress"}))
                .expect_output(&["Updated task #1: status"]),
            one("a task can be deleted", json!({"taskId": "#1", "status": "deleted"}))
                .expect_output(&["Deleted task #1"]),
            one("a task cannot block itself", json!({"taskId": "1", "addBlockedBy": ["1"]}))
                .expect_output(&["Not updated", "block itself"]),
            one("another agent's task is not taken over", json!({"taskId": "1", "owner": "bob"}))
                .after_call(TASK_UPDATE, json!({"taskId": "1", "owner": "ann", "status": "in_progress"}))
                .expect_output(&["Not updated", "owned by ann"]),
            Example::new("an unknown task is reported", json!({"taskId": "3"}))
                .expect_output(&["no task #3"]),
        ]
    }
}

fn to_update(input: TaskUpdateInput) -> TaskItemUpdate {
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
    let input = |builder: &HookInputBuilder| {
        builder.build(TaskCompleted {
            task_id: item.id.clone(),
            task_subject: item.subject.clone(),
            task_description: Some(item.description.clone()),
            teammate_name: call.teammate_name(),
            team_name: call.team_name(),
        })
    };
    let output = call.hooks.dispatch(HookEvent::TaskCompleted, input, &call.cancel).await;
    match output.blocked.is_empty() {
        true => Ok(()),
        false => Err(ToolError::Failed(format!(
            "A hook rejected the completion: {}",
            join_reasons(&output.blocked)
        ))),
    }
}

fn unknown_task_result(id: &str) -> ToolOutput {
    unchanged_result(id, &format!("there is no task #{}", id.trim_start_matches('#')))
}

fn unchanged_result(id: &str, reason: &str) -> ToolOutput {
    let meta = json!({"success": false, "taskId": id, "updatedFields": [], "error": reason});
    ToolOutput::text(format!("Not updated: {reason}."), meta)
}
