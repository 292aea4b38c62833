//! TodoWrite: replaces the agent's to-do list.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::TODO_WRITE;
use crate::api::{Effects, Example, Tool, ToolContext, ToolError, ToolOutput, ToolResult};
use crate::task_list::item::TaskItemStatus;
use crate::task_list::todos::Todo;

pub(super) struct TodoWriteTool;

#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct TodoWriteInput {
    /// The complete updated list.
    todos: Vec<Todo>,
}

impl Tool for TodoWriteTool {
    type Input = TodoWriteInput;

    const NAME: &'static str = TODO_WRITE;

    const DESCRIPTION: &'static str = "Maintains your list of steps, which the user sees. Use it for work of three or \
        more steps. Mark each step completed once it is done.";

    fn effects(_: &TodoWriteInput) -> Effects {
        Effects::None
    }

    async fn run(&self, input: TodoWriteInput, call: ToolContext) -> ToolResult {
        if input.todos.iter().any(|todo| todo.content.trim().is_empty()) {
            return Err(ToolError::Rejected("A todo is empty: say what to do.".into()));
        }
        let open_count = input.todos.iter().filter(|todo| todo.status != TaskItemStatus::Completed).count();
        let text = match open_count {
            0 => "Todos saved; all are completed.".to_owned(),
            open_count => format!("Todos saved; {open_count} of {} are open.", input.todos.len()),
        };
        let new = json!(input.todos);
        let old = call.todos.replace(input.todos);
        Ok(ToolOutput::text(text, json!({"oldTodos": old, "newTodos": new})))
    }

    fn examples() -> Vec<Example> {
        let one = json!([{"content": "Test", "status": "in_progress", "activeForm": "Testing"}]);
        vec![
            Example::new("a list is saved", json!({"todos": one})).expect_output(&["1 of 1 are open"]),
            Example::new("the list can be empty", json!({"todos": []})).expect_output(&["all are completed"]),
            Example::new(
                "an unknown status is rejected",
                json!({"todos": [{"content": "a", "status": "soon", "activeForm": "a"}]}),
            )
            .expect_error(&["InputValidationError", "todos[0].status"]),
            Example::new(
                "an empty todo is rejected",
                json!({"todos": [{"content": " ", "status": "pending", "activeForm": ""}]}),
            )
            .expect_error(&["is empty"]),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::TestWorkspace;

    #[tokio::test]
    async fn the_host_gets_the_old_and_new_list() {
        let fixture = TestWorkspace::new(&[]);
        let first = json!([{"content": "a", "status": "pending", "activeForm": "doing a"}]);
        let second = json!([{"content": "a", "status": "completed", "activeForm": "doing a"}]);
        let output = fixture.run_tool("TodoWrite", json!({"todos": first})).await.unwrap();
        assert_eq!(output.meta, json!({"oldTodos": [], "newTodos": first}));
        let output = fixture.run_tool("TodoWrite", json!({"todos": second})).await.unwrap();
        assert_eq!(output.meta, json!({"oldTodos": first, "newTodos": second}));
    }
}
