//! Agents as background tasks. The running agent owns an [`AgentTask`]; the task table shows it to others.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{TaskInfo, TaskKind, TaskRegistry, TaskRow, TaskScope, TaskState, TaskStatus, TaskTable};

/// A running agent. If dropped before [`AgentTask::finish`], it counts as failed.
pub struct AgentTask {
    pub info: TaskInfo,
    /// Fires when the agent must stop.
    pub stop: CancellationToken,
    stopped_by_host: CancellationToken,
    state: watch::Sender<TaskState>,
    table: Arc<TaskTable>,
}

impl TaskRegistry {
    /// Registers a running agent; `background` says whether the turn continues meanwhile.
    pub fn register_agent(&self, info: TaskInfo, background: bool) -> AgentTask {
        let (state_sender, state) = watch::channel(TaskState::Running);
        let (stop, stopped_by_host) = (self.table.groups.closed.child_token(), CancellationToken::new());
        let mut rows = self.table.rows();
        // A continued agent is already in the table.
        rows.retain(|task| task.info.task_id != info.task_id);
        rows.push(TaskRow {
            info: info.clone(),
            state,
            stop: stop.clone(),
            stopped_by_host: stopped_by_host.clone(),
            background: watch::Sender::new(background),
            background_locked: false,
            detach: None,
        });
        drop(rows);
        AgentTask { info, stop, stopped_by_host, state: state_sender, table: Arc::clone(&self.table) }
    }

    pub fn output_file(&self, id: &str) -> Option<PathBuf> {
        self.table.find(id, TaskScope::Main, |task| task.info.output_file.clone()).ok()
    }

    /// Stops all agents and waits until they are gone, at most for `limit`.
    pub(super) async fn stop_agents(&self, limit: Duration) {
        self.table.agents_stopped.store(true, Ordering::Relaxed);
        for agent in self.table.rows().iter().filter(|task| task.info.kind.is_agent()) {
            agent.stop.cancel();
        }
        self.wait_for_stopped(limit).await;
    }
}

impl AgentTask {
    pub fn id(&self) -> &str {
        &self.info.task_id
    }

    /// Watches whether the turn continues without waiting for the agent.
    pub fn watch_background(&self) -> watch::Receiver<bool> {
        self.with_row(|task| task.background.subscribe())
            .unwrap_or_else(|| watch::Sender::new(true).subscribe())
    }

    /// Returns whether the host stopped it, in which case the main model does not know.
    pub fn was_stopped_by_host(&self) -> bool {
        self.stopped_by_host.is_cancelled()
    }

    /// Prevents further moves between foreground and background; called just before the agent ends. Returns whether it
    /// is in the background.
    pub fn lock_background_state(&self) -> bool {
        let in_background = self.with_row(|task| {
            task.background_locked = true;
            *task.background.borrow()
        });
        in_background.unwrap_or(true)
    }

    pub fn finish(self, status: TaskStatus) {
        self.state.send_replace(TaskState::Ended { status, exit_code: None });
    }

    fn with_row<T>(&self, read: impl FnOnce(&mut TaskRow) -> T) -> Option<T> {
        let mut rows = self.table.rows();
        rows.iter_mut().find(|task| task.info.task_id == self.info.task_id).map(read)
    }
}

impl Drop for AgentTask {
    fn drop(&mut self) {
        self.state.send_if_modified(|state| {
            let was_running = *state == TaskState::Running;
            if was_running {
                *state = TaskState::Ended { status: TaskStatus::Failed, exit_code: None };
            }
            was_running
        });
    }
}

impl TaskKind {
    pub fn is_agent(self) -> bool {
        match self {
            Self::Agent | Self::Teammate => true,
            Self::Command => false,
        }
    }
}
