//! TaskList: shows the list of tasks.

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::task_create::failed;
use super::{Call, Done, Example, Output, TASK_CREATE, TASK_LIST, TASK_UPDATE, Tool, Touches};
use crate::agenda::item::{Item, Status};
use crate::on_demand::Offer;

/// The tool.
pub(super) struct TaskList;

#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct Input {}

impl Tool for TaskList {
    type Input = Input;

    const NAME: &'static str = TASK_LIST;

    const OFFER: Offer = Offer::OnDemand;

    const DESCRIPTION: &'static str = "Shows all tasks of the list in short: what they are about, how far they are, who does them, what they wait for.";

    fn touches(_: &Input) -> Touches {
        Touches::Nothing
    }

    async fn run(&self, _: Input, call: Call) -> Output {
        let items = call.agenda.items().await.map_err(|fault| failed(&fault))?;
        let done: HashSet<&str> = items
            .iter()
            .filter(|item| item.status == Status::Completed)
            .map(|item| item.id.as_str())
            .collect();
        let waits = |item: &Item| -> Vec<String> {
            item.blocked_by.iter().filter(|id| !done.contains(id.as_str())).cloned().collect()
        };
        let tasks: Vec<Value> = items.iter().map(|item| shown(item, &waits(item))).collect();
        let lines: Vec<String> = items.iter().map(|item| told(item, &waits(item))).collect();
        let text = if lines.is_empty() { "There are no tasks.".to_owned() } else { lines.join("\n") };
        Ok(Done::text(text, json!({"tasks": tasks})))
    }

    fn examples() -> Vec<Example> {
        vec![
            Example::new("a list can be empty", json!({})).says(&["There are no tasks."]),
            Example::new("each task has a line", json!({}))
                .after(TASK_CREATE, json!({"subject": "Build", "description": ""}))
                .after(TASK_CREATE, json!({"subject": "Test", "description": ""}))
                .after(TASK_UPDATE, json!({"taskId": "2", "addBlockedBy": ["1"]}))
                .after(TASK_UPDATE, json!({"taskId": "1", "status": "in_progress", "owner": "ann"}))
                .says(&["#1 [in_progress] Build (ann)\n#2 [pending] Test, waits for #1"]),
        ]
    }
}

fn shown(item: &Item, waits: &[String]) -> Value {
    let mut task = json!({"id": item.id, "subject": item.subject, "status": item.status, "blockedBy": waits});
    if let Some(owner) = &item.owner {
        task["owner"] = owner.as_str().into();
    }
    task
}

fn told(item: &Item, waits: &[String]) -> String {
    let owner = item.owner.as_ref().map(|owner| format!(" ({owner})")).unwrap_or_default();
    let waits = if waits.is_empty() { String::new() } else { format!(", waits for #{}", waits.join(", #")) };
    format!("#{} [{}] {}{owner}{waits}", item.id, item.status.word(), item.subject)
}
