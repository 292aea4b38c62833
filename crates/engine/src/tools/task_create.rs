//! TaskCreate: adds a task to the list.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use whimbrel_wire::hook::{HookEvent, TaskCreated};

use super::{Effects, Example, TASK_CREATE, Tool, ToolContext, ToolError, ToolOutput, ToolResult};
use crate::deferred_tools::ToolLoading;
use crate::hooks::{HookInputBuilder, join_reasons};
use crate::task_list::TaskListError;
use crate::task_list::state::NewTaskItem;

pub(super) struct TaskCreateTool;

#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
#[serde(rename_all = "camelCase")]
pub(super) struct Input {
    /// A few words: "Fix the login".
    subject: String,
    /// What is to be done, and when it is done.
    description: String,
    /// The same while it is done: "Fixing the login".
    #[serde(default)]
    active_form: Option<String>,
    #[serde(default)]
    metadata: Map<String, Value>,
}

impl Tool for TaskCreateTool {
    type Input = Input;

    const NAME: &'static str = TASK_CREATE;

    const LOADING: ToolLoading = ToolLoading::Deferred;

    const DESCRIPTION: &'static str =
        "Puts a task on the list that the user, and a team of agents, sees. For work of three steps or more.";

    fn effects(_: &Input) -> Effects {
        Effects::OtherAgents
    }

    async fn run(&self, input: Input, call: ToolContext) -> ToolResult {
        if input.subject.trim().is_empty() {
            return Err(ToolError::Rejected("The subject is empty: say what the task is about.".into()));
        }
        let Input { subject, description, active_form, metadata } = input;
        let draft = NewTaskItem { subject, description, active_form, metadata };
        let item = call.task_list.add(draft).await.map_err(|fault| task_list_error(&fault))?;
        let told = |scene: &HookInputBuilder| {
            scene.build(TaskCreated {
                task_id: item.id.clone(),
                task_subject: item.subject.clone(),
                task_description: Some(item.description.clone()),
                teammate_name: call.teammate_name(),
                team_name: call.team_name(),
            })
        };
        let said = call.hooks.dispatch(HookEvent::TaskCreated, told, &call.cancel).await;
        if !said.blocked.is_empty() {
            call.task_list.remove(&item.id).await.map_err(|fault| task_list_error(&fault))?;
            return Err(ToolError::Failed(format!(
                "A hook does not want the task: {}",
                join_reasons(&said.blocked)
            )));
        }
        let text = format!("Task #{} is on the list: {}", item.id, item.subject);
        let task = json!({"id": item.id, "subject": item.subject, "description": item.description});
        Ok(ToolOutput::text(text, json!({"task": task})))
    }

    fn examples() -> Vec<Example> {
        vec![
            Example::new("tasks are numbered", json!({"subject": "Test", "description": "Run all tests."}))
                .after_call(TASK_CREATE, json!({"subject": "Build", "description": ""}))
                .expect_output(&["#2", "Test"]),
            Example::new("a task is about something", json!({"subject": "", "description": ""}))
                .expect_error(&["The subject is empty"]),
        ]
    }
}

/// Converts an error of the task list for the model.
pub(super) fn task_list_error(fault: &TaskListError) -> ToolError {
    match fault {
        TaskListError::Rejected(refusal) => ToolError::Rejected(format!("Not done: {refusal}.")),
        TaskListError::Io(_) | TaskListError::LockTimeout => ToolError::Failed(format!("Not done: {fault}.")),
    }
}
