//! Notifications about background tasks: system events for the host, messages for the model.

use whimbrel_tools::internal_events::Notification;
use whimbrel_tools::tasks::{NotifyModel, TaskEvent, TaskSnapshot, TaskStatus};
use whimbrel_wire::system::TaskStatus as WireStatus;
use whimbrel_wire::system::{
    BackgroundTask, BackgroundTasksChanged, InformationLevel, Informational, SystemEvent, TaskEnd,
    TaskNotification, TaskPatch, TaskStarted, TaskUpdated,
};

/// System events for the host.
pub(crate) fn system_events(event: &TaskEvent) -> Vec<SystemEvent> {
    match event {
        TaskEvent::Started { task_id, tool_use_id, description, kind } => vec![
            TaskStarted {
                is_backgrounded: Some(true),
                task_id: task_id.clone(),
                tool_use_id: Some(tool_use_id.clone()),
                description: description.clone(),
                task_type: Some(kind.as_str().into()),
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
        // The wire has no status for a detached task, so `reason` contains it.
        TaskEvent::Detached { task_id, tool_use_id, output_file, summary } => vec![
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
        // Only the model is notified.
        TaskEvent::Output { .. } => Vec::new(),
    }
}

/// The frame that lists running background tasks.
pub(crate) fn background_tasks(tasks: &[TaskSnapshot]) -> BackgroundTasksChanged {
    let shown = tasks.iter().map(|task| BackgroundTask {
        task_id: task.info.task_id.clone(),
        task_type: task.info.kind.as_str().into(),
        subagent_type: task.info.agent_type.clone(),
        description: task.info.description.clone(),
        ..BackgroundTask::default()
    });
    BackgroundTasksChanged { tasks: shown.collect() }
}

/// The message for the model, if it is to be notified.
pub(crate) fn model_notification(event: &TaskEvent) -> Option<Notification> {
    match event {
        TaskEvent::Ended { notify: NotifyModel::Never, .. }
        | TaskEvent::Started { .. }
        | TaskEvent::Detached { .. } => None,
        TaskEvent::Ended { task_id, tool_use_id, status, output_file, summary, notify, .. } => {
            let text = format!(
                "<task-notification>\n<task-id>{task_id}</task-id>\n<tool-use-id>{tool_use_id}</tool-use-id>\n<output-file>{}</output-file>\n<status>{}</status>\n<summary>{summary}</summary>\n</task-notification>",
                output_file.display(),
                status.as_str(),
            );
            Some(Notification {
                starts_turn: *notify == NotifyModel::Now,
                task_id: Some(task_id.clone()),
                ..Notification::from_task(text)
            })
        }
        TaskEvent::Output { task_id, description, text } => {
            let text = format!(
                "<task-notification>\n<task-id>{task_id}</task-id>\n<summary>\"{description}\" \
                 printed:</summary>\n<event>\n{text}\n</event>\n</task-notification>"
            );
            Some(Notification { task_id: Some(task_id.clone()), ..Notification::from_task(text) })
        }
    }
}
