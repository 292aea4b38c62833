//! The list of steps that the model keeps, by `TodoWrite` or by the tools of the task list.

use serde_json::Value;

use super::{Conversation, text_field};

/// Status of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TodoStatus {
    Pending,
    InProgress,
    Completed,
}

/// A step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Todo {
    /// Id in the task list; empty for `TodoWrite`.
    id: String,
    pub(crate) text: String,
    pub(crate) status: TodoStatus,
}

fn parse_status(status: &str) -> TodoStatus {
    match status {
        "completed" => TodoStatus::Completed,
        "in_progress" => TodoStatus::InProgress,
        _ => TodoStatus::Pending,
    }
}

impl Conversation {
    /// Returns whether a step is open.
    pub(crate) fn has_open_todos(&self) -> bool {
        self.todos.iter().any(|todo| todo.status != TodoStatus::Completed)
    }

    /// Follows the tools that change the list.
    pub(super) fn record_todos(
        &mut self,
        name: &str,
        input: &Value,
        structured: Option<&Value>,
        is_error: bool,
    ) {
        if is_error {
            return;
        }
        match name {
            "TodoWrite" => self.todos = parse_todos(input),
            "TaskCreate" => {
                let id = structured.and_then(|result| result.pointer("/task/id")).and_then(Value::as_str);
                self.todos.push(Todo {
                    id: id.unwrap_or_default().to_owned(),
                    text: text_field(input, "subject").to_owned(),
                    status: TodoStatus::Pending,
                });
            }
            "TaskUpdate" => self.update_todo(input),
            _ => {}
        }
    }

    fn update_todo(&mut self, input: &Value) {
        let id = text_field(input, "taskId");
        let status = text_field(input, "status");
        if status == "deleted" {
            self.todos.retain(|todo| todo.id != id);
            return;
        }
        let Some(todo) = self.todos.iter_mut().find(|todo| todo.id == id) else { return };
        if !status.is_empty() {
            todo.status = parse_status(status);
        }
        let subject = text_field(input, "subject");
        if !subject.is_empty() {
            subject.clone_into(&mut todo.text);
        }
    }
}

fn parse_todos(input: &Value) -> Vec<Todo> {
    let todos = input.get("todos").and_then(Value::as_array).into_iter().flatten();
    todos
        .map(|todo| {
            let status = parse_status(text_field(todo, "status"));
            let active = text_field(todo, "activeForm");
            let text = match status {
                TodoStatus::InProgress if !active.is_empty() => active,
                _ => text_field(todo, "content"),
            };
            Todo { id: String::new(), text: text.to_owned(), status }
        })
        .collect()
}
