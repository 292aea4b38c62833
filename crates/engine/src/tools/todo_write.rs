//! TodoWrite: replaces the agent's to-do list.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{Effects, Example, TODO_WRITE, Tool, ToolContext, ToolError, ToolOutput, ToolResult};
use crate::task_list::item::TaskItemStatus;
use crate::task_list::todos::Todo;

pub(super) struct TodoWriteTool;

#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct Input {
    /// The whole list, as it is now.
    todos: Vec<Todo>,
}

impl Tool for TodoWriteTool {
    type Input = Input;

    const NAME: &'static str = TODO_WRITE;

    const DESCRIPTION: &'static str = "Keeps your list of steps, which the user sees. For work of three steps or more. Mark each as completed once done.";

    fn effects(_: &Input) -> Effects {
        Effects::None
    }

    async fn run(&self, input: Input, call: ToolContext) -> ToolResult {
        if input.todos.iter().any(|todo| todo.content.trim().is_empty()) {
            return Err(ToolError::Rejected("An item of the list is empty: say what is to be done.".into()));
        }
        let open = input.todos.iter().filter(|todo| todo.status != TaskItemStatus::Completed).count();
        let text = match open {
            0 => "The list is kept; everything on it is done.".to_owned(),
            open => format!("The list is kept; {open} of {} are not done yet.", input.todos.len()),
        };
        let new = json!(input.todos);
        let old = call.todos.replace(input.todos);
        Ok(ToolOutput::text(text, json!({"oldTodos": old, "newTodos": new})))
    }

    fn examples() -> Vec<Example> {
        let one = json!([{"content": "Test", "status": "in_progress", "activeForm": "Testing"}]);
        vec![
            Example::new("a list is kept", json!({"todos": one})).expect_output(&["1 of 1 are not done"]),
            Example::new("an empty list is one too", json!({"todos": []})).expect_output(&["everything"]),
            Example::new(
                "a status that there is not is refused",
                json!({"todos": [{"content": "a", "status": "soon", "activeForm": "a"}]}),
            )
            .expect_error(&["InputValidationError", "todos[0].status"]),
            Example::new(
                "an item says something",
                json!({"todos": [{"content": " ", "status": "pending", "activeForm": ""}]}),
            )
            .expect_error(&["is empty"]),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::super::example::TestWorkspace;
    use super::*;

    #[tokio::test]
    async fn the_host_gets_the_old_and_new_list() {
        let bench = TestWorkspace::new(&[]);
        let first = json!([{"content": "a", "status": "pending", "activeForm": "doing a"}]);
        let second = json!([{"content": "a", "status": "completed", "activeForm": "doing a"}]);
        let done = bench.run_tool("TodoWrite", json!({"todos": first})).await.unwrap();
        assert_eq!(done.meta, json!({"oldTodos": [], "newTodos": first}));
        let done = bench.run_tool("TodoWrite", json!({"todos": second})).await.unwrap();
        assert_eq!(done.meta, json!({"oldTodos": first, "newTodos": second}));
    }
}
