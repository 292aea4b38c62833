//! What is said when background work begins or ends: to the host as notices, to the model as a message.

use whimbrel_wire::system::TaskStatus as WireStatus;
use whimbrel_wire::system::{
    InformationLevel, Informational, SystemEvent, TaskEnd, TaskNotification, TaskPatch, TaskStarted,
    TaskUpdated,
};

use crate::inbox::News;
use crate::tasks::{TaskEvent, TaskStatus, Told};

/// The notices for the host.
pub(crate) fn notices(event: &TaskEvent) -> Vec<SystemEvent> {
    match event {
        TaskEvent::Started { task_id, tool_use_id, description, kind } => vec![
            TaskStarted {
                is_backgrounded: Some(true),
                task_id: task_id.clone(),
                tool_use_id: Some(tool_use_id.clone()),
                description: description.clone(),
                task_type: Some(kind.word().into()),
                ..TaskStarted::default()
            }
            .into(),
        ],
        TaskEvent::Ended { task_id, tool_use_id, status, output_file, summary, .. } => {
            let (end, state) = match status {
                TaskStatus::Completed => (TaskEnd::Completed, WireStatus::Completed),
                TaskStatus::Failed => (TaskEnd::Failed, WireStatus::Failed),
                TaskStatus::Stopped => (TaskEnd::Stopped, WireStatus::Killed),
            };
            let patch = TaskPatch { status: Some(state), ..TaskPatch::default() };
            vec![
                TaskUpdated { task_id: task_id.clone(), patch, ..TaskUpdated::default() }.into(),
                TaskNotification {
                    task_id: task_id.clone(),
                    tool_use_id: Some(tool_use_id.clone()),
                    status: end,
                    output_file: output_file.display().to_string(),
                    summary: summary.clone(),
                    ..TaskNotification::default()
                }
                .into(),
            ]
        }
        // The words of the wire know no better status; the reason tells.
        TaskEvent::LetGo { task_id, tool_use_id, output_file, summary } => vec![
            TaskNotification {
                task_id: task_id.clone(),
                tool_use_id: Some(tool_use_id.clone()),
                status: TaskEnd::Stopped,
                reason: Some("detached".into()),
                output_file: output_file.display().to_string(),
                summary: summary.clone(),
                ..TaskNotification::default()
            }
            .into(),
            Informational {
                content: format!("{summary}."),
                level: InformationLevel::Warning,
                ..Informational::default()
            }
            .into(),
        ],
        // The model's business alone.
        TaskEvent::Printed { .. } => Vec::new(),
    }
}

/// The message for the model, if it is to be told.
pub(crate) fn for_model(event: &TaskEvent) -> Option<News> {
    match event {
        TaskEvent::Ended { told: Told::Never, .. } | TaskEvent::Started { .. } | TaskEvent::LetGo { .. } => {
            None
        }
        TaskEvent::Ended { task_id, tool_use_id, status, output_file, summary, told, .. } => {
            let text = format!(
                "<task-notification>\n<task-id>{task_id}</task-id>\n<tool-use-id>{tool_use_id}</tool-use-id>\n<output-file>{}</output-file>\n<status>{}</status>\n<summary>{summary}</summary>\n</task-notification>",
                output_file.display(),
                status.word(),
            );
            Some(News { wakes: *told == Told::AtOnce, ..News::of_task(text) })
        }
        TaskEvent::Printed { task_id, description, text } => Some(News::of_task(format!(
            "<task-notification>\n<task-id>{task_id}</task-id>\n<summary>\"{description}\" printed:</summary>\n<event>\n{text}\n</event>\n</task-notification>"
        ))),
    }
}
