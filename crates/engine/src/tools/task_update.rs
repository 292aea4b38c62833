//! TaskUpdate: changes a task of the list.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use whimbrel_wire::hook::{HookEvent, TaskCompleted};

use super::task_create::failed;
use super::{Call, Done, Example, Output, TASK_CREATE, TASK_UPDATE, Tool, Touches, Trouble};
use crate::agenda::AgendaFault;
use crate::agenda::item::{Item, Status};
use crate::agenda::plan::Change;
use crate::hooks::{Scene, joined};
use crate::on_demand::Offer;

/// The tool.
pub(super) struct TaskUpdate;

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
    status: Option<Wanted>,
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
enum Wanted {
    Pending,
    InProgress,
    Completed,
    Deleted,
}

impl Tool for TaskUpdate {
    type Input = Input;

    const NAME: &'static str = TASK_UPDATE;

    const OFFER: Offer = Offer::OnDemand;

    const DESCRIPTION: &'static str = "Changes a task of the list. Mark it in_progress before you begin and completed when it is really done; deleted takes it off the list.";

    fn touches(_: &Input) -> Touches {
        Touches::Others
    }

    async fn run(&self, input: Input, call: Call) -> Output {
        let id = input.task_id.clone();
        let Some(item) = call.agenda.get(&id).await.map_err(|fault| failed(&fault))? else {
            return Ok(no_such_task(&id));
        };
        if input.status == Some(Wanted::Deleted) {
            call.agenda.remove(&item.id).await.map_err(|fault| failed(&fault))?;
            let change = json!({"from": item.status, "to": "deleted"});
            let meta = json!({"success": true, "taskId": item.id, "updatedFields": ["deleted"], "statusChange": change});
            return Ok(Done::text(format!("Task #{} is off the list.", item.id), meta));
        }
        if input.status == Some(Wanted::Completed) && item.status != Status::Completed {
            ask_hooks(&call, &item).await?;
        }
        match call.agenda.change(&item.id, change(input)).await {
            Ok(changed) => {
                let fields = changed.fields;
                let mut meta = json!({"success": true, "taskId": item.id, "updatedFields": fields});
                if changed.before != changed.item.status {
                    meta["statusChange"] = json!({"from": changed.before, "to": changed.item.status});
                }
                let what = if fields.is_empty() { "nothing".to_owned() } else { fields.join(", ") };
                Ok(Done::text(format!("Task #{}: changed {what}.", item.id), meta))
            }
            Err(AgendaFault::Refused(refusal)) => Ok(refused(&item.id, &refusal.to_string())),
            Err(fault) => Err(failed(&fault)),
        }
    }

    fn examples() -> Vec<Example> {
        let one = |shows, input| {
            Example::new(shows, input).after(TASK_CREATE, json!({"subject": "Test", "description": ""}))
        };
        vec![
            one("a task makes progress", json!({"taskId": "1", "status": "in_progress"}))
                .says(&["#1: changed status"]),
            one("it can be taken off the list", json!({"taskId": "#1", "status": "deleted"}))
                .says(&["off the list"]),
            one("it cannot wait for itself", json!({"taskId": "1", "addBlockedBy": ["1"]}))
                .says(&["Nothing was changed", "wait for itself"]),
            one("what somebody does is theirs", json!({"taskId": "1", "owner": "bob"}))
                .after(TASK_UPDATE, json!({"taskId": "1", "owner": "ann", "status": "in_progress"}))
                .says(&["Nothing was changed", "ann's"]),
            Example::new("a task that is not there is said", json!({"taskId": "3"})).says(&["no task #3"]),
        ]
    }
}

fn change(input: Input) -> Change {
    let status = input.status.and_then(|status| match status {
        Wanted::Pending => Some(Status::Pending),
        Wanted::InProgress => Some(Status::InProgress),
        Wanted::Completed => Some(Status::Completed),
        Wanted::Deleted => None,
    });
    Change {
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

/// Hooks may find that a task is not done.
async fn ask_hooks(call: &Call, item: &Item) -> Result<(), Trouble> {
    let told = |scene: &Scene| {
        scene.of(TaskCompleted {
            task_id: item.id.clone(),
            task_subject: item.subject.clone(),
            task_description: Some(item.description.clone()),
            teammate_name: call.teammate(),
            team_name: call.team(),
        })
    };
    let said = call.lookout.raise(HookEvent::TaskCompleted, told, &call.cancel).await;
    match said.blocked.is_empty() {
        true => Ok(()),
        false => Err(Trouble::Failed(format!("A hook finds that it is not done: {}", joined(&said.blocked)))),
    }
}

fn no_such_task(id: &str) -> Done {
    refused(id, &format!("there is no task #{}", id.trim_start_matches('#')))
}

fn refused(id: &str, why: &str) -> Done {
    let meta = json!({"success": false, "taskId": id, "updatedFields": [], "error": why});
    Done::text(format!("Nothing was changed: {why}."), meta)
}
