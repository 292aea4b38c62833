//! The plan of the editor, kept from the model's list of tasks.

use agent_client_protocol::v1::schema::{Plan, PlanEntry, PlanEntryPriority, PlanEntryStatus};
use serde::Deserialize;
use serde_json::Value;

/// The tasks in their order.
#[derive(Debug, Default)]
pub(crate) struct TaskPlan {
    tasks: Vec<Task>,
}

#[derive(Debug, Clone, PartialEq)]
struct Task {
    /// Empty for the entries of `TodoWrite`, which have none.
    id: String,
    subject: String,
    active_form: Option<String>,
    status: PlanEntryStatus,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Todo {
    content: String,
    #[serde(default)]
    status: String,
    #[serde(default)]
    active_form: Option<String>,
}

impl TaskPlan {
    /// Applies a call that succeeded; returns whether the plan is another one now.
    pub(crate) fn apply(&mut self, tool: &str, input: &Value, result: Option<&Value>) -> bool {
        let before = self.tasks.clone();
        match tool {
            "TodoWrite" => {
                let todos = Vec::<Todo>::deserialize(&input["todos"]).unwrap_or_default();
                self.tasks = todos.into_iter().map(Task::from).collect();
            }
            "TaskCreate" => self.create(input, result),
            "TaskUpdate" => self.update(input),
            "TaskList" => self.keep_listed(result),
            _ => {}
        }
        before != self.tasks
    }

    /// The whole list.
    pub(crate) fn to_plan(&self) -> Plan {
        let entry = |task: &Task| {
            let text = match &task.active_form {
                Some(text) if task.status == PlanEntryStatus::InProgress => text,
                _ => &task.subject,
            };
            PlanEntry::new(text.as_str(), PlanEntryPriority::Medium, task.status.clone())
        };
        Plan::new(self.tasks.iter().map(entry).collect())
    }

    /// Whether a task is not completed.
    pub(crate) fn has_open_tasks(&self) -> bool {
        self.tasks.iter().any(|task| task.status != PlanEntryStatus::Completed)
    }

    fn create(&mut self, input: &Value, result: Option<&Value>) {
        let created = result.map(|result| &result["task"]);
        let id = created.and_then(|task| task["id"].as_str()).unwrap_or_default();
        let subject = created.and_then(|task| task["subject"].as_str()).or(input["subject"].as_str());
        self.tasks.push(Task {
            id: id.to_owned(),
            subject: subject.unwrap_or_default().to_owned(),
            active_form: input["activeForm"].as_str().map(str::to_owned),
            status: PlanEntryStatus::Pending,
        });
    }

    fn update(&mut self, input: &Value) {
        let id = input["taskId"].as_str().unwrap_or_default();
        if input["status"] == "deleted" {
            return self.tasks.retain(|task| task.id != id);
        }
        let Some(task) = self.tasks.iter_mut().find(|task| task.id == id) else { return };
        if let Some(subject) = input["subject"].as_str() {
            task.subject = subject.to_owned();
        }
        if let Some(text) = input["activeForm"].as_str() {
            task.active_form = Some(text.to_owned());
        }
        if let Some(status) = input["status"].as_str() {
            task.status = parse_status(status);
        }
    }

    /// Takes over what a listing says: tasks of others, and their state.
    fn keep_listed(&mut self, result: Option<&Value>) {
        let Some(listed) = result.and_then(|result| result["tasks"].as_array()) else { return };
        let known = std::mem::take(&mut self.tasks);
        self.tasks = listed
            .iter()
            .map(|task| {
                let id = task["id"].as_str().unwrap_or_default();
                Task {
                    id: id.to_owned(),
                    subject: task["subject"].as_str().unwrap_or_default().to_owned(),
                    active_form: known
                        .iter()
                        .find(|known| known.id == id)
                        .and_then(|known| known.active_form.clone()),
                    status: parse_status(task["status"].as_str().unwrap_or_default()),
                }
            })
            .collect();
    }
}

impl From<Todo> for Task {
    fn from(todo: Todo) -> Self {
        let status = parse_status(&todo.status);
        Self { id: String::new(), subject: todo.content, active_form: todo.active_form, status }
    }
}

fn parse_status(name: &str) -> PlanEntryStatus {
    match name {
        "in_progress" => PlanEntryStatus::InProgress,
        "completed" => PlanEntryStatus::Completed,
        _ => PlanEntryStatus::Pending,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entries(plan: &TaskPlan) -> Vec<(String, PlanEntryStatus)> {
        plan.to_plan().entries.into_iter().map(|entry| (entry.content, entry.status)).collect()
    }

    #[test]
    fn task_calls_change_the_plan() {
        use PlanEntryStatus::{Completed, InProgress, Pending};
        let mut plan = TaskPlan::default();
        let created = |id: &str, subject: &str| json!({"task": {"id": id, "subject": subject}});
        assert!(plan.apply(
            "TaskCreate",
            &json!({"subject": "A", "activeForm": "Doing A"}),
            Some(&created("1", "A"))
        ));
        assert!(plan.apply("TaskCreate", &json!({"subject": "B"}), Some(&created("2", "B"))));
        assert!(plan.apply("TaskUpdate", &json!({"taskId": "1", "status": "in_progress"}), None));
        assert_eq!(entries(&plan), [("Doing A".into(), InProgress), ("B".into(), Pending)]);
        assert!(!plan.apply("TaskUpdate", &json!({"taskId": "9", "status": "completed"}), None));
        assert!(plan.apply("TaskUpdate", &json!({"taskId": "1", "status": "completed"}), None));
        assert!(plan.has_open_tasks());
        assert!(plan.apply("TaskUpdate", &json!({"taskId": "2", "status": "deleted"}), None));
        assert_eq!((entries(&plan), plan.has_open_tasks()), (vec![("A".into(), Completed)], false));
    }

    #[test]
    fn todo_list_and_task_listing_replace_the_plan() {
        let mut plan = TaskPlan::default();
        let todos = json!({"todos": [{"content": "A", "status": "in_progress", "activeForm": "Doing A"}]});
        assert!(plan.apply("TodoWrite", &todos, None));
        assert!(!plan.apply("TodoWrite", &todos, None));
        assert_eq!(entries(&plan), [("Doing A".into(), PlanEntryStatus::InProgress)]);
        let listed = json!({"tasks": [{"id": "7", "subject": "C", "status": "completed"}]});
        assert!(plan.apply("TaskList", &json!({}), Some(&listed)));
        assert_eq!(entries(&plan), [("C".into(), PlanEntryStatus::Completed)]);
    }
}
