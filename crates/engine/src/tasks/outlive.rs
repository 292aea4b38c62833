//! Commands that may outlive their session, where the host asks for that: they print into their file themselves and carry
//! no mark, so that at the end they can be let go.

use tokio_util::sync::CancellationToken;

use super::output::Capture;
use super::process::{Order, Process, StartFault};
use super::roster::Roster;
use super::{TaskState, Tasks};
use std::sync::Arc;

/// Starts a command that can be let go. What it prints goes to the capture's file without us, and so without a limit.
pub(super) fn start(
    order: &Order,
    roster: &Arc<Roster>,
    capture: &Capture,
) -> Result<(Process, CancellationToken), StartFault> {
    let Some(file) = capture.file() else {
        return Err(StartFault::Io(std::io::Error::other("its output has no file")));
    };
    Ok((Process::spawn_loose(order, roster, file)?, CancellationToken::new()))
}

impl Tasks {
    /// Lets every command go on without the session that may; gives how many there are. Nobody hears of them any more.
    pub async fn let_outlive(&self) -> usize {
        let free: Vec<_> = {
            let rows = self.table.rows();
            let running = rows.iter().filter(|task| *task.state.borrow() == TaskState::Running);
            running.filter_map(|task| Some((task.release.clone()?, task.state.clone()))).collect()
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
