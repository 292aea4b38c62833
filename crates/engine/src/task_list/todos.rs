//! What one agent wants to do: a list that it writes anew as a whole each time.

use std::sync::{Arc, Mutex, PoisonError};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::item::TaskItemStatus;

/// One line of the list. What its names say needs no words to the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline, description = "")]
pub struct Todo {
    /// What is to be done.
    #[schemars(description = "")]
    pub content: String,
    /// How far it is.
    #[schemars(description = "")]
    pub status: TaskItemStatus,
    /// The same while it is done: "Running tests".
    #[schemars(description = "\"Running tests\"")]
    pub active_form: String,
}

/// The list of one agent. Cheap to clone; the clones are one list.
#[derive(Debug, Clone, Default)]
pub struct TodoList(Arc<Mutex<Vec<Todo>>>);

impl TodoList {
    /// Puts a list in the place of the one before, and gives that.
    pub fn replace(&self, todos: Vec<Todo>) -> Vec<Todo> {
        std::mem::replace(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), todos)
    }
}
