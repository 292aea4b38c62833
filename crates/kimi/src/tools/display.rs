//! What a host shows of a call beside its result.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A piece that a host shows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum DisplayBlock {
    Brief {
        text: String,
    },
    /// A changed part of a file.
    Diff {
        path: String,
        old_text: String,
        new_text: String,
        /// First line of the old text in the file, from 1.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        old_start: Option<u64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        new_start: Option<u64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        is_summary: Option<bool>,
    },
    Todo {
        items: Vec<TodoItem>,
    },
    Shell {
        language: String,
        command: String,
    },
    BackgroundTask {
        task_id: String,
        kind: String,
        status: String,
        description: String,
    },
    /// Any other kind, kept as it came from the host.
    #[serde(untagged)]
    Other(Map<String, Value>),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TodoItem {
    pub(crate) title: String,
    pub(crate) status: TodoStatus,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TodoStatus {
    Pending,
    InProgress,
    Done,
}

impl DisplayBlock {
    pub(crate) fn brief(text: impl Into<String>) -> Self {
        Self::Brief { text: text.into() }
    }

    pub(crate) fn shell(command: impl Into<String>) -> Self {
        Self::Shell { language: "bash".into(), command: command.into() }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn blocks_are_those_of_the_wire() {
        let rows = [
            (DisplayBlock::brief("a"), json!({"type": "brief", "text": "a"})),
            (DisplayBlock::shell("ls"), json!({"type": "shell", "language": "bash", "command": "ls"})),
            (
                DisplayBlock::Diff {
                    path: "a".into(),
                    old_text: "x".into(),
                    new_text: "y".into(),
                    old_start: Some(3),
                    new_start: None,
                    is_summary: None,
                },
                json!({"type": "diff", "path": "a", "old_text": "x", "new_text": "y", "old_start": 3}),
            ),
            (
                DisplayBlock::Todo {
                    items: vec![TodoItem { title: "a".into(), status: TodoStatus::InProgress }],
                },
                json!({"type": "todo", "items": [{"title": "a", "status": "in_progress"}]}),
            ),
            (
                DisplayBlock::BackgroundTask {
                    task_id: "b1".into(),
                    kind: "bash".into(),
                    status: "running".into(),
                    description: "d".into(),
                },
                json!({
                    "type": "background_task", "task_id": "b1", "kind": "bash", "status": "running", "description": "d",
                }),
            ),
            (
                DisplayBlock::Other(Map::from_iter([
                    ("type".into(), "chart".into()),
                    ("x".into(), 1.into()),
                ])),
                json!({"type": "chart", "x": 1}),
            ),
        ];
        for (block, expected) in rows {
            assert_eq!(serde_json::to_value(&block).unwrap(), expected);
            assert_eq!(serde_json::from_value::<DisplayBlock>(expected).unwrap(), block);
        }
    }
}
