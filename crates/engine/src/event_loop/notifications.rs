//! Handles internal events: which agent is notified about a background task, and when a notification starts a turn.

use whimbrel_tools::internal_events::{InternalEvent, Notification};
use whimbrel_wire::message::Outcome;

use super::Session;
use crate::input_queue::QueuedInput;
use crate::setup::NotificationTurns;
use crate::task_notifications;

impl Session {
    /// Handles one internal event.
    pub(super) async fn handle_event(&mut self, event: InternalEvent) {
        match event {
            InternalEvent::Notification(notification)
                if notification.is_about(&self.progress.dropped_tasks) => {}
            InternalEvent::Notification(notification) => self.enqueue_notification(*notification),
            InternalEvent::RecheckIdle => {}
            InternalEvent::Task(event) => {
                for notice in task_notifications::system_events(&event) {
                    self.host.frame_sender.notify(notice).await;
                }
                self.host
                    .frame_sender
                    .notify(task_notifications::background_tasks(&self.tasks.running_in_background()))
                    .await;
                if self.progress.dropped_tasks.contains(event.task_id()) {
                    return;
                }
                if let Some(notification) = task_notifications::model_notification(&event) {
                    self.notify_task_owner(event.task_id(), notification);
                }
            }
        }
    }

    /// Delivers a notification to the agent that started the task: a teammate if it is still there, else the main
    /// agent.
    fn notify_task_owner(&mut self, task_id: &str, notification: Notification) {
        let owner = self.tasks.owner(task_id);
        if let Some(text) = self.team.deliver_notification(owner.as_deref(), notification.text) {
            self.enqueue_notification(Notification { text, ..notification });
        }
    }

    /// Queues a notification for the model. After a result has reported the exceeded budget, notifications no longer
    /// start turns: each would only repeat that result. Nor do they if the host wants turns for its prompts only.
    fn enqueue_notification(&mut self, notification: Notification) {
        let starts_turn = notification.starts_turn
            && self.setup.host.notification_turns == NotificationTurns::Started
            && !self.is_over_budget();
        self.input_queue.push(QueuedInput::Notification(Notification { starts_turn, ..notification }));
    }

    /// Returns whether the last turn ended because the budget was exceeded.
    pub(super) fn is_over_budget(&self) -> bool {
        self.progress.last_turn.as_ref().is_some_and(|turn| turn.outcome == Outcome::ErrorMaxBudgetUsd)
    }
}
