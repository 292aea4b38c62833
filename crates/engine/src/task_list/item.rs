//! One task of a list, as it lies on disk.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A task.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskItem {
    /// Its number, as a text.
    pub id: String,
    /// What it is about, in a few words.
    pub subject: String,
    /// What is to be done.
    #[serde(default)]
    pub description: String,
    /// What is going on while it is done: "Running tests".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_form: Option<String>,
    /// The agent that does it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// How far it is.
    #[serde(default)]
    pub status: TaskItemStatus,
    /// Tasks that wait for it.
    #[serde(default)]
    pub blocks: Vec<String>,
    /// Tasks that it waits for.
    #[serde(default)]
    pub blocked_by: Vec<String>,
    /// Whatever else the agents keep with it.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

/// How far a task is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskItemStatus {
    /// Nobody has begun.
    #[default]
    Pending,
    /// Somebody is at it.
    InProgress,
    /// It is done.
    Completed,
}

impl TaskItemStatus {
    /// Its word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
        }
    }
}

/// The words alone: a model needs no more.
impl JsonSchema for TaskItemStatus {
    fn schema_name() -> Cow<'static, str> {
        "Status".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "enum": ["pending", "in_progress", "completed"]})
    }
}
