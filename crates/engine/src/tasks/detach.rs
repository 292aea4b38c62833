//! Commands that may outlive their session, where the host asks for that: they print into their file themselves and carry
//! no mark, so that at the end they can be let go.

use tokio_util::sync::CancellationToken;

use super::capture::OutputCapture;
use super::process::{CommandSpec, Process, SpawnError};
use super::process_groups::ProcessGroups;
use super::{TaskState, TaskRegistry};
use std::sync::Arc;

/// Starts a command that can be let go. What it prints goes to the capture's file without us, and so without a limit.
pub(super) fn spawn_detachable(
    order: &CommandSpec,
    roster: &Arc<ProcessGroups>,
    capture: &OutputCapture,
) -> Result<(Process, CancellationToken), SpawnError> {
    let Some(file) = capture.file() else {
        return Err(SpawnError::Io(std::io::Error::other("its output has no file")));
    };
    Ok((Process::spawn_detachable(order, roster, file)?, CancellationToken::new()))
}

impl TaskRegistry {
    /// Lets every command go on without the session that may; gives how many there are. Nobody hears of them any more.
    pub async fn detach_all(&self) -> usize {
        let free: Vec<_> = {
            let rows = self.table.rows();
            let running = rows.iter().filter(|task| *task.state.borrow() == TaskState::Running);
            running.filter_map(|task| Some((task.detach.clone()?, task.state.clone()))).collect()
        };
        for (release, _) in &free {
            release.cancel();
        }
        let count = free.len();
        for (_, mut state) in free {
            // One that nobody writes any more is let go, too.
            let _ = state.wait_for(|state| *state != TaskState::Running).await;
        }
        count
    }
}
