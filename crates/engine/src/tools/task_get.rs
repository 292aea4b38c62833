//! TaskGet: shows one task of the list.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::task_create::failed;
use super::{Call, Done, Example, Output, TASK_CREATE, TASK_GET, Tool, Touches};
use crate::agenda::item::Item;
use crate::on_demand::Offer;

/// The tool.
pub(super) struct TaskGet;

#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
#[serde(rename_all = "camelCase")]
pub(super) struct Input {
    task_id: String,
}

impl Tool for TaskGet {
    type Input = Input;

    const NAME: &'static str = TASK_GET;

    const OFFER: Offer = Offer::OnDemand;

    const DESCRIPTION: &'static str = "Shows a task of the list with its description.";

    fn touches(_: &Input) -> Touches {
        Touches::Nothing
    }

    async fn run(&self, input: Input, call: Call) -> Output {
        let item = call.agenda.get(&input.task_id).await.map_err(|fault| failed(&fault))?;
        let Some(item) = item else {
            return Ok(Done::text(format!("There is no task #{}.", input.task_id), json!({"task": null})));
        };
        Ok(Done::text(told(&item), json!({"task": shown(&item)})))
    }

    fn examples() -> Vec<Example> {
        vec![
            Example::new("a task is shown whole", json!({"taskId": "1"}))
                .after(TASK_CREATE, json!({"subject": "Test", "description": "Run all tests."}))
                .says(&["#1 Test", "pending", "Run all tests."]),
            Example::new("one that is not there is said", json!({"taskId": "7"})).says(&["no task #7"]),
        ]
    }
}

fn shown(item: &Item) -> Value {
    json!({
        "id": item.id,
        "subject": item.subject,
        "description": item.description,
        "status": item.status,
        "blocks": item.blocks,
        "blockedBy": item.blocked_by,
    })
}

fn told(item: &Item) -> String {
    let mut lines = vec![format!("#{} {}", item.id, item.subject), format!("Status: {}", item.status.word())];
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
