//! TaskCreate: puts a task on the list.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use whimbrel_wire::hook::{HookEvent, TaskCreated};

use super::{Call, Done, Example, Output, TASK_CREATE, Tool, Touches, Trouble};
use crate::agenda::AgendaFault;
use crate::agenda::plan::Draft;
use crate::hooks::{Scene, joined};
use crate::on_demand::Offer;

/// The tool.
pub(super) struct TaskCreate;

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

impl Tool for TaskCreate {
    type Input = Input;

    const NAME: &'static str = TASK_CREATE;

    const OFFER: Offer = Offer::OnDemand;

    const DESCRIPTION: &'static str =
        "Puts a task on the list that the user, and a team of agents, sees. For work of three steps or more.";

    fn touches(_: &Input) -> Touches {
        Touches::Others
    }

    async fn run(&self, input: Input, call: Call) -> Output {
        if input.subject.trim().is_empty() {
            return Err(Trouble::Refused("The subject is empty: say what the task is about.".into()));
        }
        let Input { subject, description, active_form, metadata } = input;
        let draft = Draft { subject, description, active_form, metadata };
        let item = call.agenda.add(draft).await.map_err(|fault| failed(&fault))?;
        let told = |scene: &Scene| {
            scene.of(TaskCreated {
                task_id: item.id.clone(),
                task_subject: item.subject.clone(),
                task_description: Some(item.description.clone()),
                teammate_name: call.teammate(),
                team_name: call.team(),
            })
        };
        let said = call.lookout.raise(HookEvent::TaskCreated, told, &call.cancel).await;
        if !said.blocked.is_empty() {
            call.agenda.remove(&item.id).await.map_err(|fault| failed(&fault))?;
            return Err(Trouble::Failed(format!("A hook does not want the task: {}", joined(&said.blocked))));
        }
        let text = format!("Task #{} is on the list: {}", item.id, item.subject);
        let task = json!({"id": item.id, "subject": item.subject, "description": item.description});
        Ok(Done::text(text, json!({"task": task})))
    }

    fn examples() -> Vec<Example> {
        vec![
            Example::new("tasks are numbered", json!({"subject": "Test", "description": "Run all tests."}))
                .after(TASK_CREATE, json!({"subject": "Build", "description": ""}))
                .says(&["#2", "Test"]),
            Example::new("a task is about something", json!({"subject": "", "description": ""}))
                .fails(&["The subject is empty"]),
        ]
    }
}

/// What the model reads of a list that says no.
pub(super) fn failed(fault: &AgendaFault) -> Trouble {
    match fault {
        AgendaFault::Refused(refusal) => Trouble::Refused(format!("Not done: {refusal}.")),
        AgendaFault::Disk(_) | AgendaFault::Held => Trouble::Failed(format!("Not done: {fault}.")),
    }
}
