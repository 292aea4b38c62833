//! Detachable commands, which may outlive their session if the host asks for that. They print directly into their file
//! and carry no tag. Live output is read from that file.

use std::convert::Infallible;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use whimbrel_process::ProcessGroups;
use whimbrel_process::bounded_output::OutputCapture;
use whimbrel_process::{CapturedCommand, CommandSpec, OutputObserver, SpawnError};

use super::{TaskRegistry, TaskState};
use crate::live_output::LiveStream;

/// Time between two looks at the file while the host wants live output, and else.
const FOLLOW_INTERVAL: Duration = Duration::from_millis(100);
const IDLE_INTERVAL: Duration = Duration::from_secs(1);

/// Output that is read at one look; what was printed before it is left out.
const MAX_READ_BYTES: u64 = 64 * 1024;

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

/// Passes the output of a detachable command on as live output. The file is all that connects it with the session.
pub(super) struct OutputFollower {
    file: File,
    position: u64,
    stream: LiveStream,
    observer: Box<dyn OutputObserver>,
}

impl OutputFollower {
    /// `None` if the output is not in a readable file: then there is no live output.
    pub(super) fn new(capture: &OutputCapture, stream: LiveStream) -> Option<Self> {
        let file = File::open(capture.path()?).ok()?;
        Some(Self { file, position: 0, observer: Box::new(stream.observer()), stream })
    }

    /// Reads until it is dropped.
    pub(super) async fn follow(&mut self) -> Infallible {
        loop {
            let interval = if self.stream.is_wanted() { FOLLOW_INTERVAL } else { IDLE_INTERVAL };
            tokio::time::sleep(interval).await;
            self.read_new();
        }
    }

    /// Passes on what was printed since the last look.
    pub(super) fn read_new(&mut self) {
        let end = self.file.metadata().map_or(self.position, |metadata| metadata.len());
        let start = self.position.max(end.saturating_sub(MAX_READ_BYTES));
        let skipped = start - self.position;
        self.position = end;
        if !self.stream.is_wanted() {
            return;
        }
        if skipped > 0 {
            self.stream.omit(skipped);
        }
        let mut bytes = vec![0; usize::try_from(end.saturating_sub(start)).unwrap_or_default()];
        // A file that was truncated has nothing new.
        if self.file.read_exact_at(&mut bytes, start).is_ok() {
            self.observer.observe(&bytes);
        }
    }
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
