//! One task of the list, in its JSON form.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskItem {
    /// The number as text.
    pub id: String,
    pub subject: String,
    #[serde(default)]
    pub description: String,
    /// Present continuous form, shown while the task is in progress: "Running tests".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_form: Option<String>,
    /// The agent that works on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    #[serde(default)]
    pub status: TaskItemStatus,
    /// Tasks that depend on this one.
    #[serde(default)]
    pub blocks: Vec<String>,
    /// Tasks that this one depends on.
    #[serde(default)]
    pub blocked_by: Vec<String>,
    /// Further data of the agents.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskItemStatus {
    #[default]
    Pending,
    InProgress,
    Completed,
}

impl TaskItemStatus {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
        }
    }
}

/// Only the enum values: the model needs no descriptions.
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
