//! Frames to the host and notifications to the main model about agents.

use whimbrel_os::clock;
use whimbrel_tools::tasks::{TaskInfo, TaskRegistry, TaskSnapshot, TaskStatus};
use whimbrel_transport::frame_sender::FrameSender;
use whimbrel_wire::system::TaskStatus as WireStatus;
use whimbrel_wire::system::{TaskEnd, TaskNotification, TaskPatch, TaskStarted, TaskUpdated};

use super::AgentReport;
use crate::task_notifications::background_tasks;

/// Details of a spawned agent that its task does not hold.
pub(super) struct SpawnDetails<'a> {
    pub(super) depth: usize,
    pub(super) parent: Option<&'a str>,
    pub(super) background: bool,
    pub(super) prompt: &'a str,
}

/// Notifies the host that an agent has started.
pub(super) async fn notify_started(
    frame_sender: &FrameSender,
    tasks: &TaskRegistry,
    info: &TaskInfo,
    details: SpawnDetails<'_>,
) {
    let notice = TaskStarted {
        task_id: info.task_id.clone(),
        tool_use_id: Some(info.tool_use_id.clone()),
        description: info.description.clone(),
        subagent_type: info.agent_type.clone(),
        is_backgrounded: Some(details.background),
        spawn_depth: u32::try_from(details.depth).ok(),
        parent_task_id: details.parent.map(Into::into),
        task_type: Some(info.kind.as_str().into()),
        prompt: Some(details.prompt.to_owned()),
        ..TaskStarted::default()
    };
    frame_sender.notify(notice).await;
    if details.background {
        frame_sender.notify(background_tasks(&tasks.running_in_background())).await;
    }
}

/// Notifies the host that agents were moved to the background. Commands send their own notice.
pub(crate) async fn notify_backgrounded(
    frame_sender: &FrameSender,
    tasks: &TaskRegistry,
    changed: &[TaskSnapshot],
) {
    let agents: Vec<&TaskSnapshot> = changed.iter().filter(|task| task.info.kind.is_agent()).collect();
    for task in &agents {
        let patch = TaskPatch { is_backgrounded: Some(true), ..TaskPatch::default() };
        let task_id = task.info.task_id.clone();
        frame_sender.notify(TaskUpdated { task_id, patch, ..TaskUpdated::default() }).await;
    }
    if !agents.is_empty() {
        frame_sender.notify(background_tasks(&tasks.running_in_background())).await;
    }
}

/// Notifies the host that an agent has ended.
pub(super) async fn notify_ended(
    frame_sender: &FrameSender,
    tasks: &TaskRegistry,
    info: &TaskInfo,
    report: &AgentReport,
) {
    let (end, state) = match report.status() {
        TaskStatus::Completed => (TaskEnd::Completed, WireStatus::Completed),
        TaskStatus::Failed => (TaskEnd::Failed, WireStatus::Failed),
        TaskStatus::Stopped => (TaskEnd::Stopped, WireStatus::Killed),
    };
    let patch = TaskPatch {
        status: Some(state),
        end_time: Some(clock::unix_millis()),
        error: report.failure_reason(),
        ..TaskPatch::default()
    };
    let task_id = info.task_id.clone();
    frame_sender.notify(TaskUpdated { task_id: task_id.clone(), patch, ..TaskUpdated::default() }).await;
    let notice = TaskNotification {
        task_id,
        tool_use_id: Some(info.tool_use_id.clone()),
        status: end,
        // The report of a foreground agent is in the tool result only.
        output_file: if report.background { info.output_file.display().to_string() } else { String::new() },
        summary: summary(info, report),
        usage: Some(report.task_usage.clone()),
        ..TaskNotification::default()
    };
    frame_sender.notify(notice).await;
    if report.background {
        let others: Vec<TaskSnapshot> = tasks
            .running_in_background()
            .into_iter()
            .filter(|task| task.info.task_id != info.task_id)
            .collect();
        frame_sender.notify(background_tasks(&others)).await;
    }
}

/// The end in one sentence.
fn summary(info: &TaskInfo, report: &AgentReport) -> String {
    let text = format!("Agent \"{}\" {}", info.description, report.status().as_str());
    match report.failure_reason() {
        Some(reason) if report.status() == TaskStatus::Failed => format!("{text}: {reason}"),
        _ => text,
    }
}

/// The notification for the main model when a background agent has ended.
pub(super) fn render_notification(info: &TaskInfo, report: &AgentReport) -> String {
    let TaskInfo { task_id, tool_use_id, output_file, .. } = info;
    let usage = &report.task_usage;
    format!(
        "<task-notification>\n<task-id>{task_id}</task-id>\n<tool-use-id>{tool_use_id}</tool-use-id>\n<output-file>{}</output-file>\n<status>{}</status>\n<summary>{}</summary>\n<result>{}</result>\n<usage>tokens: {}, tool uses: {}</usage>\n</task-notification>",
        output_file.display(),
        report.status().as_str(),
        summary(info, report),
        report.text(),
        usage.total_tokens,
        usage.tool_uses,
    )
}
