//! Private to-do list of one agent; each write replaces the whole list.

use std::sync::{Arc, Mutex, PoisonError};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::item::TaskItemStatus;

/// One entry of the list. Its field names suffice as descriptions for the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline, description = "")]
pub struct Todo {
    #[schemars(description = "")]
    pub content: String,
    #[schemars(description = "")]
    pub status: TaskItemStatus,
    /// Present continuous form, shown while in progress: "Running tests".
    #[schemars(description = "\"Running tests\"")]
    pub active_form: String,
}

/// To-do list of one agent. Clones share the list.
#[derive(Debug, Clone, Default)]
pub struct TodoList(Arc<Mutex<Vec<Todo>>>);

impl TodoList {
    /// Replaces the list and returns the previous one.
    pub fn replace(&self, todos: Vec<Todo>) -> Vec<Todo> {
        std::mem::replace(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), todos)
    }
}
