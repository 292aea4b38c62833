//! Detachable commands, which may outlive their session if the host asks for that. They print directly into their file
//! and carry no tag.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use whimbrel_process::ProcessGroups;
use whimbrel_process::bounded_output::OutputCapture;
use whimbrel_process::{CapturedCommand, CommandSpec, SpawnError};

use super::{TaskRegistry, TaskState};

/// Starts a detachable command. It writes to the capture's file directly, so that the file limit does not apply.
pub(super) fn spawn_detachable(
    spec: &CommandSpec,
    groups: &Arc<ProcessGroups>,
    capture: &OutputCapture,
) -> Result<(CapturedCommand, CancellationToken), SpawnError> {
    let Some(file) = capture.file() else {
        return Err(SpawnError::Io(std::io::Error::other("the output is not captured in a file")));
    };
    Ok((CapturedCommand::spawn_detachable(spec, groups, file)?, CancellationToken::new()))
}

impl TaskRegistry {
    /// Detaches every detachable command and returns their number. They are not watched any more.
    pub async fn detach_all(&self) -> usize {
        let detachable: Vec<_> = {
            let rows = self.table.rows();
            let running = rows.iter().filter(|task| *task.state.borrow() == TaskState::Running);
            running.filter_map(|task| Some((task.detach.clone()?, task.state.clone()))).collect()
        };
        for (detach, _) in &detachable {
            detach.cancel();
        }
        let count = detachable.len();
        for (_, mut state) in detachable {
            // A closed channel means that it is detached, too.
            let _ = state.wait_for(|state| *state != TaskState::Running).await;
        }
        count
    }
}
